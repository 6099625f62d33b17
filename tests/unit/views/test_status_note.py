import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.views.status_note import ANNOTATION, read, write

NAMES = st.builds("{}/{}".format, st.text(max_size=20), st.text(max_size=20))


@given(st.dictionaries(NAMES, st.integers(0, 2**62)), st.sets(NAMES))
def test_what_is_noted_is_read_again(amounts: dict[str, int], others: set[str]) -> None:
    confirmed = {*list(amounts)[::2], *others}
    text = write(amounts, confirmed)
    found = read({ANNOTATION: text} if text is not None else {})
    assert found == {n: count if n in confirmed else None for n, count in amounts.items()}


def test_no_amounts_are_no_note() -> None:
    assert write({}, {"a/b"}) is None
    assert read({}) == {}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "null", '"a/b"', "[" * 100_000, '{"cpu": 1}', '{"a/b": -1}',
     '{"a/b": 1.5}', '{"a/b": true}', '{"a/b": "1"}', '{"a/b": {}}', f'{{"a/b": {10**30}}}',
     '{"a/b": NaN}'],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_what_is_no_note_says_nothing(text: str) -> None:
    assert read({ANNOTATION: text}) == {}


def test_what_is_odd_in_a_note_leaves_the_rest() -> None:
    assert read({ANNOTATION: '{"a/b": 3, "cpu": 2, "c/d": null, "e/f": []}'}) == {
        "a/b": 3,
        "c/d": None,
    }
