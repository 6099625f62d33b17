import dataclasses
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hami_mock.settings.options import GENERAL
from hami_mock.settings.settings import Settings, load
from hami_mock.vendors import VENDORS, Role
from hami_mock.views.deviceplugin.lifecycle import socket_name
from tests.unit.builders import config_file, problems_of, vendor_settings

LONGEST_SOCKET_PATH = 107
BY_DEFAULT = {"nvidia": 2, "mlu": 2, "iluvatar": 2, "ascend": 2}


def cards(settings: Settings) -> dict[str, int]:
    return {
        vendor.vendor.prefix: sum(group.cards for group in vendor.groups)
        for vendor in settings.vendors
    }


def test_nothing_said_gives_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "the-host")
    settings = load({})
    assert settings.node_name == "the-host"
    assert settings.socket_dir == "/var/lib/kubelet/device-plugins"
    assert settings.http_listen == ":9396"
    assert (settings.log_level, settings.log_format) == ("info", "text")
    assert settings.kubelet_version is None
    assert {key: count for key, count in cards(settings).items() if count} == BY_DEFAULT
    assert (settings.hami, settings.device_config_file) == (False, None)
    assert [vendor.vendor for vendor in settings.vendors] == list(VENDORS)


def test_each_source_beats_the_ones_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Default, file, section of the file, environment, flag: one more of them at each step."""
    found = [cards(load({}))["nvidia"]]
    flags = {"config": config_file(tmp_path, "nvidia-cards: 3"), "node-name": "a"}
    found.append(cards(load(flags))["nvidia"])
    config_file(tmp_path, "nvidia-cards: 3\nnodes: [{match: a, nvidia: {cards: 4}}]")
    found.append(cards(load(flags))["nvidia"])
    monkeypatch.setenv("HAMI_MOCK_NVIDIA_CARDS", "5")
    found.append(cards(load(flags))["nvidia"])
    found.append(cards(load({**flags, "nvidia-cards": "6"}))["nvidia"])
    assert found == [2, 3, 4, 5, 6]


def test_the_file_beats_the_default(tmp_path: Path) -> None:
    assert cards(load({"config": config_file(tmp_path, "nvidia-cards: 3")}))["nvidia"] == 3


def test_a_variable_beats_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAMI_MOCK_CONFIG", config_file(tmp_path, "nvidia-cards: 3\nmlu-cards: 4"))
    monkeypatch.setenv("HAMI_MOCK_NVIDIA_CARDS", "5")
    assert {"nvidia": 5, "mlu": 4, "iluvatar": 2, "ascend": 2}.items() <= cards(load({})).items()


def test_a_flag_beats_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAMI_MOCK_NVIDIA_CARDS", "5")
    assert cards(load({"nvidia-cards": "6"}))["nvidia"] == 6


def test_the_flag_config_beats_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAMI_MOCK_CONFIG", "/nowhere")
    assert cards(load({"config": config_file(tmp_path, "mlu-cards: 4")}))["mlu"] == 4


@pytest.mark.parametrize(
    ("sources", "name"),
    [
        ((), "host"),
        (("NODE_NAME",), "NODE_NAME"),
        (("NODE_NAME", "file"), "file"),
        (("NODE_NAME", "file", "HAMI_MOCK_NODE_NAME"), "HAMI_MOCK_NODE_NAME"),
        (("NODE_NAME", "file", "HAMI_MOCK_NODE_NAME", "flag"), "flag"),
    ],
)
def test_the_nodes_name_comes_from_the_strongest_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: tuple[str, ...], name: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "host")
    flags = {}
    for source in sources:
        if source == "file":
            flags["config"] = config_file(tmp_path, "node-name: file")
        elif source == "flag":
            flags["node-name"] = "flag"
        else:
            monkeypatch.setenv(source, source)
    assert load(flags).node_name == name


def test_the_file_can_say_everything(tmp_path: Path) -> None:
    text = """
    node-name: a
    socket-dir: /run/x
    http: {listen: "127.0.0.1:80"}
    kubelet: {version: v1.35.8}
    log: {level: debug, format: json}
    nvidia: {cards: 1, split: 3, memory-scaling: 1.5, core-scaling: 2, memory-factor: auto}
    resource: {name: a/gpu, cores: a/cores, mem: a/mem, mem-percentage: a/percent}
    mlu: {cards: 0}
    """
    settings = load({"config": config_file(tmp_path, text)})
    assert (settings.node_name, settings.socket_dir) == ("a", "/run/x")
    assert settings.http_listen == "127.0.0.1:80"
    assert settings.kubelet_version == (1, 35)
    assert (settings.log_level, settings.log_format) == ("debug", "json")
    nvidia, mlu, *_ = settings.vendors
    assert (nvidia.split, nvidia.memory_scaling, nvidia.core_scaling) == (3, 1.5, 2.0)
    assert nvidia.memory_factor is None
    assert {role: named.name for role, named in nvidia.names.items()} == {
        Role.SLOTS: "a/gpu",
        Role.CORES: "a/cores",
        Role.MEMORY: "a/mem",
        Role.PERCENTAGE: "a/percent",
    }
    assert mlu.groups == ()


@pytest.mark.parametrize(
    "text", ["mlu-resource-memory-name: a/b", "mlu: {resource-memory-name: a/b}"]
)
def test_the_historical_name_of_ascends_memory_is_taken_from_the_file(
    tmp_path: Path, text: str
) -> None:
    named = vendor_settings("ascend", {"config": config_file(tmp_path, text)}).names[Role.MEMORY]
    assert named.name == "a/b"
    assert named.source.endswith(f": {text.replace(': {', '.').partition(':')[0]}")


def test_the_historical_name_of_ascends_memory_is_taken_from_the_command_line() -> None:
    names = vendor_settings("ascend", {"mlu-resource-memory-name": "a/b"}).names
    assert names[Role.MEMORY].name == "a/b"
    assert names[Role.MEMORY].source == "--mlu-resource-memory-name"


SECTIONS = """
nvidia-cards: 1
nodes:
  - match: special-1
    nvidia-cards: 7
  - match: [gpu-*, special-*]
    nvidia: {groups: [{cards: 3, model: T4}, {cards: 2, model: L4}]}
  - match: cpu-*
    nvidia-cards: 0
