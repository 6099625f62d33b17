import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kubelet.unit_ids import ALPHABET, BASE, LEAD, Columns, UnitIds
from hami_mock.vendors import VENDORS, Offer, Role
from tests.makers import ASCEND, NVIDIA
from tests.unit.builders import offer_of

OFFERS = [offer for vendor in VENDORS for offer in vendor.offers if offer.heads]
SHORT = BASE**2
"""How many IDs of three characters one head has."""


def starts(offer: Offer) -> set[str]:
    """What the IDs of an offer can begin with."""
    lead = LEAD if offer.heads.startswith(LEAD) else ""
    return {lead + head for head in offer.heads.removeprefix(lead)}


def as_strings(columns: Columns) -> list[str]:
    return ["".join(id_) for id_ in zip(*(column.decode() for column in columns), strict=True)]


ranges = st.tuples(
    st.one_of(
        st.integers(0, SHORT + BASE**3 - 300),
        st.integers(SHORT - 300, SHORT + 10),
        st.integers(0, BASE),
    ),
    st.integers(0, 300),
)


@given(offer=st.sampled_from(OFFERS), data=st.data())
def test_every_number_comes_back_from_its_id(offer: Offer, data: st.DataObject) -> None:
    ids = UnitIds(offer.heads)
    number = data.draw(st.integers(0, ids.capacity - 1))
    assert ids.decode(ids.encode(number)) == number


@pytest.mark.parametrize("number", [0, BASE - 1, BASE, SHORT - 1, SHORT, SHORT + BASE**3 - 1])
def test_numbers_at_the_borders_come_back_from_their_ids(number: int) -> None:
    ids = UnitIds("@")
    assert ids.decode(ids.encode(number)) == number


def test_the_first_ids_of_two_heads_are_those_of_the_first_head() -> None:
    ids = UnitIds("xy")
    assert [ids.encode(number) for number in (0, 1, 10, BASE)] == ["x00", "x01", "x0A", "x10"]
    assert ids.encode(SHORT) == "y00"
    assert ids.encode(2 * SHORT) == "x000"


def test_ids_behind_the_lead_are_one_character_longer() -> None:
    ids = UnitIds("{AB")
    assert [ids.encode(number) for number in (0, SHORT, 2 * SHORT)] == ["{A00", "{B00", "{A000"]
    assert ids.capacity == 2 * (SHORT + BASE**3)


FIRST_IDS = {
    "resource-cores": "@00",
    "resource-mem": "000",
    "resource-mem-percentage": "%00",
    "iluvatar-core-name": "^00",
    "ascend-resource-memory-name": "Y00",
    "mlu-memory-name": "{A00",
    "mlu-core-name": "{B00",
    "iluvatar-memory-name": "{C00",
    "ascend-resource-core-name": "{D00",
    "hygon-resource-memory-name": "{E00",
    "hygon-resource-core-name": "{F00",
    "metax-resource-memory-name": "{G00",
    "metax-resource-core-name": "{H00",
    "enflame-resource-memory-name": "{I00",
    "enflame-resource-core-name": "{J00",
    "mthreads-resource-memory-name": "{K00",
    "mthreads-resource-core-name": "{L00",
    "kunlun-resource-memory-name": "{M00",
    "awsneuron-resource-core-name": "{N00",
    "amd-resource-memory-name": "{O00",
    "amd-resource-core-name": "{P00",
}


def test_ids_never_change_from_one_release_to_the_next() -> None:
    """A running pod holds these IDs: whoever changes them breaks the pods of every node."""
    assert {offer.flag: UnitIds(offer.heads).encode(0) for offer in OFFERS} == FIRST_IDS


@given(st.text())
def test_a_text_is_either_foreign_or_the_id_of_its_number(text: str) -> None:
    ids = UnitIds("0123")
    number = ids.decode(text)
    assert number is None or ids.encode(number) == text


@pytest.mark.parametrize(
    "text",
    ["", "@", "@0", "@0000", "000", "@é0", "é00", "@0€", "@ 0", "@\n0", "@<0", "@0&", '@"0', "@\\0",
     "@0\x00", "@٣0", "\U0001f60000", "000@"],
)  # fmt: skip
def test_malformed_and_foreign_ids_have_no_number(text: str) -> None:
    assert UnitIds("@").decode(text) is None


