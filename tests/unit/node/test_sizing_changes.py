"""What a change of the configuration does to devices that pods may hold."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from hami_mock.kubelet.unit_ids import UnitIds
from hami_mock.kubelet.wire import MESSAGE_LIMIT
from hami_mock.node.sizing import Node, Past, release
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from tests.unit.builders import NODE, config_file, counts, problems_of, resource_named

GPU = "nvidia.com/gpu"
GPUCORES = "nvidia.com/gpucores"
GPUMEM = "nvidia.com/gpumem"
ONLY_NVIDIA = {"mlu_cards": 0, "iluvatar_cards": 0, "ascend_cards": 0}


def changed(before: Node | None, held: Collection[str] | None = None, **flags: Any) -> Node:
    """The node of these flags, after another one."""
    values = {"node-name": NODE}
    for name, value in {**ONLY_NVIDIA, **flags}.items():
        values[name.replace("_", "-")] = str(value)
    devices = {r.name: r.devices for r in before.resources} if before else {}
    return configured_node(load(values), None, Past(devices, held))


def ids(node: Node, name: str, index: int = 0) -> list[str]:
    resource = resource_named(node, name)
    return list(resource.devices.ids(resource.cards[index]))


def retired(node: Node) -> dict[str, list[int]]:
    return {r.name: list(r.devices.retired.values()) for r in node.resources if r.devices.retired}


def groups(folder: Path, *memories: int) -> str:
    listed = ", ".join(f"{{cards: 1, memory: {memory}}}" for memory in memories)
    return config_file(folder, f"nvidia-groups: [{listed}]")


def test_no_change_leaves_every_device_as_it_is() -> None:
    before = changed(None, nvidia_memory=50)
    after = changed(before, nvidia_memory=50)
    assert [r.devices.key for r in after.resources] == [r.devices.key for r in before.resources]
    assert after.retired == 0


def test_what_has_no_place_any_more_is_retired_in_every_resource() -> None:
    before = changed(None, nvidia_cards=3, nvidia_memory=50, nvidia_split=4)
    after = changed(before, nvidia_cards=2, nvidia_memory=40, nvidia_split=3)
    assert counts(after) == {GPU: 6, GPUCORES: 200, GPUMEM: 80, f"{GPUMEM}-percentage": 200}
    assert retired(after) == {
        GPU: [1, 1, 4],
        GPUCORES: [100],
        GPUMEM: [10, 10, 50],
        f"{GPUMEM}-percentage": [100],
    }
    assert after.retired == 6 + 100 + 70 + 100
    assert ids(after, GPUMEM, 1) == ids(before, GPUMEM, 1)[:40]


def test_a_release_lets_what_nobody_holds_go_and_nothing_else() -> None:
    before = changed(None, nvidia_cards=2, nvidia_memory=50)
    after = changed(before, nvidia_cards=1, nvidia_memory=50)
    held = {ids(before, GPUMEM, 1)[7], ids(before, GPUMEM, 0)[7], ids(before, GPU, 1)[3]}
    released = release(after, held)
    assert retired(released) == {GPU: [1], GPUMEM: [1]}
    assert counts(released) == counts(after)
    assert release(released, ()).retired == 0


def test_a_release_leaves_resources_without_retired_devices_as_they_are() -> None:
    before = changed(None, nvidia_memory=50)
    after = changed(before, nvidia_memory=40)
    released = release(after, ())
    assert resource_named(released, GPU) is resource_named(after, GPU)


def test_the_past_of_another_resource_under_the_same_name_is_no_past() -> None:
    before = changed(None, nvidia_memory=100)
    # Now the name of the memory is that of the cores, whose IDs begin otherwise.
    after = changed(before, nvidia_memory=100, resource_cores=GPUMEM, resource_mem="x.com/mem")
    cores = resource_named(after, GPUMEM)
    assert isinstance(cores.devices, UnitDevices)
    assert cores.devices.heads == "@"
    assert cores.devices.key == UnitDevices.make(UnitIds("@"), dict.fromkeys(cores.cards, 100)).key
    assert after.retired == 0


def test_slots_after_units_of_the_same_name_begin_anew() -> None:
    before = changed(None, nvidia_memory=100)
    after = changed(before, nvidia_memory=100, resource_name=GPUMEM, resource_mem="x.com/mem")
    assert resource_named(after, GPUMEM).count == 20
    assert after.retired == 0


def test_a_factor_retires_the_units_that_are_too_many() -> None:
    before = changed(None, nvidia_memory=100)
    after = changed(before, nvidia_memory=100, nvidia_memory_factor=10)
    assert counts(after)[GPUMEM] == 20
    assert retired(after) == {GPUMEM: [90, 90]}
    assert resource_named(after, GPUMEM).unit == "10 MiB"


def test_retired_devices_that_leave_no_room_are_an_error_that_says_what_to_do(
    tmp_path: Path,
) -> None:
    before = changed(None, config=groups(tmp_path, 200_000, 10))
    config = groups(tmp_path, 10, 200_000)
    (line,) = problems_of(lambda: changed(before, config=config))
    for part in (GPUMEM, "400000 devices", str(MESSAGE_LIMIT), "199990 of them", "remove devices"):
        assert part in line


def test_with_the_holders_known_only_the_held_ones_need_room(tmp_path: Path) -> None:
    before = changed(None, config=groups(tmp_path, 200_000, 10))
    held = ids(before, GPUMEM)[100_000:100_500:5]
    after = changed(before, held, config=groups(tmp_path, 10, 200_000))
    assert counts(after)[GPUMEM] == 200_010
    assert retired(after) == {GPUMEM: [100]}
    memory = resource_named(after, GPUMEM)
    assert all(memory.devices.card_of(i) == memory.cards[0].uuid for i in held)
    every = {card.uuid for card in memory.cards}
    for unhealthy in (set(), every):
        assert len(memory.encode_list(unhealthy)) <= MESSAGE_LIMIT


def test_too_many_held_ones_are_an_error_with_their_number(tmp_path: Path) -> None:
    before = changed(None, config=groups(tmp_path, 200_000, 10))
    held = ids(before, GPUMEM)[50_000:]
    config = groups(tmp_path, 10, 200_000)
    (line,) = problems_of(lambda: changed(before, held, config=config))
    assert "150000 of them no longer fit" in line


def test_units_that_move_from_card_to_card_in_a_full_list_must_go_first(tmp_path: Path) -> None:
    """Their numbers aren't free yet, and the IDs of higher ones are longer."""
    before = changed(None, config=groups(tmp_path, 200_000, 62_144))
    config = groups(tmp_path, 62_144, 200_000)
    (line,) = problems_of(lambda: changed(before, (), config=config))
    assert "remove devices first" in line
    assert "memory factor" not in line
    between = release(changed(before, (), config=groups(tmp_path, 62_144, 62_144)), ())
    after = changed(between, (), config=groups(tmp_path, 62_144, 200_000))
    assert resource_named(after, GPUMEM).list_size() == MESSAGE_LIMIT


def test_what_is_too_much_by_itself_still_gets_the_factor_that_fits(tmp_path: Path) -> None:
    before = changed(None, config=groups(tmp_path, 200_000, 10))
    config = groups(tmp_path, 10, 400_000)
    (line,) = problems_of(lambda: changed(before, (), config=config))
    assert "the smallest memory factor that fits is 2" in line


@pytest.mark.parametrize("memories", [(262_143, 1), (1, 262_143), (131_072, 131_072)], ids=str)
def test_a_list_that_was_accepted_never_gets_too_long(
    tmp_path: Path, memories: tuple[int, int]
) -> None:
    """Whichever of the cards fail: with retired units in it, up to the last byte."""
    first, second = memories
    before = changed(None, config=groups(tmp_path, first, second))
    after = changed(before, config=groups(tmp_path, max(first - 50, 1), max(second - 50, 1)))
    memory = resource_named(after, GPUMEM)
    uuids = [card.uuid for card in memory.cards]
    for unhealthy in (set(), {uuids[0]}, {uuids[1]}, set(uuids)):
        assert len(memory.encode_list(unhealthy)) <= MESSAGE_LIMIT
