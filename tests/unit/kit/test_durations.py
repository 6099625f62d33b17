import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kit.durations import parse, show


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30s", 30),
        ("2m", 120),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        ("0.5h", 1800),
        ("1d2h3m4s5ms", 93784.005),
        ("1s500ms", 1.5),
        ("0s", 0),
        ("0", 0),
        ("12", 12),
        ("12.25", 12.25),
        (0, 0),
        (7, 7),
        (0.25, 0.25),
        (0.12345, 0.123),
    ],
)
def test_times_are_read_as_people_write_them(written: object, seconds: float) -> None:
    assert parse(written) == seconds


@pytest.mark.parametrize(
    "wrong",
    [
        *("", " ", "s", "5x", "-5s", "5 s", "1m1h", "1s1s", "1,5s", "soon", "1e3", "٣s", "9" * 50),
        *(-1, -0.1, math.inf, math.nan, 1e12, 10**400, True, None, [], {}),
    ],
)
def test_what_is_no_time_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - callers say what is allowed
        parse(wrong)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (0.5, "500ms"),
        (1.5, "1.5s"),
        (59.999, "59.999s"),
        (60, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (3600.5, "1h0.5s"),
        (604800, "7d"),
        (93784.005, "1d2h3m4.005s"),
    ],
)
def test_times_are_shown_in_the_largest_units(seconds: float, shown: str) -> None:
    assert show(seconds) == shown


@given(st.integers(0, 10**10))
def test_what_is_shown_reads_as_the_same(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse(show(seconds)) == seconds
