from enum import StrEnum
from typing import Any

import pytest

from hami_mock.kit.values import (
    LINE,
    SPAN,
    SWITCH,
    Fields,
    Kind,
    Mistakes,
    choice,
    factor,
    listed,
    not_allowed,
    one_of,
    or_text,
    pattern,
    whole,
)


class Word(StrEnum):
    """Some words."""

    YES = "yes"
    NO = "no"


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (whole(1, 3), 3, 3),
        (or_text(whole(1, 3)), "3", 3),
        (or_text(whole(1, 3)), 2.0, 2),
        (or_text(whole(1, 3_000_000)), "1e+06", 1_000_000),
        (factor(10), 2, 2.0),
        (or_text(factor(10)), "0.5", 0.5),
        (whole(1, 3).or_word("all", None), "all", None),
        (whole(1, 3).then(str, str), 2, "2"),
        (choice("a", "b"), "b", "b"),
        (one_of(Word), "no", Word.NO),
        (pattern("a+", "some a", "A"), "aa", "aa"),
        (listed(whole(1, 9), "numbers", "N"), [1, 2], (1, 2)),
        (listed(or_text(whole(1, 9)), "numbers", "N"), "1, 2", (1, 2)),
        (listed(or_text(whole(1, 9)), "numbers", "N"), "", ()),
        (listed(whole(1, 9), "numbers", "N"), 1, (1,)),
        (SWITCH, "On", True),
        (SWITCH, 0, False),
        (SPAN, "1m30s", 90.0),
        (LINE, "hello", "hello"),
    ],
)
def test_what_is_allowed(kind: Kind[Any], value: object, read: object) -> None:
    assert kind.read(value) == read


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (whole(1, 3), 4),
        (whole(1, 3), True),
        (whole(1, 3), "3"),
        (whole(1, 3), 3.0),
        (whole(1, 3), float("nan")),
        (or_text(whole(1, 3)), "x"),
        (or_text(whole(1, 3)), "2.5"),
        (or_text(whole(1, 3)), 10**400),
        (or_text(whole(1, 3)), "1e400"),
        (factor(10), 0),
        (factor(10), float("inf")),
        (factor(10), float("nan")),
        (factor(10), False),
        (choice("a", "b"), "c"),
        (choice("a", "b"), ["a"]),
        (one_of(Word), "maybe"),
        (pattern("a+", "some a", "A"), "aab"),
        (pattern("a+", "some a", "A"), 1),
        (listed(whole(1, 9), "numbers", "N", least=1), []),
        (listed(whole(1, 9), "numbers", "N"), {"a": 1}),
        (SWITCH, 2),
        (SWITCH, [True]),
        (SPAN, "0s"),
        (LINE, "a\nb"),
    ],
)
def test_what_is_not_allowed(kind: Kind[Any], value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        kind.read(value)


def test_a_value_is_written_as_a_user_would() -> None:
    assert SWITCH.show(True) == "on"
    assert SPAN.show(90.0) == "1m30s"
    assert listed(choice("a", "b"), "letters", "A").show(("a", "b")) == "a,b"


def test_a_line_is_short_whatever_the_value_is() -> None:
    assert not_allowed("a", "b", "c") == "a: 'b' is not allowed: it must be c"
    assert len(not_allowed("a", "x" * 10_000, "c")) < 400


def fields(values: dict[str, Any], *, is_null_absent: bool = False) -> Fields:
    return Fields(values, "here", Mistakes("x.yaml"), is_null_absent)


def test_all_mistakes_are_collected_with_their_places() -> None:
    mapping = fields({"a": 7, "b": {"c": 9}, "l": [{"d": 1}, 2], "n": None, "colour": 1})
    assert mapping.get("a", whole(1, 3), 1) == 1
    assert mapping.section("b").get("c", whole(1, 3), None) is None
    assert [inner.get("d", whole(1, 3), 0) for inner in mapping.sections("l")] == [1]
    assert mapping.need("z", whole(1, 3), 2) == 2
    assert mapping.get("n", whole(1, 3), 3) == 3
    assert mapping.section("a").values == {}
    assert mapping.row("a").values == {}
    mapping.allow(("a", "b", "l", "n", "color"))
    assert mapping.mistakes.lines == [
        "x.yaml: here.a: 7 is not allowed: it must be a whole number from 1 to 3",
        "x.yaml: here.b.c: 9 is not allowed: it must be a whole number from 1 to 3",
        "x.yaml: here.l[1]: 2 is not allowed: it must be a mapping",
        "x.yaml: here.z: is missing: it must be a whole number from 1 to 3",
        "x.yaml: here.n: None is not allowed: it must be a whole number from 1 to 3",
        "x.yaml: here.a: 7 is not allowed: it must be a mapping",
        "x.yaml: here.a: 7 is not allowed: it must be a list",
        "x.yaml: here.colour: there is no such key; did you mean color?",
    ]


def test_a_key_without_a_value_may_be_as_if_it_were_not_there() -> None:
    mapping = fields({"a": None}, is_null_absent=True)
    assert "a" not in mapping
    assert mapping.get("a", whole(1, 3), 3) == 3
    assert mapping.section("a").values == {}
    assert mapping.mistakes.lines == []
