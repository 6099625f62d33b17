import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.node.devices import CountedUnits, Devices
from hami_mock.node.sizing import Node, Past, release
from hami_mock.settings.settings import Settings, load
from hami_mock.sources import unit_record
from hami_mock.sources.configured import configured_node
from tests.unit.builders import NODE, resource_named

GPUMEM = "nvidia.com/gpumem"
ASCEND = "huawei.com/Ascend910-memory"
NO_OTHERS = {"node-name": NODE, "mlu-cards": "0", "iluvatar-cards": "0", "ascend-cards": "0"}


def settings_of(memory: int = 50, cards: int = 2, **flags: object) -> Settings:
    sizes = {"nvidia_memory": memory, "nvidia_cards": cards, "ascend_memory": memory}
    values = {**sizes, "mlu_cards": 0, "iluvatar_cards": 0, **flags}
    named = {name.replace("_", "-"): str(value) for name, value in values.items()}
    return load({"node-name": NODE, **named})


def changed(before: Node | None, settings: Settings) -> Node:
    devices = {r.name: r.devices for r in before.resources} if before else {}
    return configured_node(settings, None, Past(devices))


def grown() -> Node:
    """A node whose units aren't numbered through any more."""
    return changed(changed(None, settings_of(50)), settings_of(60))


def keys(node: Node) -> dict[str, object]:
    return {resource.name: resource.devices.key for resource in node.resources}


def devices_of(node: Node) -> dict[str, Devices]:
    return {resource.name: resource.devices for resource in node.resources}


def restarted(folder: Path, settings: Settings) -> Node:
    kept = unit_record.read(folder, settings)
    return configured_node(settings, None, Past(kept, unlisted=kept))


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert unit_record.read(tmp_path, settings_of()) == {}
    assert unit_record.read(tmp_path / "nowhere", settings_of()) == {}


def test_numbers_are_the_same_after_a_round_trip(tmp_path: Path) -> None:
    node = grown()
    unit_record.write(tmp_path, devices_of(node))
    assert keys(restarted(tmp_path, settings_of(60))) == keys(node)
    assert keys(configured_node(settings_of(60), None)) != keys(node)
    assert [path.name for path in tmp_path.iterdir()] == [unit_record.FILE]


def test_which_stand_in_the_status_is_kept_beside_the_numbers(tmp_path: Path) -> None:
    devices = devices_of(grown())
    before = json.loads(_written(tmp_path, devices))
    in_status = {GPUMEM: CountedUnits({}), "example.com/cores": CountedUnits({})}
    after = json.loads(_written(tmp_path, devices | in_status))
    # What a version before this one reads is as it was, but for what has gone to the status.
    assert after.pop("in the Node's status") == {"resources": sorted(in_status)}
    assert after == {name: own for name, own in before.items() if name != GPUMEM}
    read = unit_record.read(tmp_path, settings_of(60))
    assert {name for name, own in read.items() if isinstance(own, CountedUnits)} == {*in_status}
    assert read.keys() == before.keys() | in_status.keys()


def _written(folder: Path, devices: dict[str, Devices]) -> bytes:
    unit_record.write(folder, devices)
    return (folder / unit_record.FILE).read_bytes()


def test_retired_units_are_kept_too(tmp_path: Path) -> None:
    shrunk = changed(changed(None, settings_of(50)), settings_of(40))
    unit_record.write(tmp_path, devices_of(shrunk))
    settings = settings_of(40)
    again = configured_node(settings, None, Past(unit_record.read(tmp_path, settings)))
    assert again.retired > 0
    units = {r.name: r.devices.key for r in shrunk.resources if not r.has_slots}
    assert {name: key for name, key in keys(again).items() if name in units} == units


def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """It had only the numbers, under the resource's name."""
    node = grown()
    unit_record.write(tmp_path, devices_of(node))
    path = tmp_path / unit_record.FILE
    cards = {name: entry["cards"] for name, entry in json.loads(path.read_text()).items()}
    path.write_text(json.dumps({name: cards[name] for name in (GPUMEM, ASCEND)}))
    assert keys(restarted(tmp_path, settings_of(60))) == keys(node)


@given(steps=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 3)), min_size=1, max_size=5))
def test_any_history_survives_a_restart(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("record")
    node = None
    for memory, cards in steps:
        settings = settings_of(memory, cards)
        node = release(changed(node, settings), ())
        unit_record.write(folder, devices_of(node))
    assert node is not None
    assert keys(restarted(folder, settings)) == keys(node)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "7",
        '{"nvidia.com/gpumem": []}',
        '{"nvidia.com/gpumem": {"GPU-1": 5}}',
        '{"nvidia.com/gpumem": {"GPU-1": [[1]]}}',
        '{"nvidia.com/gpumem": {"GPU-1": [["a", "b"]]}}',
        '{"nvidia.com/gpumem": {"GPU-1": [[-5, 5]]}}',
        '{"nvidia.com/gpumem": {"GPU-1": [[5, 5]]}}',
        '{"nvidia.com/gpumem": {"GPU-1": [[0, 10]], "GPU-2": [[9, 12]]}}',
        '{"nvidia.com/gpumem": {"GPU-1": [[0, 10], [3, 4]]}}',
        '{"nvidia.com/gpumem": {"GPU-1": [[0, 1000000000000]]}}',
        b"\xff\xfe",
        '{"in the Node\'s status": 5}',
        '{"in the Node\'s status": ["nvidia.com/gpumem"]}',
        '{"in the Node\'s status": {"resources": 5}}',
    ],
)
def test_a_bad_file_is_passed_over_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str | bytes
) -> None:
    path = tmp_path / unit_record.FILE
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with caplog.at_level(logging.WARNING):
        assert unit_record.read(tmp_path, settings_of()) == {}
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith(f"{path} can't be used, so units are renumbered: ")


def test_a_file_that_can_not_be_read_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / unit_record.FILE).mkdir()
    with caplog.at_level(logging.WARNING):
        assert unit_record.read(tmp_path, settings_of()) == {}
    assert "can't be used" in caplog.text


def test_slots_need_no_record_even_under_the_name_of_units(tmp_path: Path) -> None:
    unit_record.write(tmp_path, devices_of(grown()))
    settings = settings_of(60, resource_name=GPUMEM, resource_mem="example.com/mem")
    assert resource_named(restarted(tmp_path, settings), GPUMEM).count == 20


def test_units_of_another_kind_under_the_same_name_are_not_taken_for_these(tmp_path: Path) -> None:
    unit_record.write(tmp_path, devices_of(grown()))
    settings = settings_of(60, resource_cores=GPUMEM, resource_mem="example.com/mem")
    new = configured_node(settings, None)
    assert keys(restarted(tmp_path, settings))[GPUMEM] == keys(new)[GPUMEM]
