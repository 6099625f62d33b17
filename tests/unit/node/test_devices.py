"""Devices while their cards grow, shrink, come and go: a device never becomes another one."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hami_mock.kubelet import wire
from hami_mock.kubelet.unit_ids import BASE, UnitIds
from hami_mock.node.cards import Card
from hami_mock.node.devices import Devices, SlotDevices
from hami_mock.node.resources import Resource
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.vendors import Role
from tests.unit.builders import cards, slot_resource, unit_resource

CARDS = cards(4)
A, B, C, D = (card.uuid for card in CARDS)
HEADS = "@"
BORDER = len(HEADS) * BASE * BASE
"""The first number whose ID has four characters."""


def units(per_card: Sequence[int], before: UnitDevices | None = None) -> UnitDevices:
    """So many units on each of the first cards; None for a card that isn't there."""
    wanted = dict(zip(CARDS, per_card, strict=False))
    return before.resized(wanted) if before else UnitDevices.make(UnitIds(HEADS), wanted)


def resource_of(devices: Devices, on: Sequence[Card]) -> Resource:
    plain = (
        slot_resource(CARDS)
        if isinstance(devices, SlotDevices)
        else unit_resource([1], Role.PERCENTAGE)
    )
    return replace(plain, cards=tuple(on), devices=devices)


def listed(resource: Resource, *state: set[str]) -> dict[str, str]:
    """ID → health, as the kubelet reads it."""
    pairs = list(wire.read_devices(resource.encode_list(*state)))
    assert len(dict(pairs)) == len(pairs), "an ID stands twice"
    return dict(pairs)


def active(resource: Resource) -> dict[str, str]:
    """ID → card of what is not retired."""
    return {i: card.uuid for card in resource.cards for i in resource.devices.ids(card)}


def retired(resource: Resource) -> dict[str, str | None]:
    """ID → card of what stands in the list without being active."""
    own = active(resource)
    return {i: resource.devices.card_of(i) for i in listed(resource) if i not in own}


def per_card(owners: Mapping[str, str | None]) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    for uuid in owners.values():
        found[uuid] = found.get(uuid, 0) + 1
    return found


def test_units_are_numbered_through_from_the_first_card_to_the_last() -> None:
    devices = units([3, 0, 5])
    assert devices.numbers == {A: (range(3),), B: (), C: (range(3, 8),)}
    assert not devices.retired


def test_a_unit_that_stays_keeps_its_number_when_a_card_before_it_shrinks() -> None:
    devices = units([5, 5], units([10, 5]))
    assert devices.numbers == {A: (range(5),), B: (range(10, 15),)}
    assert devices.retired == {A: 5}


def test_a_card_that_grows_gets_new_numbers_where_there_is_room() -> None:
    devices = units([12, 5], units([10, 5]))
    assert devices.numbers == {A: (range(10), range(15, 17)), B: (range(10, 15),)}
    assert not devices.retired


def test_gaps_that_a_release_left_are_filled_first() -> None:
    shrunk = units([4, 5], units([10, 5])).keep_retired(())
    assert not shrunk.retired
    grown = units([4, 5, 8], shrunk)
    assert grown.numbers == {A: (range(4),), B: (range(10, 15),), C: (range(4, 10), range(15, 17))}


def test_nobody_gets_the_number_of_a_retired_unit() -> None:
    grown = units([4, 5, 8], units([10, 5]))
    assert grown.retired == {A: 6}
    assert grown.numbers[C] == (range(15, 23),)


def test_what_was_cut_last_comes_back_first() -> None:
    once = units([7], units([10]))
    twice = units([4], once)
    assert units([7], twice).numbers == {A: (range(7),)}
    assert units([7], twice).retired == {A: 3}


def test_shrinking_and_growing_back_leaves_no_trace() -> None:
    before = units([10, 5])
    devices = before
    for count in (4, 10, 0, 7, 10):
        devices = units([count, 5], devices)
    assert devices.key == before.key


def test_of_retired_units_that_nobody_lists_no_number_is_free() -> None:
    shrunk = units([4, 5], units([10, 5]))
    reserved = shrunk.keep_retired(None)
    fifth = UnitIds(HEADS).encode(5)
    assert (reserved.counts, reserved.retired) == ({A: 4, B: 5}, {})
    assert reserved.owned == shrunk.owned == {A: (range(4), range(4, 10)), B: (range(10, 15),)}
    assert reserved.owner(fifth) == (A, True)
    # Neither for another card, nor after one more change; the card itself gets them back.
    grown = units([4, 5, 8], reserved)
    assert (grown.numbers[C], grown.retired) == ((range(15, 23),), {})
    assert units([8, 5, 8], grown).numbers[A] == (range(8),)
    cut = units([2, 5], reserved)
    assert cut.retired == {A: 2}
    assert cut.owned[A] == (range(2), range(2, 4), range(4, 10))
    # Who is known to hold one is listed again.
    assert reserved.keep_retired({fifth}).retired == {A: 1}
    assert units([4, 5, 8], reserved.keep_retired(())).numbers[C] == (range(4, 10), range(15, 17))


