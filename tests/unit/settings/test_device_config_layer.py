from pathlib import Path

import pytest

from hami_mock.cli.flags import flag_values, normalise, options_parser
from hami_mock.settings.settings import Settings, load
from hami_mock.vendors import Role
from tests.unit.builders import config_file, problems_of
from tests.unit.settings.test_hami_config import NVIDIA, OTHERS, VNPUS_LIST, VNPUS_MAPPING

CHIP = """
vnpus:
- chipName: 910B4-1
  commonWord: Ascend910B4
  resourceName: huawei.com/Ascend910B4
  resourceMemoryName: huawei.com/Ascend910B4-memory
  memoryAllocatable: 65536
  memoryFactor: 16
  templates: [{name: vir05_1c_8g, memory: 8192}]
"""


def loaded(folder: Path, text: str, **flags: str) -> Settings:
    file = folder / "device-config.yaml"
    file.write_text(text)
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    return load({"device-config-file": str(file), **named})


def named(settings: Settings, key: str) -> dict[Role, tuple[str, str]]:
    """Name and place of each registered resource of a vendor."""
    (found,) = (vendor for vendor in settings.vendors if vendor.vendor.prefix == key)
    names = {offer.role: found.names[offer.role] for offer in found.offers}
    return {role: (it.name, it.source.rpartition("/")[2]) for role, it in names.items()}


def test_names_come_with_their_place(tmp_path: Path) -> None:
    text = "nvidia: {resourceCountName: a/gpu, resourceMemoryName: a/mem}"
    found = named(loaded(tmp_path, text), "nvidia")
    assert found[Role.SLOTS] == ("a/gpu", "device-config.yaml: nvidia.resourceCountName")
    assert found[Role.MEMORY] == ("a/mem", "device-config.yaml: nvidia.resourceMemoryName")
    assert found[Role.CORES] == ("nvidia.com/gpucores", "--resource-cores")


@pytest.mark.parametrize(
    ("section", "key", "keys"),
    [
        ("cambricon", "mlu", ("resourceCountName", "resourceMemoryName", "resourceCoreName")),
        ("metax", "metax", ("resourceVCountName", "resourceVMemoryName", "resourceVCoreName")),
        ("metax", "metax-gpu", ("resourceCountName",)),
        ("enflame", "enflame", ("resourceNameDRSGCU", "resourceNameGCUMemory",
                                "resourceNameGCUCore")),
        ("kunlun", "kunlun-xpu", ("resourceCountName",)),
        ("biren", "biren", ("resourceCountName",)),
    ],
)  # fmt: skip
def test_every_vendor_has_its_keys(
    tmp_path: Path, section: str, key: str, keys: tuple[str, ...]
) -> None:
    text = f"{section}: {{{', '.join(f'{name}: a/{name}' for name in keys)}}}"
    found = named(loaded(tmp_path, text), key)
    assert set(found.values()) == {
        (f"a/{name}", f"device-config.yaml: {section}.{name}") for name in keys
    }


def test_how_cards_are_sliced(tmp_path: Path) -> None:
    nvidia = loaded(tmp_path, NVIDIA, hami="on").vendors[0]
    assert (nvidia.split, nvidia.memory_scaling, nvidia.core_scaling) == (5, 1.5, 2.0)
    assert nvidia.memory_factor == 4
    assert nvidia.hami is not None
    assert (nvidia.hami.split, nvidia.hami.mode) == (5, "hami-core")


NODE = """
nodeconfig:
- {name: a, devicesplitcount: 2, operatingmode: mig}
- {name: b, devicesplitcount: 10, devicememoryscaling: 3}
"""


@pytest.mark.parametrize(
    ("node", "split", "scaling", "mode"),
    [("a", 2, 1.0, "mig"), ("b", 10, 3.0, "hami-core"), ("c", 5, 1.5, "hami-core")],
)
def test_a_node_of_its_own_kind(
    tmp_path: Path, node: str, split: int, scaling: float, mode: str
) -> None:
    nvidia = loaded(tmp_path, NVIDIA + NODE, node_name=node, hami="on").vendors[0]
    assert nvidia.hami is not None
    assert (nvidia.split, nvidia.memory_scaling, nvidia.hami.mode) == (split, scaling, mode)


def test_hygon_has_a_factor_too(tmp_path: Path) -> None:
    (hygon,) = (v for v in loaded(tmp_path, OTHERS).vendors if v.vendor.prefix == "hygon")
    assert hygon.memory_factor == 2


@pytest.mark.parametrize("text", [VNPUS_LIST, VNPUS_MAPPING], ids=["list", "mapping"])
def test_names_of_ascend_follow_the_chip(tmp_path: Path, text: str) -> None:
    text = text.replace("huawei.com/Ascend910B3", "a/npu")
    assert named(loaded(tmp_path, text), "ascend") == {
        Role.SLOTS: ("a/npu", "device-config.yaml: vnpus(Ascend910B3).resourceName"),
        Role.MEMORY: ("a/npu-memory", "device-config.yaml: vnpus(Ascend910B3).resourceMemoryName"),
        Role.CORES: ("a/npu-core", "device-config.yaml: vnpus(Ascend910B3).resourceCoreName"),
    }


