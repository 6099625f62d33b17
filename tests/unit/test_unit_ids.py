import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.unit_ids import ALPHABET, BASE, Columns, UnitIds
from hami_mock.vendors import VENDORS, Offer, Role

OFFERS = [offer for vendor in VENDORS for offer in vendor.offers if offer.heads]
SHORT = BASE**2
"""How many IDs of three characters one head has."""


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


@given(first=st.sampled_from(OFFERS), second=st.sampled_from(OFFERS), data=st.data())
def test_an_id_of_one_resource_is_foreign_to_all_others(
    first: Offer, second: Offer, data: st.DataObject
) -> None:
    own, other = UnitIds(first.heads), UnitIds(second.heads)
    id_ = own.encode(data.draw(st.integers(0, own.capacity - 1)))
    assert (other.decode(id_) is None) == (first is not second)


@given(heads=st.sampled_from(["@", "xy"]), span=ranges)
def test_columns_hold_the_ids_that_encode_gives(heads: str, span: tuple[int, int]) -> None:
    ids = UnitIds(heads)
    first, count = span
    numbers = range(first, first + count)
    found = [id_ for block in ids.columns((numbers,)) for id_ in as_strings(block)]
    assert found == [ids.encode(number) for number in numbers]


@given(heads=st.sampled_from(["@", "xy"]), span=ranges)
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


def test_the_alphabet_has_no_character_that_json_escapes_and_none_twice() -> None:
    assert not set(b'<>&"\\') & set(ALPHABET)
    assert len(set(ALPHABET)) == BASE
    assert all(0x20 < character < 0x7F for character in ALPHABET)


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.combinations(OFFERS, 2)), ids=lambda offer: offer.name
)
def test_no_two_offers_share_a_head(first: Offer, second: Offer) -> None:
    assert not set(first.heads) & set(second.heads)


@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.name)
def test_heads_are_of_the_alphabet_and_none_is_there_twice(offer: Offer) -> None:
    heads = offer.heads.encode()
    assert set(heads) <= set(ALPHABET)
    assert len(set(heads)) == len(heads)


@pytest.mark.parametrize(
    "offer", [o for o in OFFERS if o.role is Role.MEMORY], ids=lambda offer: offer.name
)
def test_a_full_memory_list_needs_three_characters_only(offer: Offer) -> None:
    ids = UnitIds(offer.heads)
    assert list(ids.lengths((range(262_144),))) == [(3, 262_144)]
