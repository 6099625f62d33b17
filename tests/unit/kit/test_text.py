"""Text from outside is short and printable before anybody repeats it."""

from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kit.text import LONGEST, cut


def test_short_text_stays_as_it_is() -> None:
    assert cut("GPU-1: größer als 3 MiB") == "GPU-1: größer als 3 MiB"


def test_long_text_is_cut() -> None:
    assert cut("x" * 240_000) == "x" * LONGEST + "…"
    assert cut("abcdef", 3) == "abc…"


def test_a_line_break_forges_no_second_line() -> None:
    assert cut("a\nERROR forged\r\x1b[2J") == "a\\nERROR forged\\r\\x1b[2J"


@given(st.text(alphabet=st.characters()))
def test_any_text_can_be_encoded_and_stays_one_line(text: str) -> None:
    shown = cut(text + "\ud800", 50)
    assert shown.isprintable()
    shown.encode()