@pytest.mark.parametrize("text", ["", "{", "{A", "A00", "A000", "{B00", "{A0", "{{A00", "{A0000"])
def test_behind_the_lead_too(text: str) -> None:
    assert UnitIds("{A").decode(text) is None


@given(first=st.sampled_from(OFFERS), second=st.sampled_from(OFFERS), data=st.data())
def test_an_id_of_one_resource_is_foreign_to_all_others(
    first: Offer, second: Offer, data: st.DataObject
) -> None:
    own, other = UnitIds(first.heads), UnitIds(second.heads)
    id_ = own.encode(data.draw(st.integers(0, own.capacity - 1)))
    assert (other.decode(id_) is None) == (first is not second)


@given(heads=st.sampled_from(["@", "xy", "{A", "{xy"]), span=ranges)
def test_columns_hold_the_ids_that_encode_gives(heads: str, span: tuple[int, int]) -> None:
    ids = UnitIds(heads)
    first, count = span
    numbers = range(first, first + count)
    found = [id_ for block in ids.columns((numbers,)) for id_ in as_strings(block)]
    assert found == [ids.encode(number) for number in numbers]


@given(heads=st.sampled_from(["@", "xy", "{A", "{xy"]), span=ranges)
def test_lengths_agree_with_columns(heads: str, span: tuple[int, int]) -> None:
    ids = UnitIds(heads)
    numbers = (range(span[0], sum(span)),)
    blocks = [(len(block), len(block[0])) for block in ids.columns(numbers)]
    assert list(ids.lengths(numbers)) == blocks


def test_columns_over_the_border_come_in_two_widths() -> None:
    assert [len(block) for block in UnitIds("@").columns((range(SHORT - 1, SHORT + 1),))] == [3, 4]


def test_the_last_number_has_an_id_and_the_next_one_none() -> None:
    ids = UnitIds("@")
    assert ids.capacity == SHORT + BASE**3
    assert len(ids.encode(ids.capacity - 1)) == 4
    with pytest.raises(IndexError):
        ids.encode(ids.capacity)


@pytest.mark.parametrize(("heads", "longest"), [("@", 4), ("{A", 5)])
def test_numbers_without_an_id_count_with_one_character_more(heads: str, longest: int) -> None:
    """A list that is refused for its size must be refused with its size."""
    ids = UnitIds(heads)
    lengths = list(ids.lengths((range(ids.capacity + 10), range(ids.capacity + 20, 10**9))))
    assert [length for length, _ in lengths] == [longest - 1, longest, longest + 1]
    assert sum(many for _, many in lengths) == 10**9 - 10


def test_the_alphabet_has_no_character_that_json_escapes_and_none_twice() -> None:
    assert not set(b'<>&"\\') & set(ALPHABET)
    assert len(set(ALPHABET)) == BASE
    assert all(0x20 < character < 0x7F for character in ALPHABET)


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.combinations(OFFERS, 2)), ids=lambda offer: offer.flag
)
def test_no_two_offers_share_a_head(first: Offer, second: Offer) -> None:
    assert not starts(first) & starts(second)


def test_the_lead_is_no_head() -> None:
    assert LEAD not in {start for offer in OFFERS for start in starts(offer)}
    assert LEAD.encode() in ALPHABET


@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.flag)
def test_heads_are_of_the_alphabet_and_none_is_there_twice(offer: Offer) -> None:
    heads = offer.heads.encode()
    assert set(heads) <= set(ALPHABET)
    assert len(set(heads)) == len(heads)


@pytest.mark.parametrize(
    "offer", [offer_of(vendor, Role.MEMORY) for vendor in (NVIDIA, ASCEND)], ids=lambda o: o.name
)
def test_a_full_memory_list_needs_three_characters_only(offer: Offer) -> None:
    ids = UnitIds(offer.heads)
    assert list(ids.lengths((range(262_144),))) == [(3, 262_144)]
