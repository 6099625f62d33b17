import json
import logging
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock import agent
from hami_mock.node.sizing import Node, Past, release
from hami_mock.settings.settings import Settings, load
from hami_mock.sources import unit_record
from hami_mock.sources.configured import configured_node
from tests.unit.builders import NODE, config_file, resource_named

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


def restarted(folder: Path, settings: Settings) -> Node:
    return configured_node(settings, None, unit_record.read(folder, settings))


def test_without_a_file_there_is_no_past(tmp_path: Path) -> None:
    assert unit_record.read(tmp_path, settings_of()) == Past()
    assert unit_record.read(tmp_path / "nowhere", settings_of()) == Past()


def test_numbers_are_the_same_after_a_round_trip(tmp_path: Path) -> None:
    node = grown()
    unit_record.write(tmp_path, node)
    assert keys(restarted(tmp_path, settings_of(60))) == keys(node)
    assert keys(configured_node(settings_of(60), None)) != keys(node)


def test_only_what_a_new_agent_would_not_choose_is_kept(tmp_path: Path) -> None:
    unit_record.write(tmp_path, grown())
    kept = json.loads((tmp_path / unit_record.FILE).read_text())
    # Cores and percentages are numbered through.
    assert set(kept) == {GPUMEM, ASCEND}
    assert [path.name for path in tmp_path.iterdir()] == [unit_record.FILE]


def test_the_file_is_removed_when_the_numbers_are_in_order_again(tmp_path: Path) -> None:
    first = changed(None, settings_of(50))
    unit_record.write(tmp_path, first)
    assert not list(tmp_path.iterdir())
    shrunk = release(changed(first, settings_of(40)), ())
    unit_record.write(tmp_path, shrunk)
    assert (tmp_path / unit_record.FILE).exists()
    unit_record.write(tmp_path, changed(shrunk, settings_of(50)))
    assert not list(tmp_path.iterdir())


@given(steps=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 3)), min_size=1, max_size=5))
def test_any_history_survives_a_restart(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("record")
    node = None
    for memory, cards in steps:
        settings = settings_of(memory, cards)
        node = release(changed(node, settings), ())
        unit_record.write(folder, node)
    assert node is not None
    assert keys(restarted(folder, settings)) == keys(node)


def test_units_stay_on_their_cards_although_the_flags_change_between_agents(
    socket_folder: Path,
) -> None:
    def started(config: str) -> Node:
        file = config_file(socket_folder, config)
        settings = load({**NO_OTHERS, "config": file, "socket-dir": str(socket_folder)})
        return anyio.run(agent._plan_at_start, settings)[0]

    unit_record.write(socket_folder, grown())
    before = resource_named(started("nvidia-memory: 70"), GPUMEM)
    after = resource_named(
        started("nvidia-groups: [{cards: 1, memory: 60}, {cards: 1, memory: 80}]"), GPUMEM
    )
    assert list(after.devices.counts.values()) == [60, 80]
    for card in before.cards:
        for device_id in before.devices.ids(card):
            assert after.devices.card_of(device_id) in (card.uuid, None)


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
    ],
)
def test_a_bad_file_is_passed_over_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str | bytes
) -> None:
    path = tmp_path / unit_record.FILE
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with caplog.at_level(logging.WARNING):
        assert unit_record.read(tmp_path, settings_of()) == Past()
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith(f"{path} is of no use, units are numbered anew: ")


def test_a_file_that_can_not_be_read_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / unit_record.FILE).mkdir()
    with caplog.at_level(logging.WARNING):
        assert unit_record.read(tmp_path, settings_of()) == Past()
    assert "is of no use" in caplog.text


def test_a_resource_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    unit_record.write(tmp_path, grown())
    settings = settings_of(60, resource_mem="example.com/mem")
    assert set(unit_record.read(tmp_path, settings).devices) == {ASCEND}
    node = restarted(tmp_path, settings)
    unit_record.write(tmp_path, node)
    assert set(json.loads((tmp_path / unit_record.FILE).read_text())) == {ASCEND}


def test_slots_need_no_record_even_under_the_name_of_units(tmp_path: Path) -> None:
    unit_record.write(tmp_path, grown())
    settings = settings_of(60, resource_name=GPUMEM, resource_mem="example.com/mem")
    assert set(unit_record.read(tmp_path, settings).devices) == {ASCEND}
    assert resource_named(restarted(tmp_path, settings), GPUMEM).count == 20


def test_a_folder_that_can_not_be_written_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "nowhere"
    with caplog.at_level(logging.WARNING):
        unit_record.write(folder, changed(None, settings_of(50)))
        assert caplog.records == []
        unit_record.write(folder, grown())
    (line,) = (record.getMessage() for record in caplog.records)
    assert line == (
        f"units will be numbered anew after a restart: {folder / unit_record.FILE}: "
        "No such file or directory"
    )
