import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.node.cards import card_uuid, make_cards
from hami_mock.vendors import VENDORS, Vendor
from tests.makers import ASCEND, CAMBRICON, ILUVATAR, NVIDIA
from tests.unit.builders import NODE, group

HEX_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


@pytest.mark.parametrize(
    ("vendor", "index", "uuid"),
    [
        (NVIDIA, 0, "GPU-84198e32-d337-5d17-a759-b6db05fa06e6"),
        (NVIDIA, 1, "GPU-e83b247a-a2fc-5116-9308-084dcbc7b256"),
        (CAMBRICON, 0, "MLU-f72b17d4-8013-5349-a42c-7ffb4549c1fd"),
        (CAMBRICON, 1, "MLU-96a9c74d-a6f2-58a8-8947-03bdc219def8"),
        (ILUVATAR, 0, "GPU-66edf125-2455-5638-b5bf-92aa2fca64a7"),
        (ILUVATAR, 1, "GPU-9a63b9f8-42b8-597d-a3b5-ab898d2ace2d"),
        (ASCEND, 0, "5C8B32A3-7B510063-8DA38A9F-C6307A9E-70C43DC6"),
        (ASCEND, 1, "0FC2F6E7-0AB0838C-FD24C6E6-204D4069-D909748F"),
    ],
)
def test_uuids_never_change_from_one_release_to_the_next(
    vendor: Vendor, index: int, uuid: str
) -> None:
    """A running pod holds these IDs: whoever changes them breaks the pods of every node."""
    assert card_uuid("node-a", vendor, index) == uuid


@given(node=st.text(min_size=1, max_size=40), index=st.integers(0, 200))
@pytest.mark.parametrize(
    ("vendor", "form"),
    [
        (NVIDIA, f"GPU-{HEX_UUID}"),
        (CAMBRICON, f"MLU-{HEX_UUID}"),
        (ILUVATAR, f"GPU-{HEX_UUID}"),
        (ASCEND, r"[0-9A-F]{8}(-[0-9A-F]{8}){4}"),
    ],
    ids=lambda value: value.prefix if isinstance(value, Vendor) else "",
)
def test_uuids_have_their_vendors_form(vendor: Vendor, form: str, node: str, index: int) -> None:
    assert re.fullmatch(form, card_uuid(node, vendor, index))


def test_no_two_cards_of_any_node_vendor_or_index_share_a_uuid() -> None:
    places = list(itertools.product(("node-a", "node-b", "node-a/1"), VENDORS, range(130)))
    uuids = {card_uuid(node, vendor, index) for node, vendor, index in places}
    assert len(uuids) == len(places)


def test_no_two_cards_of_a_node_are_plugged_in_at_the_same_place() -> None:
    cards = [
        c
        for vendor in VENDORS
        for c in make_cards(NODE, vendor, [group(vendor, numa=[None] * 128)])
    ]
    places = {card.pci_bus_id for card in cards}
    assert len(places) == len(cards)
    assert all(re.fullmatch(r"[0-9A-F]{8}:[0-9A-F]{2}:00\.0", place) for place in places)
    serials = {card.serial for card in cards}
    assert len(serials) == len(cards)
    assert all(re.fullmatch(r"[0-9]{13}", serial) for serial in serials)
    assert [card.minor for card in cards[:128]] == list(range(128))


def test_places_and_serials_never_change_either() -> None:
    """New vendors go to the end of the table: the place of a card has its vendor's position."""
    first = [make_cards("node-a", vendor, [group(vendor)])[1] for vendor in VENDORS[:4]]
    assert [(card.name, card.pci_bus_id, card.serial) for card in first] == [
        ("nvidia/1", "00000000:1C:00.0", "6186005679679"),
        ("mlu/1", "00000001:1C:00.0", "4516392460240"),
        ("iluvatar/1", "00000002:1C:00.0", "5288683029161"),
        ("ascend/1", "00000003:1C:00.0", "4649209472012"),
    ]


def test_a_slot_id_of_the_longest_uuid_has_at_most_63_characters() -> None:
    assert max(len(card_uuid(NODE, vendor, 0)) for vendor in VENDORS) + len("-1023") <= 63


def test_cards_are_numbered_through_all_groups() -> None:
    cards = make_cards(NODE, NVIDIA, [group(numa=[0, 0]), group(numa=[1])])
    assert [card.index for card in cards] == [0, 1, 2]
    assert [card.uuid for card in cards] == [card_uuid(NODE, NVIDIA, index) for index in range(3)]


def test_each_card_is_on_the_numa_node_of_its_place_in_its_group() -> None:
    cards = make_cards(NODE, NVIDIA, [group(numa=[0, 1]), group(numa=[None]), group(numa=[1, 3])])
    assert [card.numa for card in cards] == [0, 1, None, 1, 3]


def test_links_join_cards_of_one_group_only() -> None:
    pair = frozenset({0, 1})
    cards = make_cards(
        NODE,
        NVIDIA,
        [
            group(numa=[0] * 4, links=[pair, frozenset({3})]),
            group(numa=[0] * 2, links=[pair]),
            group(numa=[0]),
        ],
    )
    links = [card.link for card in cards]
    assert links[0] == links[1] is not None
    assert links[4] == links[5] is not None
    assert links[2] is links[6] is None
    assert len({links[0], links[3], links[4]}) == 3


def test_cards_of_a_group_have_its_model_and_memory() -> None:
    cards = make_cards(NODE, NVIDIA, [group(numa=[None], memory=1000), group(numa=[None])])
    assert [card.memory for card in cards] == [1000, 32768]
    assert {card.model.name for card in cards} == {NVIDIA.model}


def test_no_groups_make_no_cards() -> None:
    assert make_cards(NODE, NVIDIA, []) == ()


@pytest.mark.parametrize(
    ("vendor", "by_uuid"),
    [(NVIDIA, True), (ILUVATAR, True), (CAMBRICON, False), (ASCEND, False)],
    ids=lambda value: value.prefix if isinstance(value, Vendor) else "",
)
def test_a_container_sees_a_card_as_its_vendor_names_it(vendor: Vendor, by_uuid: bool) -> None:
    card = make_cards(NODE, vendor, [group(vendor)])[1]
    assert card.visible_as == (card.uuid if by_uuid else "1")
