"""What HAMi's configuration says of the plugins that this agent stands for."""

from pathlib import Path

import pytest

from hami_mock.node.sizing import Node
from hami_mock.settings.settings import Settings, VendorSettings
from hami_mock.sources.configured import configured_node
from hami_mock.vendors.scheduling import AllowedProfiles
from tests.unit.builders import NODE, counts, problems_of
from tests.unit.settings.test_device_config_layer import loaded

CHIP = """
vnpus:
  hamiVnpuCore: true
  configs:
  - chipName: 910B3
    commonWord: Ascend910B3
    resourceName: huawei.com/Ascend910B3
    resourceMemoryName: huawei.com/Ascend910B3-memory
    memoryAllocatable: 60000
    aiCore: 24
    templates:
    - {name: large, memory: 30000}
    - {name: small, memory: 10000}
    - {name: middle, memory: 15000}
"""


def vendor(settings: Settings, key: str) -> VendorSettings:
    return next(each for each in settings.vendors if each.vendor.prefix == key)


def words(folder: Path, text: str) -> dict[str, str]:
    return dict(vendor(loaded(folder, text, node_name="n"), "nvidia").plugin.words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nvidia: {libCudaLogLevel: 3}", {"log_level": "3"}),
        ("nvidia: {libCudaLogLevel: ''}", {"log_level": ""}),
        ("nvidia: {disableCoreLimit: true}", {"core_policy": "disable"}),
        ("nvidia: {disableCoreLimit: false}", {"core_policy": ""}),
        ("nvidia: {deviceSplitCount: 5}", {}),
        ("nodeconfig: [{name: n, libcudaloglevel: '4'}]", {"log_level": "4"}),
        (
            "nvidia: {libCudaLogLevel: 3}\n"
            "nodeconfig: [{name: n, libcudaloglevel: ''}, {name: m, libcudaloglevel: '4'}]",
            {"log_level": "3"},
        ),
    ],
)
def test_words_for_nvidias_variables(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    assert words(tmp_path, text) == expected


def test_the_side_of_hami_knows_them(tmp_path: Path) -> None:
    side = vendor(loaded(tmp_path, "nvidia: {libCudaLogLevel: 3}", hami="on"), "nvidia").hami
    assert side is not None
    assert side.plugin.words == {"log_level": "3"}


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("nvidia: {deviceSplitCount: 5}", None),
        ("nvidia: {deviceSplitCount: 5, migProfileAllowlist: []}", ()),
        (
            "nvidia: {migProfileAllowlist: [{models: [A30, 5], profiles: [1g.6gb, 2g.12gb]}]}",
            (AllowedProfiles(("A30", "5"), ("1g.6gb", "2g.12gb")),),
        ),
    ],
)
def test_what_cards_may_be_cut_into(tmp_path: Path, text: str, allowed: object) -> None:
    assert vendor(loaded(tmp_path, text), "nvidia").plugin.allowed == allowed


def node(folder: Path, text: str, **flags: str) -> Node:
    return configured_node(loaded(folder, text, node_name=NODE, **flags), None)


def offered(made: Node) -> dict[str, list[int]]:
    return {each.name: [card.index for card in each.cards] for each in made.resources}