"""


@pytest.mark.parametrize(
    ("node", "count"),
    [("special-1", 7), ("special-2", 5), ("gpu-9", 5), ("cpu-1", 0), ("other", 1)],
)
def test_a_node_gets_the_first_section_that_matches_its_name(
    tmp_path: Path, node: str, count: int
) -> None:
    settings = load({"config": config_file(tmp_path, SECTIONS), "node-name": node})
    assert cards(settings)["nvidia"] == count


@pytest.mark.parametrize("node", ["a", "b", "elsewhere"])
def test_a_mistake_in_any_nodes_section_is_found_on_every_node(tmp_path: Path, node: str) -> None:
    text = """
    nodes:
      - {match: a, nvidia-cards: -1}
      - {match: b, nvidia-model: T5}
      - {match: c, nvidia-cord: 1}
      - {match: d, resource-name: cambricon.com/vmlu}
    """
    path = config_file(tmp_path, text)
    lines = problems_of(lambda: load({"config": path, "node-name": node}))
    for expected in (
        f"{path}: nodes[0].nvidia-cards: -1 is not allowed",
        f"{path}: nodes[1].nvidia-model: 'T5' is not allowed",
        f"{path}: nodes[2].nvidia-cord: there is no such key; did you mean nvidia-cards?",
        "'cambricon.com/vmlu' is taken",
    ):
        assert sum(expected in line for line in lines) == 1
    assert len(lines) == 4


def test_a_mistake_for_all_nodes_gets_one_line_whatever_sections_there_are(tmp_path: Path) -> None:
    path = config_file(tmp_path, "nvidia-cards: x\nnodes: [{match: a}, {match: b}]")
    assert len(problems_of(lambda: load({"config": path}))) == 1


def test_variables_of_a_service_named_like_us_are_no_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SERVICE_HOST", "SERVICE_PORT", "PORT", "PORT_80_TCP", "PORT_80_TCP_ADDR"):
        monkeypatch.setenv(f"HAMI_MOCK_{name}", "tcp://10.0.0.1:80")
    assert cards(load({}))["nvidia"] == 2


def test_the_longest_folder_that_is_allowed_holds_our_longest_socket_name() -> None:
    names = [
        offer.name_in_hami(word) for vendor in VENDORS for offer in vendor.offers
        for word in vendor.words
    ]  # fmt: skip
    lengths = [len(socket_name(name)) for name in names]
    folder = "/" + "x" * (LONGEST_SOCKET_PATH - 1)
    while len(folder) > 1:
        try:
            load({"socket-dir": folder})
            break
        except Exception:
            folder = folder[:-1]
    assert len(folder) > 40
    assert len(os.path.join(folder, "x" * max(lengths))) <= LONGEST_SOCKET_PATH  # noqa: PTH118


@dataclass(frozen=True)
class Bad:
    """A bad input, and what the one line about it must hold."""

    parts: tuple[str, ...]
    flags: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    file: str | bytes | None = None


def flag(name: str, value: str, *allowed: str) -> Bad:
    return Bad((f"--{name}: {value!r} is not allowed: it must be ", *allowed), {name: value})


def variable(name: str, value: str, *parts: str) -> Bad:
    return Bad((f"{name}: {value!r} is not allowed: it must be ", *parts), environ={name: value})


def in_file(text: str | bytes, *parts: str) -> Bad:
    return Bad(("{path}", *parts), file=text)


CARDS = "a whole number from 0 to 128"
SCALING = "a number above 0, at most 100"
FACTOR = "a whole number from 1 to 1048576, or auto"

BAD_INPUTS = [
    *(flag("nvidia-cards", value, CARDS) for value in ("x", "", "-1", "129", "1.5", "1e9", "nan")),
    *(flag(f"{key}-cards", "-3", CARDS) for key in ("mlu", "iluvatar", "ascend")),
    *(flag("nvidia-memory", v, "from 1 to 16777216") for v in ("0", "-5", "99999999999", "32G")),
    *(flag("nvidia-split", value, "from 1 to 1024") for value in ("0", "-1", "1025")),
    *(flag("nvidia-core-scaling", v, SCALING) for v in ("0", "-1", "nan", "inf", "101", "", "x")),
    *(flag("nvidia-memory-scaling", value, SCALING) for value in ("0", "-0.5", "NaN", "Infinity")),
    *(flag("ascend-memory-factor", value, FACTOR) for value in ("0", "-1", "often", "1.5", "")),
    flag("nvidia-model", "A101-SXM4-80GB", "NVIDIA model", "A100-SXM4-80GB"),
    flag("nvidia-model", "MLU590", "`hami-mock models`"),
    flag("ascend-model", "910B3x", "Ascend910B3"),
    flag("nvidia-model", "", "the name of a card model"),
    flag("resource-name", "a b", "without spaces"),
    flag("resource-name", "", "a resource name such as example.com/gpu"),
    flag("resource-mem", "x" * 254, "a resource name"),
    flag("node-name", "a b", "a node's name"),
    flag("node-name", "", "a node's name"),
    flag("node-name", "\udcff", "a node's name"),
    flag("socket-dir", "relative", "an absolute path"),
    flag("socket-dir", "", "an absolute path"),
    Bad(("--socket-dir: ", "x" * 100, "is not allowed", "bytes"), {"socket-dir": "/" + "x" * 100}),
    Bad(("--socket-dir: ", "is not allowed", "bytes"), {"socket-dir": "/" + "é" * 40}),
    *(flag("http-listen", v, "HOST:PORT") for v in ("80", "nonsense", "a b:80", ":x", ":65536")),
    *(flag("kubelet-version", v, "such as 1.36.4") for v in ("", "new", "1", "1.x")),
    flag("log-level", "loud", "one of debug, info, warning, error"),
    flag("log-format", "xml", "one of text, json"),
    flag("config", "", "a path"),
    Bad(("--config: can't read '/nowhere/x.yaml': No such file",), {"config": "/nowhere/x.yaml"}),
    Bad(("--config: can't read '/': Is a directory",), {"config": "/"}),
    Bad(
        ("--resource-cores: the resource name 'a/b' is taken by --resource-name",),
        {"resource-name": "a/b", "resource-cores": "a/b"},
    ),
    Bad(("'nvidia.com/gpu' is taken by --resource-name",), {"mlu-resource-name": "nvidia.com/gpu"}),
    variable("HAMI_MOCK_NVIDIA_CARDS", "many", CARDS),
    variable("HAMI_MOCK_NVIDIA_CARDS", "", CARDS),
    variable("HAMI_MOCK_LOG_LEVEL", "DEBUG", "one of debug"),
    variable("HAMI_MOCK_NVIDIA_MODEL", "T5", "T4"),
    variable("NODE_NAME", "a b", "a node's name"),
    variable("NODE_NAME", "\udcff", "a node's name"),
    Bad(
        ("HAMI_MOCK_NVIDIA_CARD: there is no such variable; did you mean HAMI_MOCK_NVIDIA_CARDS?",),
        environ={"HAMI_MOCK_NVIDIA_CARD": "1"},
    ),
    Bad(("--config: can't read '/nowhere'",), environ={"HAMI_MOCK_CONFIG": "/nowhere"}),
    in_file("nvidia-cards: yes", "nvidia-cards: True is not allowed", CARDS),
    in_file("nvidia-cards:", "nvidia-cards: None is not allowed", CARDS),
    in_file("nvidia-cards: [2]", "nvidia-cards: [2] is not allowed", CARDS),
    in_file("nvidia-cards: .nan", "nvidia-cards: nan is not allowed", CARDS),
    in_file("nvidia: {cards: 2.5}", "nvidia.cards: 2.5 is not allowed", CARDS),
    in_file("nvidia: {memory-scaling: .inf}", "nvidia.memory-scaling: inf", SCALING),
    in_file("nvidia: {core-scaling: on}", "nvidia.core-scaling: True", SCALING),
    in_file("nvidia: {memory-factor: no}", "nvidia.memory-factor: False", FACTOR),
    in_file("nvidia: {model: T5}", "nvidia.model: 'T5' is not allowed", "T4"),
    in_file("nvidia: {model: 100}", "nvidia.model: 100 is not allowed", "card model"),
    in_file("node-name: [a]", "node-name: ['a'] is not allowed", "a node's name"),
    in_file("nvidia-cord: 2", "nvidia-cord: there is no such key; did you mean nvidia-cards?"),
    in_file("nvidia: {modell: T4}", "nvidia.modell: there is no such key", "nvidia-model?"),
    in_file("vastai: {memory: 5}", "vastai.memory: there is no such key"),
    in_file("device-config-file: [a]", "device-config-file: ['a'] is not allowed", "a path"),
    Bad(("--device-config-file: can't read '/nowhere'",), {"device-config-file": "/nowhere"}),
    flag("hami", "perhaps", "on or off"),
    flag("nvidia-mode", "mix", "one of hami-core, mig, mps"),
    in_file("config: /x", "config: there is no such key"),
    in_file("1: 2", "1: there is no such key"),
    in_file("nvidia-groups: 4", "nvidia-groups: 4 is not allowed", "a list of groups"),
    in_file("nvidia-groups: [4]", "nvidia-groups[0]: 4 is not allowed", "a mapping"),
    in_file("nvidia-groups: [{cards: 0}]", "nvidia-groups[0].cards: 0", "from 1 to 128"),
    in_file("nvidia-groups: [{numa: 64}]", "nvidia-groups[0].numa: 64", "from 0 to 63"),
    in_file("nvidia-groups: [{nvlink: [[1]]}]", "nvidia-groups[0].nvlink: [[1]]", "from 0 to 0"),
    in_file("nvidia-groups: [{card: 1}]", "nvidia-groups[0].card: there is no", "mean cards?"),
    in_file("nvidia: {groups: [{}], cards: 2}", "nvidia.cards: nvidia-groups lists", "keep one"),
    in_file("nvidia-cards: 1\nnvidia-cards: 2", "not valid YAML", "'nvidia-cards' appears twice"),
    in_file(
        "nvidia-cards: 1\nnvidia: {cards: 2}", "nvidia.cards: sets the same option as nvidia-cards"
    ),
    in_file(
        "mlu-resource-memory-name: a/b\nascend-resource-memory-name: c/d",
        "ascend-resource-memory-name: sets the same option as",
        "mlu-resource-memory-name: keep one",
    ),
    in_file("[a, b]", "must be a mapping of options, not a list"),
    in_file("hello", "must be a mapping of options, not 'hello'"),
    in_file("a: [", "not valid YAML"),
    in_file(b"\xff\xfe\xfa", "can't read", "not UTF-8 text"),
    in_file("nodes: {a: 1}", "nodes: must be a list of sections"),
    in_file("nodes: [{match: [1]}]", "nodes[0].match: [1] must be a glob"),
    in_file("nodes: [{}]", "nodes[0]: must be a mapping with the key match"),
    in_file("nodes: [{match: zzz, cards: 1}]", "nodes[0].cards: there is no such key"),
    in_file("nodes: [{match: zzz, mlu: {cards: -1}}]", "nodes[0].mlu.cards: -1", CARDS),
    in_file("resource-name: a/b\nresource-mem: a/b", "resource-mem: the resource name 'a/b'"),
    in_file("socket-dir: relative", "socket-dir: 'relative' is not allowed", "an absolute path"),
]


@pytest.mark.parametrize("bad", BAD_INPUTS, ids=lambda bad: (" ".join(bad.parts))[:60])
def test_bad_input_is_one_line_of_place_value_and_what_is_allowed(
    bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bad.environ.items():
        monkeypatch.setenv(name, value)
    path = config_file(tmp_path, bad.file) if bad.file is not None else ""
    flags = {**bad.flags, "config": path} if path else bad.flags
    (line,) = problems_of(lambda: load(flags))
    for part in bad.parts:
        assert part.replace("{path}", path) in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("flags", "environ", "text", "expected"),
    [
        pytest.param(
            {"nvidia-cards": "x", "mlu-cards": "y"}, {}, "", ["--nvidia-cards", "--mlu-cards"],
            id="two flags",
        ),
        pytest.param(
            {"nvidia-cards": "x"},
            {"HAMI_MOCK_MLU_CARDS": "y"},
            "ascend-cards: z",
            ["--nvidia-cards", "HAMI_MOCK_MLU_CARDS", "{path}: ascend-cards"],
            id="flag, variable and file",
        ),
        pytest.param(
            {"nvidia-model": "T5", "mlu-model": "M5", "iluvatar-core-name": "iluvatar.ai/vgpu"},
            {},
            "",
            ["--nvidia-model", "--mlu-model", "--iluvatar-core-name"],
            id="models and a name",
        ),
        pytest.param(
            {"nvidia-cards": "x"},
            {"HAMI_MOCK_MLU_CARD": "", "HAMI_MOCK_LOG_LEVELS": ""},
            "",
            ["HAMI_MOCK_MLU_CARD", "HAMI_MOCK_LOG_LEVELS", "--nvidia-cards"],
            id="unknown variables and a bad flag",
        ),
        pytest.param(
            {"nvidia-cards": "x"}, {}, "a: [", ["{path}: not valid YAML", "--nvidia-cards"],
            id="bad YAML and a bad flag",
        ),
        pytest.param(
            {},
            {"HAMI_MOCK_MLU_CARD": "", "HAMI_MOCK_NVIDIA_CARDS": "x"},
            "",
            ["HAMI_MOCK_MLU_CARD:", "HAMI_MOCK_NVIDIA_CARDS"],
            id="an unknown variable and a bad one",
        ),
        pytest.param(
            {},
            {},
            "nvidia-cord: 1\nmlu-cards: x",
            ["{path}: nvidia-cord", "{path}: mlu-cards"],
            id="an unknown key and a bad value",
        ),
        pytest.param(
            {"nvidia-cards": "x", "nvidia-model": "T5"},
            {},
            "",
            ["--nvidia-cards", "--nvidia-model"],
            id="a bad number and an unknown model",
        ),
    ],
)  # fmt: skip
def test_each_of_several_mistakes_gets_its_line(
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: dict[str, str],
    environ: dict[str, str],
    text: str,
    expected: list[str],
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    path = config_file(tmp_path, text)
    lines = problems_of(lambda: load({**flags, "config": path}))
    starts = [part.replace("{path}", path) for part in expected]
    assert len(lines) == len(expected)
    assert all(any(line.startswith(start) for line in lines) for start in starts)


def test_a_variable_that_nobody_knows_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAMI_MOCK_IMAGE", "registry.example.com/hami-mock:1")
    assert load({}).warnings == ("HAMI_MOCK_IMAGE: there is no such variable; ignoring it",)


def test_every_general_option_is_an_attribute() -> None:
    fields = {field.name for field in dataclasses.fields(Settings)}
    assert fields == {option.field for option in GENERAL} | {"given", "section", "warnings"}


def test_settings_can_not_be_changed() -> None:
    with pytest.raises(AttributeError):
        load({}).node_name = "x"  # type: ignore[misc]


def test_hami_and_auto_can_not_be_together() -> None:
    flags = {"hami": "on", "nvidia-memory-factor": "auto"}
    (line,) = problems_of(lambda: load(flags))
    assert line.startswith("--nvidia-memory-factor: 'auto' is not allowed: it must be a number")
    assert load({**flags, "nvidia-cards": "0"}).hami


@pytest.mark.parametrize(("factor", "told"), [("auto", "'auto'"), ("2", "2")])
def test_hami_knows_no_factor_for_some_cards(factor: str, told: str) -> None:
    flags = {"hami": "on", "amd-cards": "1", "amd-memory-factor": factor}
    (line,) = problems_of(lambda: load(flags))
    assert line.startswith(f"--amd-memory-factor: {told} is not allowed: it must be 1 with")
    assert "HAMi's configuration has no memoryFactor for these cards" in line
    assert load({**flags, "amd-memory-factor": "1"}).hami
    assert not load({**flags, "hami": "off"}).hami


def test_the_node_side_of_hami_is_no_companion() -> None:
    (line,) = problems_of(lambda: load({"hami": "on", "source": "hami"}))
    assert line.startswith("--hami: an agent that acts as HAMi's node side can't accompany")
    assert load({"source": "hami"}).is_companion


@pytest.mark.parametrize("other", [{"hami": "on"}, {"source": "hami"}])
def test_hami_needs_plugins_of_ours(other: dict[str, str]) -> None:
    (name,) = other
    (line,) = problems_of(lambda: load({"device-plugins": "off", **other}))
    assert line.startswith("--device-plugins: off leaves the resources to a real plugin")
    assert f"--{name} needs hami-mock's own plugins" in line
    assert not load({"device-plugins": "off"}).device_plugins