def test_the_library_of_hami_on_ascend(tmp_path: Path) -> None:
    modes = [
        next(
            v for v in loaded(tmp_path, text, hami="on").vendors if v.vendor.prefix == "ascend"
        ).hami
        for text in (VNPUS_LIST, VNPUS_MAPPING)
    ]
    assert [side and side.mode for side in modes] == ["template", "hami-core"]


def test_a_chip_is_found_by_the_name_that_its_tool_reports(tmp_path: Path) -> None:
    settings = loaded(tmp_path, CHIP, hami="on", ascend_model="Ascend910B4-1")
    (ascend,) = (vendor for vendor in settings.vendors if vendor.vendor.prefix == "ascend")
    assert ascend.hami is not None
    assert ascend.hami.vendor.word == "Ascend910B4"
    assert (ascend.split, ascend.memory_factor) == (8, 16)
    assert ascend.names[Role.MEMORY].name == "huawei.com/Ascend910B4-memory"


def test_a_chip_that_the_file_does_not_have_keeps_hamis_names(tmp_path: Path) -> None:
    settings = loaded(tmp_path, CHIP, hami="on", ascend_model="Ascend310P")
    (ascend,) = (vendor for vendor in settings.vendors if vendor.vendor.prefix == "ascend")
    assert ascend.names[Role.MEMORY].name == "huawei.com/Ascend310P-memory"
    assert ascend.split == 7


def test_names_of_iluvatar_follow_the_chip(tmp_path: Path) -> None:
    found = named(loaded(tmp_path, OTHERS), "iluvatar")
    assert found[Role.SLOTS] == (
        "iluvatar.ai/MR-V100-vgpu",
        "device-config.yaml: iluvatars(MR-V100).resourceCountName",
    )
    settings = loaded(tmp_path, OTHERS, iluvatar_model="BI-V100")
    assert named(settings, "iluvatar")[Role.SLOTS][0] == "iluvatar.ai/vgpu"


def test_everything_else_is_stronger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_file(tmp_path, "nvidia: {split: 7}")
    monkeypatch.setenv("HAMI_MOCK_NVIDIA_MEMORY_SCALING", "4")
    nvidia = loaded(tmp_path, NVIDIA, config=config, nvidia_core_scaling="3").vendors[0]
    assert (nvidia.split, nvidia.memory_scaling, nvidia.core_scaling) == (7, 4.0, 3.0)
    assert nvidia.memory_factor == 4


def test_our_own_file_can_name_it_for_some_nodes(tmp_path: Path) -> None:
    file = tmp_path / "device-config.yaml"
    file.write_text(NVIDIA)
    text = f"nodes: [{{match: a, device-config-file: {file}}}]"
    config = config_file(tmp_path, text)
    splits = [load({"config": config, "node-name": n}).vendors[0].split for n in ("a", "b")]
    assert splits == [5, 10]


def test_a_mistake_gets_one_line_however_many_sections_there_are(tmp_path: Path) -> None:
    config = config_file(tmp_path, "nodes: [{match: a}, {match: b}, {match: c}]")
    assert len(problems_of(lambda: loaded(tmp_path, "a: [", config=config))) == 1
    assert loaded(tmp_path, NVIDIA, config=config, node_name="a").vendors[0].split == 5


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("nvidia: {resourceCountName: a b}", "nvidia.resourceCountName: 'a b' is not allowed"),
        ("nvidia: {deviceSplitCount: 0}", "nvidia.deviceSplitCount: 0 is not allowed: it must be"),
        ("nvidia: {deviceSplitCount: x}", "nvidia.deviceSplitCount: 'x' is not allowed"),
        ("nvidia: {deviceCoreScaling: 101}", "nvidia.deviceCoreScaling: 101.0 is not allowed"),
        ("nvidia: {memoryFactor: 2000000, resourceCountName: a/b}", "nvidia.memoryFactor: 2000000"),
        ("nodeconfig: [{name: n, operatingmode: mix}]", "nodeconfig(n).operatingmode: 'mix' is"),
        ("a: [", "not valid YAML"),
        ("{}", "the file configures no devices"),
        (CHIP.replace("huawei.com/Ascend910B4\n", "'a b'\n").replace("910B4-1", "910B3"),
         "vnpus(Ascend910B4).resourceName: 'a b' is not allowed"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, text: str, line: str) -> None:
    (problem,) = problems_of(lambda: loaded(tmp_path, text, node_name="n"))
    assert problem.startswith(f"{tmp_path}/device-config.yaml: {line}")


def test_a_file_that_is_not_there_is_one_mistake_among_others() -> None:
    flags = {"device-config-file": "/nowhere", "nvidia-cards": "x"}
    first, second = problems_of(lambda: load(flags))
    assert first == "--device-config-file: can't read '/nowhere': No such file or directory"
    assert second.startswith("--nvidia-cards: 'x'")


def test_the_flags_of_hamis_newer_mock_are_understood() -> None:
    arguments = normalise(["-v=5", "--device-config-file=/device-config.yaml"])
    assert flag_values(options_parser("run").parse(arguments)) == {
        "device-config-file": "/device-config.yaml",
        "log-level": "debug",
    }
