from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.errors import DeviceError
from hami_mock.node.resources import Resource
from hami_mock.views.deviceplugin.preference import prefer
from tests.unit.builders import cards, slot_resource


def ids_of(resource: Resource, *indexes: int) -> list[str]:
    """All slots of the cards with these indexes; of all cards without any."""
    wanted = indexes or range(len(resource.cards))
    return [id_ for index in wanted for id_ in resource.devices.ids(resource.cards[index])]


def slot(resource: Resource, card: int, number: int = 0) -> str:
    return f"{resource.cards[card].uuid}-{number}"


def cards_used(resource: Resource, chosen: list[str]) -> Counter[int]:
    indexes = {card.uuid: card.index for card in resource.cards}
    found = [resource.devices.card_of(id_) for id_ in chosen]
    return Counter(indexes[uuid] for uuid in found if uuid is not None)


def linked(*links: set[int], count: int, split: int = 4) -> Resource:
    return slot_resource(cards(count, links=[frozenset(link) for link in links]), split)


def test_slots_come_from_different_cards() -> None:
    resource = slot_resource(cards(4))
    assert cards_used(resource, prefer(resource, ids_of(resource), [], 3)) == {0: 1, 1: 1, 2: 1}


def test_the_lowest_slots_of_the_first_cards_come_first() -> None:
    resource = slot_resource(cards(2), split=12)
    expected = [slot(resource, 0, 0), slot(resource, 1, 0)]
    assert prefer(resource, ids_of(resource), [], 2) == expected


def test_slot_10_comes_after_slot_9() -> None:
    resource = slot_resource(cards(1), split=12)
    available = [slot(resource, 0, 9), slot(resource, 0, 10)]
    assert prefer(resource, available, [], 1) == [slot(resource, 0, 9)]


def test_a_container_of_more_slots_than_cards_gets_them_spread_evenly() -> None:
    resource = slot_resource(cards(3), split=4)
    used = cards_used(resource, prefer(resource, ids_of(resource), [], 8))
    assert sorted(used.values()) == [2, 3, 3]


def test_all_slots_can_be_had() -> None:
    resource = slot_resource(cards(3), split=4)
    assert set(prefer(resource, ids_of(resource), [], 12)) == set(ids_of(resource))


def test_the_emptiest_card_comes_first_so_that_load_spreads() -> None:
    resource = slot_resource(cards(3), split=4)
    available = [*ids_of(resource, 0)[:2], *ids_of(resource, 1)[:3], *ids_of(resource, 2)[:1]]
    assert cards_used(resource, prefer(resource, available, [], 1)) == {1: 1}


def test_linked_cards_come_before_emptier_ones() -> None:
    resource = linked({1, 3}, count=4)
    available = [*ids_of(resource, 0, 2), slot(resource, 1), slot(resource, 3)]
    assert cards_used(resource, prefer(resource, available, [], 2)) == {1: 1, 3: 1}


def test_the_smallest_link_that_is_enough_is_taken() -> None:
    resource = linked({0, 1, 2, 3}, {4, 5}, count=6)
    chosen = prefer(resource, ids_of(resource), [], 2)
    assert cards_used(resource, chosen) == {4: 1, 5: 1}


def test_the_largest_link_is_taken_first_where_none_is_enough() -> None:
    resource = linked({0, 1}, {2, 3, 4}, count=6)
    used = cards_used(resource, prefer(resource, ids_of(resource), [], 4))
    assert set(used) > {2, 3, 4}
    assert len(used) == 4


def test_one_slot_does_not_break_into_a_link_for_its_own_sake() -> None:
    resource = linked({1, 2}, count=3)
    assert cards_used(resource, prefer(resource, ids_of(resource), [], 1)) == {0: 1}


def test_what_must_be_included_is_and_decides_the_link() -> None:
    resource = linked({0, 1}, {2, 3}, count=4)
    must = [slot(resource, 3, 2)]
    chosen = prefer(resource, ids_of(resource), must, 2)
    assert chosen[0] == must[0]
    assert cards_used(resource, chosen) == {3: 1, 2: 1}


def test_what_must_be_included_counts_as_its_cards_slot() -> None:
    resource = slot_resource(cards(3))
    must = [slot(resource, 0, 5), slot(resource, 0, 6)]
    chosen = prefer(resource, ids_of(resource), must, 4)
    assert set(must) < set(chosen)
    assert cards_used(resource, chosen) == {0: 2, 1: 1, 2: 1}


def test_the_card_of_what_must_be_included_gives_no_more_although_it_is_the_emptiest() -> None:
    resource = slot_resource(cards(2))
    available = [*ids_of(resource, 0), slot(resource, 1, 9)]
    chosen = prefer(resource, available, [slot(resource, 0, 5)], 2)
    assert cards_used(resource, chosen) == {0: 1, 1: 1}


