"""Values that people wrote: what each kind may be, and a reader of mappings that notes mistakes.

A `Kind` knows how to read a value, says in words what is allowed, and as a JSON Schema what an
editor may complete. `Fields` reads a mapping by kinds and collects all that is wrong, each mistake
with its place. Pure.
"""

import re
import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Self, TypeVar

from hami_mock.errors import UsageError
from hami_mock.kit import durations
from hami_mock.kit.similar import did_you_mean
from hami_mock.kit.text import LONGEST, LONGEST_LINE, cut

_E = TypeVar("_E", bound=StrEnum)
_T = TypeVar("_T")
_D = TypeVar("_D")

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Kind(Generic[_T]):
    """A kind of value. `read` raises ValueError for what isn't allowed; `allowed` says what is."""

    read: Callable[[object], _T]
    allowed: str
    schema: Schema = field(default_factory=dict, compare=False)
    metavar: str = "VALUE"
    show: Callable[[Any], str] = str
    """Writes a value as a user would."""

    def then(self, make: Callable[[_T], _D], show: Callable[[Any], str]) -> "Kind[_D]":
        return Kind(
            lambda value: make(self.read(value)), self.allowed, self.schema, self.metavar, show
        )

    def or_word(self, word: str, meaning: _D) -> "Kind[_T | _D]":
        """Return the kind that takes a word too, and reads it as that."""

        def read(value: object) -> _T | _D:
            return meaning if value == word else self.read(value)

        schema = {"anyOf": [self.schema, {"const": word}]}
        return Kind(read, f"{self.allowed}, or {word}", schema, f"{self.metavar}|{word}")


def checked(
    is_allowed: Callable[[Any], bool], allowed: str, schema: Schema, metavar: str = "VALUE"
) -> Kind[Any]:
    def read(value: object) -> object:
        if not is_allowed(value):
            raise ValueError("not allowed")
        return value

    return Kind(read, allowed, schema, metavar)


def whole(low: int, high: int) -> Kind[int]:
    return checked(
        # YAML's `yes` and `on` are booleans, and for Python a boolean is a fine number.
        lambda value: type(value) is int and low <= value <= high,
        f"a whole number from {low} to {high}",
        {"type": "integer", "minimum": low, "maximum": high},
        "N",
    )


def factor(most: float) -> Kind[float]:
    """Return the kind of numbers that something is multiplied with."""
    return checked(
        lambda value: type(value) in (int, float) and 0 < value <= most,
        f"a number above 0, at most {most}",
        {"type": "number", "exclusiveMinimum": 0, "maximum": most},
        "X",
    ).then(float, str)


def or_text(kind: Kind[_T]) -> Kind[_T]:
    """Return the kind that takes a number as a text too, and 1e+06, as Helm writes large ones."""

    def read(value: object) -> _T:
        if isinstance(value, str):
            value = float(value) if re.search(r"[.eE]", value) else int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return kind.read(value)

    return replace(kind, read=read)


def choice(*words: str) -> Kind[str]:
    return checked(
        words.__contains__, "one of " + ", ".join(words), {"enum": list(words)}, "|".join(words)
    )


def one_of(words: type[_E]) -> Kind[_E]:
    return choice(*words).then(words, str)


def pattern(regex: str, allowed: str, metavar: str) -> Kind[str]:
    """Return the kind of texts that match a pattern as a whole."""
    return checked(
        lambda value: isinstance(value, str) and re.fullmatch(regex, value) is not None,
        allowed,
        {"type": "string", "pattern": f"^({regex})$"},
        metavar,
    )


MOST_SECONDS = 7 * 24 * 3600.0
"""Nobody means to wait longer than a week."""
SHORTEST = 0.01
"""What changes faster nobody sees, and it would stop all else."""
_MOST_CHARACTERS = 500
_MOST_MISTAKES = 1000


def time(low: float) -> Kind[float]:
    def read(value: object) -> float:
        seconds = durations.parse(value)
        if not low <= seconds <= MOST_SECONDS:
            raise ValueError("too short or too long")
        return seconds

    least = f"at least {durations.show(low)} and " if low else ""
    allowed = f"{durations.FORM}, {least}at most {durations.show(MOST_SECONDS)}"
    return Kind(read, allowed, {"type": ["string", "number"]}, "DURATION", durations.show)


def listed(item: Kind[_T], allowed: str, metavar: str, *, least: int = 0) -> Kind[tuple[_T, ...]]:
    """Return the kind of lists, which may also be written as a text with commas."""

    def read(value: object) -> tuple[_T, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")] if value.strip() else []
        items = tuple(item.read(part) for part in (value if isinstance(value, list) else [value]))
        if len(items) < least:
            raise ValueError("too few")
        return items

    several = {"type": "array", "items": item.schema, "minItems": least}
    schema = {"anyOf": [several, {"type": "string"}]}
    return Kind(read, allowed, schema, metavar, lambda items: ",".join(map(item.show, items)))


_SWITCH = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}
# `on` is a text in YAML 1.2, which editors go by, and a boolean in 1.1.
SWITCH = checked(
    lambda value: isinstance(value, str | int) and str(value).lower() in _SWITCH,
    "on or off",
    {"enum": [True, False, "on", "off"]},
    "on|off",
).then(lambda value: _SWITCH[str(value).lower()], lambda is_on: "on" if is_on else "off")