def test_a_card_that_went_and_comes_back_gets_its_units_back() -> None:
    before = units([3, 4, 5])
    gone = before.resized({CARDS[0]: 3, CARDS[2]: 5})
    assert (gone.counts, gone.retired) == ({A: 3, C: 5}, {B: 4})
    assert units([3, 4, 5], gone).key == before.key


def test_scattered_units_are_kept_as_long_as_they_are_held() -> None:
    before = units([9, 2])
    held = {i for n, i in enumerate(before.ids(CARDS[0])) if n % 3 == 1}
    devices = units([0, 2], before).keep_retired(held)
    resource = resource_of(devices, CARDS[:2])
    assert retired(resource) == dict.fromkeys(held, A)
    assert devices.retired == {A: 3}
    grown = units([0, 4], devices)
    assert grown.numbers[B] == (range(9, 11), range(1), range(2, 3))
    # Its own come back before others are taken.
    assert set(held) <= set(units([4, 2], devices).ids(CARDS[0]))


def test_a_release_leaves_the_active_units_alone_whoever_holds_them() -> None:
    before = units([5, 5], units([8, 5]))
    released = before.keep_retired(set(before.ids(CARDS[1])))
    assert (released.numbers, released.retired) == (before.numbers, {})


@pytest.mark.parametrize("foreign", ["", "nope", "000", "é€@", "@", "GPU-1-0"])
def test_a_release_passes_over_what_others_hold(foreign: str) -> None:
    assert units([2], units([5])).keep_retired({foreign}).retired == {}
    slots = SlotDevices(CARDS[:1], 5).resized(CARDS[:1], 2)
    assert slots.keep_retired({foreign}).retired == {}


def test_units_grow_over_the_border_of_longer_ids() -> None:
    before = units([BORDER - 2, 1])
    grown = units([BORDER - 2, 4], before)
    lengths = [len(i) for i in grown.ids(CARDS[1])]
    assert lengths == [3, 3, 4, 4]
    resource = resource_of(grown, CARDS[:2])
    assert len(listed(resource)) == BORDER + 2
    assert resource.list_size() == len(resource.encode_list())


def test_a_slot_that_stays_is_the_same_slot() -> None:
    devices = SlotDevices(CARDS[:2], 4).resized(CARDS[1:3], 2)
    resource = resource_of(devices, CARDS[1:3])
    assert set(active(resource)) == {f"{uuid}-{slot}" for uuid in (B, C) for slot in (0, 1)}
    assert retired(resource) == {
        **{f"{A}-{slot}": A for slot in range(4)},
        **{f"{B}-{slot}": B for slot in (2, 3)},
    }
    assert devices.retired == {A: 4, B: 2}
    assert devices.resized(CARDS[:2], 4).counts == {A: 4, B: 4}
    assert devices.resized(CARDS[:2], 4).retired == {C: 2}


def test_retired_slots_have_no_numa_node() -> None:
    on = cards(1, numa=1)
    devices = SlotDevices(on, 2).resized(on, 1)
    assert next(iter(devices.encode_retired(on[0].uuid, wire.UNHEALTHY))) == wire.device(
        f"{on[0].uuid}-1", wire.UNHEALTHY
    )


def test_a_quarter_of_a_million_units_with_scattered_holders_are_renumbered_in_time() -> None:
    """The kubelet hands units out at random: what is held is no run of numbers."""
    first, second = cards(2)
    before = UnitDevices.make(UnitIds("0123456789ABCDEFGHIJKLMNOPQRSTUVWX"), {first: 200_000})
    held = {i for n, i in enumerate(before.ids(first)) if n % 4 < 2}
    scattered = before.resized({first: 0}).keep_retired(held)
    started = time.perf_counter()
    grown = scattered.resized({first: 0, second: 120_000})
    assert time.perf_counter() - started < 5
    assert grown.counts == {first.uuid: 0, second.uuid: 120_000}
    assert grown.retired == {first.uuid: 100_000}


@dataclass
class Holders:
    """What pods hold of a resource, and on which card each device was when they got it."""

    cards: dict[str, str] = field(default_factory=dict)

    def take(self, resource: Resource, data: st.DataObject) -> None:
        free = sorted(active(resource).items())
        if free:
            self.cards |= data.draw(st.sets(st.sampled_from(free), max_size=8), label="taken")

    def end_some(self, data: st.DataObject) -> None:
        if self.cards:
            ended = data.draw(st.sets(st.sampled_from(sorted(self.cards))), label="ended")
            self.cards = {i: uuid for i, uuid in self.cards.items() if i not in ended}