def test_what_must_be_included_may_be_all() -> None:
    resource = slot_resource(cards(2))
    must = [slot(resource, 1), slot(resource, 0)]
    assert set(prefer(resource, ids_of(resource), must, 2)) == set(must)


def test_nothing_asked_is_nothing_given() -> None:
    resource = slot_resource(cards(2))
    assert prefer(resource, ids_of(resource), [], 0) == []


@st.composite
def requests(draw: st.DrawFn) -> tuple[Resource, list[str], list[str], int]:
    count = draw(st.integers(1, 6))
    positions = draw(st.permutations(range(count)))
    cut = draw(st.integers(0, count))
    links = [frozenset(part) for part in (positions[:cut], positions[cut:]) if part]
    resource = slot_resource(cards(count, links=links), draw(st.integers(1, 4)))
    available = draw(st.lists(st.sampled_from(ids_of(resource)), unique=True))
    size = draw(st.integers(0, len(available)))
    must = draw(st.permutations(available))[: draw(st.integers(0, size))]
    return resource, available, must, size


@given(request=requests(), data=st.data())
def test_the_answer_is_the_same_in_whatever_order_the_question_comes(
    request: tuple[Resource, list[str], list[str], int], data: st.DataObject
) -> None:
    resource, available, must, size = request
    shuffled = data.draw(st.permutations(available))
    again = prefer(resource, shuffled, must[::-1], size)
    assert again == prefer(resource, available, must, size)


@given(requests())
def test_the_answer_has_the_size_asked_for_of_what_is_available(
    request: tuple[Resource, list[str], list[str], int],
) -> None:
    resource, available, must, size = request
    chosen = prefer(resource, available, must, size)
    assert len(set(chosen)) == len(chosen) == size
    assert set(must) <= set(chosen) <= set(available)


@given(requests())
def test_no_card_gives_a_second_slot_while_another_could_give_its_first(
    request: tuple[Resource, list[str], list[str], int],
) -> None:
    resource, available, _, size = request
    used = cards_used(resource, prefer(resource, available, [], size))
    offered = cards_used(resource, available)
    assert len(used) == min(size, len(offered))


@pytest.mark.parametrize(
    ("size", "must"),
    [(21, 0), (1, 2), (-1, 0)],
    ids=["more than there are", "fewer than must be", "negative"],
)
def test_a_size_that_can_not_be_is_an_error(size: int, must: int) -> None:
    resource = slot_resource(cards(2))
    available = ids_of(resource)
    with pytest.raises(DeviceError, match=rf"can.t choose {size} of 20 .* {must} must be"):
        prefer(resource, available, available[:must], size)


@pytest.mark.parametrize("must_include", [False, True])
def test_an_unknown_id_is_an_error_that_names_it(must_include: bool) -> None:
    resource = slot_resource(cards(2))
    available = [*ids_of(resource), "GPU-nope-0"]
    with pytest.raises(DeviceError, match="there is no device 'GPU-nope-0'"):
        prefer(resource, available, ["GPU-nope-0"] if must_include else [], 2)


def test_slots_of_assigned_cards_come_before_all_others() -> None:
    resource = linked({0, 1}, count=4)
    assigned = [resource.cards[3].uuid, resource.cards[2].uuid]
    chosen = prefer(resource, ids_of(resource), [], 2, assigned)
    assert cards_used(resource, chosen) == {2: 1, 3: 1}


def test_slices_all_come_from_the_one_assigned_card() -> None:
    resource = slot_resource(cards(3), split=4)
    chosen = prefer(resource, ids_of(resource), [], 3, [resource.cards[1].uuid])
    assert cards_used(resource, chosen) == {1: 3}


def test_an_assigned_card_that_is_full_leaves_the_choice_to_the_others() -> None:
    resource = slot_resource(cards(3), split=2)
    available = [*ids_of(resource, 0, 2), slot(resource, 1)]
    chosen = prefer(resource, available, [], 3, [resource.cards[1].uuid])
    assert cards_used(resource, chosen) == {0: 1, 1: 1, 2: 1}


def test_what_must_be_included_counts_for_its_card() -> None:
    resource = slot_resource(cards(3), split=4)
    assigned = [resource.cards[1].uuid, resource.cards[2].uuid]
    must = [slot(resource, 1, 3)]
    chosen = prefer(resource, ids_of(resource), must, 2, assigned)
    assert chosen == [*must, slot(resource, 2, 0)]


def test_cards_that_nobody_has_steer_nothing() -> None:
    resource = slot_resource(cards(2))
    assert prefer(resource, ids_of(resource), [], 1, ["GPU-x"]) == [slot(resource, 0, 0)]