@pytest.mark.parametrize("hami", ["on", "off"])
def test_filtered_cards_are_on_the_node_and_nobody_offers_them(tmp_path: Path, hami: str) -> None:
    flags = {"hami": hami, "vendors": "nvidia", "nvidia_cards": "4"}
    uuid = node(tmp_path, "nvidia: {deviceSplitCount: 10}", **flags).cards[2].uuid
    text = f"nodeconfig: [{{name: {NODE}, filterdevices: {{uuid: [{uuid}], index: [0, 9]}}}}]"
    made = node(tmp_path, text, **flags)
    assert len(made.cards) == 4
    found = offered(made)
    assert len(found) == 4
    assert all(indices == [1, 3] for indices in found.values())
    assert counts(made)["nvidia.com/gpumem"] == 2 * 32768


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"nodeconfig: [{{name: {NODE}, filterdevices: {{index: [0, 1]}}}}]", None),
        ("nodeconfig: [{name: other, filterdevices: {index: [0]}}]", [0, 1]),
        # An entry that filters nothing doesn't undo one before it.
        (
            f"nodeconfig: [{{name: {NODE}, filterdevices: {{index: [1]}}}}, "
            f"{{name: {NODE}, filterdevices: {{}}}}]",
            [0],
        ),
    ],
    ids=["all", "of another node", "twice"],
)
def test_which_cards_are_filtered(tmp_path: Path, text: str, left: list[int] | None) -> None:
    found = offered(node(tmp_path, text, vendors="nvidia"))
    assert found.get("nvidia.com/gpu") == left


def test_mps_is_a_mode_to_report(tmp_path: Path) -> None:
    text = "nodeconfig: [{name: n, operatingmode: mps}]"
    side = vendor(loaded(tmp_path, text, node_name="n", hami="on"), "nvidia").hami
    assert side is not None
    assert side.mode == "mps"


def test_a_chips_memory_cores_and_slots_in_whatever_order_its_templates_are(tmp_path: Path) -> None:
    settings = loaded(tmp_path, CHIP, hami="on", vendors="ascend", node_name=NODE)
    side = vendor(settings, "ascend").hami
    assert side is not None
    assert (side.split, side.vendor.memory, side.vendor.cores) == (6, 60000, 24)
    made = counts(configured_node(settings, None))
    assert made["huawei.com/Ascend910B3-memory"] == 2 * 60000
    assert made["huawei.com/Ascend910B3"] == 12
    chosen = counts(node(tmp_path, CHIP, hami="on", vendors="ascend", ascend_memory="1000"))
    assert chosen["huawei.com/Ascend910B3-memory"] == 2000


NODES = """
nodes:
- {name: soft, hami-vnpu-core: true, vDeviceCount: 9}
- {name: hard, filterDevices: {index: [1]}}
- {name: hard, hami-vnpu-core: true}
"""


@pytest.mark.parametrize(
    ("name", "mode", "split", "cards"),
    [("soft", "hami-core", 9, 2), ("hard", "template", 6, 1), ("other", "hami-core", 6, 2)],
)
def test_single_nodes_of_ascends_plugin(
    tmp_path: Path, name: str, mode: str, split: int, cards: int
) -> None:
    settings = loaded(tmp_path, CHIP + NODES, hami="on", vendors="ascend", node_name=name)
    side = vendor(settings, "ascend").hami
    assert side is not None
    assert (side.mode, side.split) == (mode, split)
    assert len(configured_node(settings, None).resources[0].cards) == cards


def test_a_mistake_in_them_is_said_with_its_place(tmp_path: Path) -> None:
    text = CHIP + "nodes: [{name: a, vDeviceCount: x, filterDevices: {index: [y]}}, {}]"
    assert [line.rpartition("device-config.yaml: ")[2].split(": ")[0] for line in problems_of(
        lambda: loaded(tmp_path, text)
    )] == ["nodes[0].vDeviceCount", "nodes[0].filterDevices.index[0]", "nodes[1].name"]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "variable", "expected"),
    [
        ({}, None, False),
        ({}, "true", True),
        ({}, "TRUE", False),
        ({"hami_topology_score": "on"}, None, True),
        ({"hami_topology_score": "off"}, "true", False),
    ],
)
def test_scores_are_for_those_who_want_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: dict[str, str],
    variable: str | None,
    *,
    expected: bool,
) -> None:
    if variable is not None:
        monkeypatch.setenv("ENABLE_TOPOLOGY_SCORE", variable)
    text = "nvidia: {resourceCountName: nvidia.com/gpu}"
    side = vendor(loaded(tmp_path, text, hami="on", **flags), "nvidia").hami
    assert side is not None
    assert side.has_scores is expected