def check_all_is_well(resource: Resource, holders: Holders, data: st.DataObject) -> None:
    devices = resource.devices
    own, cut = active(resource), retired(resource)
    assert len(own) == resource.count, "an active ID stands twice"
    assert per_card(cut) == devices.retired
    assert all(devices.owner(i) == (uuid, False) for i, uuid in own.items())
    assert all(devices.owner(i) == (uuid, True) for i, uuid in cut.items())
    everything = own | cut
    for device_id, uuid in holders.cards.items():
        assert everything.get(device_id) == uuid, f"held {device_id} is not where it was"
    on = [card.uuid for card in resource.cards]
    sick, lost = (set(data.draw(st.sets(st.sampled_from(on)))) if on else set() for _ in "ab")
    seen = listed(resource, sick, lost)
    assert {i for i, health in seen.items() if health == "Healthy"} == {
        i for i, uuid in own.items() if uuid not in sick | lost
    }
    assert seen.keys() == cut.keys() | {i for i, uuid in own.items() if uuid not in lost}
    assert resource.list_size(sick, lost=lost) == len(resource.encode_list(sick, lost))


def check_the_step(before: Resource, after: Resource) -> None:
    """Nothing vanished or moved."""
    old, new = active(before) | retired(before), active(after) | retired(after)
    assert all(new.get(i) == uuid for i, uuid in old.items())


def check_what_is_new(before: Resource, after: Resource) -> None:
    """No card got new units as long as it had retired ones."""
    old, new = active(before) | retired(before), active(after)
    for uuid in {uuid for i, uuid in new.items() if i not in old}:
        assert uuid not in after.devices.retired
        assert after.devices.counts[uuid] > per_card(old).get(uuid, 0)


sizes = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=len(CARDS))


beginnings = st.sampled_from(
    [
        UnitDevices(UnitIds(HEADS), {}),
        # As after long use: over the border of longer IDs, scattered, with retired runs between.
        UnitDevices(
            UnitIds(HEADS),
            {A: (range(BORDER - 3, BORDER + 2), range(1, 2)), B: (range(5, 7),)},
            {A: (range(BORDER + 2, BORDER + 4), range(3, 4)), C: (range(8, 9), range(10, 11))},
        ),
    ]
)


@settings(max_examples=60)
@given(start=beginnings, steps=st.lists(sizes, min_size=1, max_size=8), data=st.data())
@example(start=UnitDevices(UnitIds(HEADS), {}), steps=[[5, 5], [2, 9], [9, 2]], data=None)
def test_units_stay_the_same_through_any_changes(
    start: UnitDevices, steps: list[list[int | None]], data: st.DataObject | None
) -> None:
    devices, holders = start, Holders()
    resource = resource_of(devices, [card for card in CARDS if card.uuid in devices.counts])
    for wanted in steps:
        counts = {c: n for c, n in zip(CARDS, wanted, strict=False) if n is not None}
        devices = devices.resized(counts)
        before, resource = resource, resource_of(devices, tuple(counts))
        assert devices.counts == {card.uuid: count for card, count in counts.items()}
        check_the_step(before, resource)
        check_what_is_new(before, resource)
        if data is None:
            continue
        check_all_is_well(resource, holders, data)
        holders.take(resource, data)
        if data.draw(st.booleans(), label="release"):
            holders.end_some(data)
            was = retired(resource)
            devices = devices.keep_retired(set(holders.cards))
            resource = resource_of(devices, tuple(counts))
            assert retired(resource) == {i: u for i, u in was.items() if i in holders.cards}
            check_all_is_well(resource, holders, data)


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.sets(st.integers(0, 3)), st.integers(1, 12)), min_size=1, max_size=6
    ),
    data=st.data(),
)
def test_slots_stay_the_same_through_any_changes(
    steps: list[tuple[set[int], int]], data: st.DataObject
) -> None:
    devices, holders = SlotDevices((), 1), Holders()
    resource = resource_of(devices, ())
    for some, split in steps:
        on = [CARDS[index] for index in sorted(some)]
        devices = devices.resized(on, split)
        before, resource = resource, resource_of(devices, on)
        assert devices.counts == {card.uuid: split for card in on}
        check_the_step(before, resource)
        check_all_is_well(resource, holders, data)
        holders.take(resource, data)
        if data.draw(st.booleans(), label="release"):
            holders.end_some(data)
            was = retired(resource)
            devices = devices.keep_retired(set(holders.cards))
            resource = resource_of(devices, on)
            assert retired(resource) == {i: u for i, u in was.items() if i in holders.cards}
            check_all_is_well(resource, holders, data)