LINE: Kind[str] = checked(
    lambda value: (
        isinstance(value, str) and value.isprintable() and 0 < len(value) <= _MOST_CHARACTERS
    ),
    f"a line of text, at most {_MOST_CHARACTERS} characters",
    {"type": "string", "minLength": 1, "maxLength": _MOST_CHARACTERS},
    "TEXT",
)
SPAN = time(SHORTEST)
SEED = or_text(whole(0, 2**31 - 1))


class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        # Python writes no whole number of thousands of digits.
        return super().repr_int(x, level) if x.bit_length() < 10_000 else "a huge number"


_short = _Short()
_short.maxstring = _short.maxother = LONGEST
_short.maxlist = _short.maxdict = 10
_short.maxlevel = 3
shown = _short.repr
"""A short form of any value: with YAML's aliases, a small file makes one of gigabytes."""


def not_allowed(place: str, value: object, allowed: str) -> str:
    return f"{place}: {shown(value)} is not allowed: it must be {allowed}"


@dataclass(frozen=True)
class Mistakes:
    """All that is wrong with a file, a line each."""

    file: str = ""
    lines: list[str] = field(default_factory=list)

    def say(self, place: str, problem: str) -> None:
        """Add a mistake at a place such as steps[2].xid.

        Raises UsageError if there are so many that the rest of the file isn't worth the time.
        """
        self.lines.append(cut(": ".join(filter(None, (self.file, place, problem))), LONGEST_LINE))
        if len(self.lines) >= _MOST_MISTAKES:
            raise UsageError(self.lines)

    def refuse(self, place: str, value: object, allowed: str) -> None:
        self.say("", not_allowed(place, value, allowed))


@dataclass(frozen=True)
class Fields:
    """A mapping, the place where it stands, and where its mistakes are collected."""

    values: Mapping[Any, Any]
    place: str = ""
    mistakes: Mistakes = field(default_factory=Mistakes)
    is_null_absent: bool = False
    """Whether a key without a value is as if it weren't there."""

    def __contains__(self, key: str) -> bool:
        return key in self.values and not (self.is_null_absent and self.values[key] is None)

    def at(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def get(self, key: str, kind: Kind[_T], default: _D) -> _T | _D:
        """Return a value; the default if there is none, or one that isn't allowed."""
        if key not in self:
            return default
        try:
            return kind.read(self.values[key])
        except ValueError:
            self.refuse(key, kind.allowed)
            return default

    def need(self, key: str, kind: Kind[_T], default: _D) -> _T | _D:
        """Return a value that must be there; the default after a mistake."""
        if key not in self:
            self.refuse(key, kind.allowed)
        return self.get(key, kind, default)

    def say(self, key: str, problem: str) -> None:
        self.mistakes.say(self.at(key), problem)

    def refuse(self, key: str, allowed: str) -> None:
        if key in self:
            self.mistakes.refuse(self.at(key), self.values[key], allowed)
        else:
            self.say(key, f"is missing: it must be {allowed}")

    def allow(self, keys: Collection[str], elsewhere: Mapping[str, str] | None = None) -> None:
        """Refuse all other keys; `elsewhere` has those that belong in other mappings, and why."""
        for key in self.values:
            if key not in keys:
                why = (elsewhere or {}).get(str(key))
                hint = did_you_mean(key, keys, len(self.mistakes.lines))
                self.say(str(key), why or f"there is no such key{hint}")

    def section(self, key: str) -> Self:
        """Return a mapping in this one; an empty one if there is none."""
        return replace(self, values=self._get(key, dict, "a mapping"), place=self.at(key))

    def row(self, key: str) -> Self:
        """Return a list in this mapping, as one whose keys are places: models[0], models[1]."""
        items = enumerate(self._get(key, list, "a list"))
        return replace(self, values={f"{key}[{i}]": each for i, each in items})

    def sections(self, key: str) -> list[Self]:
        row = self.row(key)
        for place, value in row.values.items():
            if not isinstance(value, dict):
                row.mistakes.refuse(row.at(place), value, "a mapping")
        return [row.section(place) for place, each in row.values.items() if isinstance(each, dict)]

    def _get(self, key: str, collection: type[_T], allowed: str) -> _T:
        value = self.values[key] if key in self else collection()
        if isinstance(value, collection):
            return value
        self.refuse(key, allowed)
        return collection()
