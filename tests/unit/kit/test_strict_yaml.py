from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hami_mock.kit.strict_yaml import MOST_CHARACTERS, load, load_all, load_json_or_yaml
from hami_mock.kit.text import LONGEST

READERS = (load, load_json_or_yaml)
NINE = ", ".join(["*a{0}"] * 9)


def aliases(first: str, last: str) -> str:
    """Each line stands for nine times the one before."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {last.format(NINE.format(n - 1))}" for n in range(1, 9)]
    return "\n".join(lines)


def refusal(text: str, read: Callable[[str], Any] = load) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        read(text)
    line = str(caught.value)
    assert line.isprintable()
    assert len(line) <= LONGEST + 2
    return line


HOSTILE = {
    "lists in lists": ("[" * 50_000, "more than 64 levels of lists"),
    "closed lists in lists": ("[" * 20_000 + "]" * 20_000, "more than 64 levels of lists"),
    "mappings in mappings": ("{a: " * 20_000, "more than 64 levels of lists"),
    "dashes": ("- " * 50_000, "more than 64 levels of lists"),
    "keys in keys": ("? " * 50_000, "more than 64 levels of lists"),
    "aliases of aliases": (aliases("[x]", "[{}]"), "more than 32768 keys and values"),
    "merges of merges": (aliases("{k: 1}", "{{<<: [{}]}}"), "more than 32768 keys and values"),
    "a list in itself": ("a: &a [*a]", "the alias *a names nothing, or a value that it is part of"),
    "no such alias": ("a: *b", "the alias *b names nothing"),
    "many keys": ("".join(f"k{i}: 1\n" for i in range(40_000)), "more than 32768 keys"),
    "many documents": ("---\n" * 40_000, "more than 32768 keys"),
    "directives": ("".join(f"%TAG !a{i}! x\n" for i in range(40_000)) + "--- 1", "begin with %"),
    "a hex number": ("a: 0x" + "f" * 4000, "a number of 4002 characters is too long"),
    "a binary number": ("a: 0b" + "1" * 40_000, "a number of 40002 characters is too long"),
    "a decimal number": ("a: " + "9" * 5000, "a number of 5000 characters is too long"),
    "a number in sixties": ("a: 1" + ":1" * 200_000, "a number of 400001 characters is too long"),
    "a fraction in sixties": ("a: 1" + ":1" * 3000 + ".5", "a number of 6003 characters is too"),
    "a tagged number": (f"a: !!int '{'1_' * 3000}1'", "a number of 6001 characters is too long"),
    "a long tag": ("a: !" + "x" * 100_000 + " 1", "could not determine a constructor"),
    "a long key twice": ('"{0}": 1\n"{0}": 2'.format("k" * 1000), "appears twice"),
    "a long alias": ("a: *" + "x" * 100_000, "names nothing"),
}


@pytest.mark.parametrize(("text", "problem"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_too_much_is_refused_in_a_line_that_says_where(text: str, problem: str) -> None:
    line = refusal(text)
    assert problem in line
    assert "in line " in line or "lines begin" in line


@pytest.mark.parametrize("read", READERS)
def test_a_text_that_is_too_long_is_refused(read: Callable[[str], Any]) -> None:
    for start in ("# ", "{"):
        problem = "1048577 characters are more than 1048576: shorten it"
        assert refusal(start.ljust(MOST_CHARACTERS + 1), read) == problem


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ' * 100_000,
        '{"a": [' + "[" * 100_000,
        '{"a": ' + "9" * 4000 + "}",
        '{"a": [' + "{}," * 300_000 + "{}]}",
    ],
)
def test_json_is_bounded_too(text: str) -> None:
    assert refusal(text, load_json_or_yaml)


def test_a_caller_may_take_more() -> None:
    text = "".join(f"k{i}: 1\n" for i in range(40_000))
    assert len(load(text, 2**22)) == 40_000


def test_aliases_and_merges_of_a_file_of_ours_are_fine() -> None:
    text = "a: &a {x: 1, y: [1, 2]}\nb: {<<: *a, x: 2}\nc: [*a, *a]"
    whole = {"x": 1, "y": [1, 2]}
    assert load(text) == {"a": whole, "b": {"x": 2, "y": [1, 2]}, "c": [whole, whole]}


@pytest.mark.parametrize(
    ("text", "document"),
    [("", None), ("0x1F", 31), ("1:30", 90), ("1.5", 1.5), ("9" * 100, int("9" * 100)),
     ("[" * 64 + "]" * 64, None), ("%YAML 1.1\n--- a", "a"), ('{"a": 1e3}', {"a": 1000.0})],
)  # fmt: skip
def test_what_is_large_but_not_too_large_is_read(text: str, document: object) -> None:
    found = load_json_or_yaml(text)
    assert document is None or found == document


PIECES = st.sampled_from(
    ["a", "b", ": ", ":", "- ", "\n", "\n  ", "{", "}", "[", "]", ", ", "? ", "&x ", "*x", "&y ",
     "*y", "<<: ", "!!int ", "!!float ", "!!timestamp ", "!!set ", "!!omap ", "!!pairs ",
     "!!binary ", "!!null ", "!!merge ", "!!map ", "!!seq ", "1", "1.5", ".5", ":30", "-", "+", "_",
     "0x", "0b", "0o", "1e9", ".inf", ".nan", "2024-99-99", "2001-12-14t21:59:43.10-99:99", "'",
     '"', "\\", "#", "|", ">", "%", "%TAG ! x\n", "@", "~", "---\n", "...\n", "\t", "\r", "\x00",
     "\ud800", "\u2028", "é", "😀", '"a": ', "null", "[" * 70, "{a: " * 70, "9" * 200]
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=25).map("".join), st.text()), st.sampled_from(READERS))
def test_any_text_is_read_or_refused_in_a_short_line(text: str, read: Callable[[str], Any]) -> None:
    line = "fine"
    try:
        read(text)
    except ValueError as error:
        line = str(error)
    assert line.isprintable()
    # A character that can't be printed is written with up to ten.
    assert 0 < len(line) <= 10 * LONGEST


def test_several_documents_are_read_with_the_same_bounds() -> None:
    assert load_all("a: 1\n---\n---\n[2]\n") == [{"a": 1}, None, [2]]
    with pytest.raises(ValueError, match="the key 'a' appears twice"):
        load_all("b: 1\n---\n{a: 1, a: 2}\n")
    with pytest.raises(ValueError, match="shorten it"):
        load_all("---\n" * 100, most=300)
