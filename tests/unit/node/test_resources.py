from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hami_mock.errors import UnhealthyDevice, UnknownDevice
from hami_mock.kubelet import wire
from hami_mock.node.cards import Card
from hami_mock.node.resources import Resource
from hami_mock.vendors import Role
from tests.unit.builders import cards, seen_by_google, slot_resource, unit_resource

MOST_UNITS = 262_144
"""Units of three characters: 16 bytes each, 4 MiB to the byte."""


def small_resources() -> list[Resource]:
    return [
        slot_resource(cards(3), split=12),
        slot_resource(cards(2, numa=0), split=3),
        slot_resource(cards(2, numa=1), split=101),
        unit_resource([100, 100, 100], Role.CORES),
        unit_resource([7, 0, 5000, 1]),
        unit_resource([8000, 3000], Role.PERCENTAGE),  # beyond the IDs of three characters
    ]


RESOURCES = small_resources()
any_resource = st.sampled_from(RESOURCES)


def draw_cards(data: st.DataObject, resource: Resource) -> set[str]:
    return set(data.draw(st.sets(st.sampled_from([card.uuid for card in resource.cards]))))


def ids_on(resource: Resource, some: list[Card]) -> set[str]:
    return {device_id for card in some for device_id in resource.devices.ids(card)}


def test_slots_are_cards_times_split() -> None:
    resource = slot_resource(cards(3), split=12)
    assert resource.count == 36
    assert set(resource.devices.counts.values()) == {12}
    assert resource.has_slots


def test_units_are_the_sum_over_cards() -> None:
    resource = unit_resource([7, 0, 5])
    assert resource.count == 12
    assert list(resource.devices.counts.values()) == [7, 0, 5]
    assert not resource.has_slots


def test_slot_ids_are_the_cards_uuid_and_the_slot() -> None:
    resource = slot_resource(cards(1), split=3)
    uuid = resource.cards[0].uuid
    assert list(resource.devices.ids(resource.cards[0])) == [f"{uuid}-{slot}" for slot in range(3)]


@pytest.mark.parametrize(
    ("role", "unit"), [(Role.MEMORY, "1 MiB"), (Role.CORES, "1 %"), (Role.PERCENTAGE, "1 %")]
)
def test_units_say_what_they_stand_for(role: Role, unit: str) -> None:
    assert unit_resource([1], role).unit == unit
    assert slot_resource(cards(1)).unit == "slot"


@pytest.mark.parametrize("resource", RESOURCES)
def test_every_device_is_on_the_card_that_lists_it_and_no_id_is_there_twice(
    resource: Resource,
) -> None:
    everything = [(card, id_) for card in resource.cards for id_ in resource.devices.ids(card)]
    assert all(resource.devices.card_of(id_) == card.uuid for card, id_ in everything)
    assert len({id_ for _, id_ in everything}) == len(everything) == resource.count


@pytest.mark.parametrize(
    "suffix", ["-3", "-03", "-00", "--1", "-", "", "-x", "-٣", "-1 ", " -1", "-1.0", "-+1", "-1_0"]
)
def test_what_is_no_slot_is_on_no_card(suffix: str) -> None:
    resource = slot_resource(cards(1), split=3)
    assert resource.devices.card_of(resource.cards[0].uuid + suffix) is None


@pytest.mark.parametrize("device_id", ["", "-", "-0", "GPU-0", "000", "é", "GPU-x-0", "0" * 70])
def test_foreign_ids_are_on_no_card(device_id: str) -> None:
    assert slot_resource(cards(2)).devices.card_of(device_id) is None
    assert unit_resource([100], Role.CORES).devices.card_of(device_id) is None


def test_a_slot_number_of_thousands_of_digits_is_on_no_card() -> None:
    resource = slot_resource(cards(1))
    assert resource.devices.card_of(f"{resource.cards[0].uuid}-{'1' * 5000}") is None


def test_the_unit_after_the_last_is_on_no_card() -> None:
    short, long = unit_resource([10, 10]), unit_resource([10, 11])
    last = list(long.devices.ids(long.cards[1]))[-1]
    assert long.devices.card_of(last) == long.cards[1].uuid
    assert short.devices.card_of(last) is None


@given(resource=any_resource, text=st.text(max_size=6))
def test_any_text_is_on_a_card_only_if_that_card_lists_it(resource: Resource, text: str) -> None:
    cards = {card.uuid: card for card in resource.cards}
    uuid = resource.devices.card_of(text)
    assert uuid is None or text in set(resource.devices.ids(cards[uuid]))


@given(resource=any_resource, data=st.data())
def test_list_size_is_the_length_of_the_list(resource: Resource, data: st.DataObject) -> None:
    unhealthy = draw_cards(data, resource)
    assert resource.list_size(unhealthy) == len(resource.encode_list(unhealthy))


@given(resource=any_resource, data=st.data())
def test_google_reads_the_healthy_and_the_unhealthy_devices(
    google_messages: ModuleType, resource: Resource, data: st.DataObject
) -> None:
    unhealthy = draw_cards(data, resource)
    seen = seen_by_google(google_messages, resource.encode_list(unhealthy))
    sick = [card for card in resource.cards if card.uuid in unhealthy]
    well = [card for card in resource.cards if card.uuid not in unhealthy]
    assert {d.device_id for d in seen if d.health == "Healthy"} == ids_on(resource, well)
    assert {d.device_id for d in seen if d.health == "Unhealthy"} == ids_on(resource, sick)
    assert len(seen) == resource.count


