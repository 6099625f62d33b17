"""Whatever people write: a value comes out, or ValueError, and soon."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hami_mock.errors import UsageError
from hami_mock.kit import durations, moments
from hami_mock.kit.similar import did_you_mean, similar
from hami_mock.kit.text import cut
from hami_mock.kit.values import (
    LINE,
    MOST_SECONDS,
    SEED,
    SPAN,
    SWITCH,
    Fields,
    Kind,
    Mistakes,
    choice,
    factor,
    listed,
    not_allowed,
    or_text,
    pattern,
    shown,
    whole,
)

LONG = ["9" * 5000, "-" + "9" * 5000, "1_" * 5000 + "1", "0x" + "f" * 5000, "1e" + "9" * 5000,
        "0." + "9" * 5000, "9" * 5000 + ".0", "9" * 5000 + "s", "x" * 100_000, "," * 50_000,
        10**5000, -(10**5000), 1e308, math.inf, math.nan, [10**5000] * 3]  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.dates(),
    st.sampled_from([value for value in LONG if isinstance(value, str)]),
    st.from_regex(r"[0-9._:eE+-]{0,12}(ms|s|m|h|d)?", fullmatch=True),
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KINDS = [
    whole(0, 9), or_text(whole(0, 9)), factor(2.5), or_text(factor(2.5)), choice("a", "b"),
    pattern("[a-z]+", "letters", "A"), listed(or_text(whole(0, 9)), "numbers", "N"), LINE, SPAN,
    SEED, SWITCH, whole(0, 9).or_word("auto", None),
]  # fmt: skip
fuzzed = settings(max_examples=300, deadline=None)


@fuzzed
@given(st.sampled_from(KINDS), ANYTHING)
def test_any_value_is_read_or_refused_in_a_short_line(kind: Kind[Any], value: object) -> None:
    fields = Fields({"key": value})
    default = object()
    assert (fields.get("key", kind, default) is default) == bool(fields.mistakes.lines)
    assert all(line.isprintable() and len(line) < 10_000 for line in fields.mistakes.lines)


@pytest.mark.parametrize("value", LONG, ids=lambda value: shown(value)[:20])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.allowed[:20])
def test_a_number_of_any_length_is_read_or_refused(kind: Kind[Any], value: object) -> None:
    fields = Fields({"key": value})
    fields.get("key", kind, None)
    assert all(len(line) < 1100 for line in fields.mistakes.lines)


def test_a_number_that_python_can_not_write_has_a_short_form() -> None:
    assert not_allowed("a", 10**5000, "small") == (
        "a: a huge number is not allowed: it must be small"
    )
    assert shown(["x" * 10_000, {1: 10**5000}]).endswith(", {1: a huge number}]")


def test_a_key_of_any_length_is_a_short_line() -> None:
    fields = Fields({"k" * 1_000_000: 1, "a\nb": 2})
    fields.allow(["key"])
    assert [len(line) for line in fields.mistakes.lines] == [1001, 26]
    assert all(line.isprintable() for line in fields.mistakes.lines)


def test_after_very_many_mistakes_the_rest_is_left_unread() -> None:
    fields = Fields({f"k{i}": 1 for i in range(5000)}, mistakes=Mistakes("x.yaml"))
    with pytest.raises(UsageError) as caught:
        fields.allow([])
    assert caught.value.problems[0] == "x.yaml: k0: there is no such key"
    assert caught.value.problems[-1] == "… and 980 more mistakes"


@fuzzed
@given(SCALARS)
def test_any_length_of_time_is_read_or_refused(value: object) -> None:
    try:
        seconds = durations.parse(value)
    except ValueError:
        return
    assert 0 <= seconds < 1e12
    assert abs(durations.parse(durations.show(seconds)) - seconds) < 0.001 or seconds > MOST_SECONDS


@fuzzed
@given(
    st.one_of(
        st.text(),
        st.sampled_from(["0001-01-01", "9999-12-31T23:59:59", "0001-01-01T00:00+14:00", "24:00",
                         "00:00-23:59", "9999-12-31T23:59:59-23:59", "9" * 5000, "1:" * 5000]),
        st.from_regex(r"[0-9T:+Z. -]{0,25}", fullmatch=True),
        st.datetimes().map(str),
        st.times().map(str),
    ),
    st.floats(86_400, 4e9),
)  # fmt: skip
def test_any_moment_is_read_or_refused(text: str, now: float) -> None:
    try:
        moment = moments.parse(text, now)
    except ValueError:
        return
    assert math.isfinite(moment)


def test_no_word_is_like_one_of_a_megabyte() -> None:
    assert similar("k" * 1_000_000, ["k" * 99]) == []
    assert did_you_mean("k" * 1_000_000, ["key"]) == ""


def test_what_nobody_will_read_is_not_searched_for() -> None:
    assert did_you_mean("kez", ["key"], mistakes_before=19) == "; did you mean key?"
    assert did_you_mean("kez", ["key"], mistakes_before=20) == ""


@fuzzed
@given(st.text(st.characters(), max_size=50), st.integers(0, 40))
def test_any_text_is_cut_to_something_printable(text: str, most: int) -> None:
    short = cut(text, most)
    assert short.isprintable()
    assert len(short) <= 10 * most + 1