@pytest.mark.parametrize("numa", [None, 0, 1])
def test_slots_are_on_their_cards_numa_node(google_messages: ModuleType, numa: int | None) -> None:
    seen = seen_by_google(google_messages, slot_resource(cards(2, numa=numa)).encode_list())
    assert {device.numa for device in seen} == {None if numa is None else (numa,)}


def test_units_have_no_numa_node(google_messages: ModuleType) -> None:
    seen = seen_by_google(google_messages, unit_resource([5]).encode_list())
    assert {device.numa for device in seen} == {None}


@pytest.mark.parametrize("sick", [set(), {0}, {3, 7}, set(range(8))], ids=str)
def test_a_full_list_stays_full_whichever_cards_fail(
    google_messages: ModuleType, sick: set[int]
) -> None:
    resource = unit_resource([MOST_UNITS // 8] * 8)
    assert resource.list_size() == wire.MESSAGE_LIMIT
    unhealthy = {resource.cards[index].uuid for index in sick}
    payload = resource.encode_list(unhealthy)
    assert len(payload) == wire.MESSAGE_LIMIT
    words = [device.health for device in seen_by_google(google_messages, payload)]
    assert words.count("Healthy") == MOST_UNITS // 8 * (8 - len(sick))
    assert set(words) <= {"Healthy", "Unknown"}


@settings(max_examples=20)
@given(
    missing=st.integers(0, 2000),
    share=st.floats(0, 1),
    sick=st.sets(st.integers(0, 1)),
)
def test_no_health_pushes_a_list_that_fits_over_the_limit(
    missing: int, share: float, sick: set[int]
) -> None:
    total = MOST_UNITS - missing
    first = int(total * share)
    resource = unit_resource([first, total - first])
    unhealthy = {resource.cards[index].uuid for index in sick}
    assert len(resource.encode_list(unhealthy)) <= wire.MESSAGE_LIMIT


@pytest.mark.parametrize("missing", [1, 100, 2000])
def test_the_full_word_is_sent_for_as_long_as_it_fits(missing: int) -> None:
    """Each missing unit leaves 16 bytes, and the full word takes 2 more than Healthy."""
    total, most = MOST_UNITS - missing, 8 * missing
    fits, too_many = (
        unit_resource([most, total - most]),
        unit_resource([most + 1, total - most - 1]),
    )
    exact = fits.encode_list({fits.cards[0].uuid})
    assert len(exact) == wire.MESSAGE_LIMIT
    assert exact.count(wire.UNHEALTHY) == most
    assert exact.count(wire.UNKNOWN) == 0
    short = too_many.encode_list({too_many.cards[0].uuid})
    assert short.count(wire.UNHEALTHY) == 0
    assert short.count(wire.UNKNOWN) == most + 1
    assert len(short) == too_many.list_size()


def test_the_size_of_a_list_can_be_asked_for_either_word() -> None:
    resource = unit_resource([10, 20])
    sick = {resource.cards[0].uuid}
    assert resource.list_size(sick, wire.UNKNOWN) == resource.list_size()
    assert resource.list_size(sick, wire.UNHEALTHY) == resource.list_size() + 20


def test_cards_of_gives_each_card_once_by_index() -> None:
    resource = slot_resource(cards(3))
    first, second, third = resource.cards
    ids = [f"{third.uuid}-1", f"{first.uuid}-0", f"{third.uuid}-0"]
    assert resource.cards_of(ids) == (first, third)
    assert resource.cards_of([]) == ()
    assert second not in resource.cards_of(ids)


def test_cards_of_an_unknown_device_is_an_error_that_names_it() -> None:
    resource = slot_resource(cards(1))
    with pytest.raises(UnknownDevice, match=r"nvidia\.com/gpu: there is no device 'nope'"):
        resource.cards_of([f"{resource.cards[0].uuid}-0", "nope"])


@pytest.mark.parametrize("resource", RESOURCES[:4])
def test_cards_of_an_unhealthy_device_is_an_error_that_names_device_and_card(
    resource: Resource,
) -> None:
    card = resource.cards[1]
    device_id = next(iter(resource.devices.ids(card)))
    with pytest.raises(UnhealthyDevice) as caught:
        resource.cards_of([device_id], {card.uuid})
    assert repr(device_id) in str(caught.value)
    assert card.uuid in str(caught.value)


def test_the_unhealthy_card_of_another_resource_is_no_obstacle() -> None:
    resource = slot_resource(cards(2))
    first, second = resource.cards
    assert resource.cards_of([f"{first.uuid}-0"], {second.uuid, "GPU-elsewhere"}) == (first,)


@pytest.mark.parametrize(("per_card", "unit"), [(100, "1 %"), (16, "1 core"), (None, "1 core")])
def test_a_unit_of_compute_is_a_percent_or_a_core(per_card: int | None, unit: str) -> None:
    resource = unit_resource([100], Role.CORES)
    assert replace(resource, offer=resource.offer._replace(per_card=per_card)).unit == unit
