"""A mapping of a file that knows its place in it, and collects what is wrong with it. Pure."""

import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from hami_mock.kit import durations
from hami_mock.kit.similar import did_you_mean

_E = TypeVar("_E", bound=StrEnum)
_T = TypeVar("_T")
_D = TypeVar("_D")


@dataclass(frozen=True)
class Kind(Generic[_T]):
    """A kind of value. `read` raises ValueError for what isn't allowed; `allowed` says what is."""

    read: Callable[[object], _T]
    allowed: str


def time(low: float) -> Kind[float]:
    """Return the kind of lengths of time that are at least so long."""

    def read(value: object) -> float:
        seconds = durations.parse(value)
        if not low <= seconds <= MOST_SECONDS:
            raise ValueError("too short or too long")
        return seconds

    least = f"at least {durations.show(low)} and " if low else ""
    return Kind(read, f"{durations.FORM}, {least}at most {durations.show(MOST_SECONDS)}")


def whole(low: int, high: int) -> Kind[int]:
    """Return the kind of whole numbers in a range."""

    def read(value: object) -> int:
        # YAML's `yes` and `on` are booleans, and for Python a boolean is a fine number.
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError("not in the range")
        return value

    return Kind(read, f"a whole number from {low} to {high}")


def one_of(words: type[_E]) -> Kind[_E]:
    """Return the kind of the words of an enumeration."""
    return Kind(lambda value: words(str(value)), f"one of {', '.join(words)}")


def _line(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("not a line of text")
    if not 0 < len(value) <= _MOST_CHARACTERS:
        raise ValueError("too short or too long")
    return value


MOST_SECONDS = 7 * 24 * 3600.0
"""Nobody means to wait longer than a week."""
SHORTEST = 0.01
"""What changes faster nobody sees, and it would stop all else."""
_MOST_CHARACTERS = 500

LINE = Kind(_line, f"a line of text, at most {_MOST_CHARACTERS} characters")
SPAN = time(SHORTEST)


class Mistakes:
    """All that is wrong with a file, a line each."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: list[str] = []

    def say(self, place: str, problem: str) -> None:
        """Add a mistake at a place such as steps[2].xid."""
        self.lines.append(f"{self.file}: {place}: {problem}")

    def refuse(self, place: str, value: object, allowed: str) -> None:
        """Add the mistake that a value isn't allowed."""
        # A short form of it: with YAML's aliases, a small file makes a value of gigabytes.
        self.say(place, f"{reprlib.repr(value)} is not allowed: it must be {allowed}")


@dataclass(frozen=True)
class Fields:
    """A mapping, the place where it stands, and where its mistakes are collected."""

    values: Mapping[Any, Any]
    place: str
    mistakes: Mistakes

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def at(self, key: str) -> str:
        """Return the place of one of its keys."""
        return f"{self.place}.{key}" if self.place else key

    def get(self, key: str, kind: Kind[_T], default: _D) -> _T | _D:
        """Return a value; the default if there is none, or one that isn't allowed."""
        if key not in self.values:
            return default
        try:
            return kind.read(self.values[key])
        except ValueError:
            self.mistakes.refuse(self.at(key), self.values[key], kind.allowed)
            return default

    def say(self, key: str, problem: str) -> None:
        """Add a mistake at one of its keys."""
        self.mistakes.say(self.at(key), problem)

    def allow(self, keys: Collection[str], elsewhere: Mapping[str, str]) -> None:
        """Refuse all other keys; `elsewhere` has those that belong in other mappings, and why."""
        for key in self.values:
            if key in keys:
                continue
            name = str(key)
            self.say(name, elsewhere.get(name) or f"there is no such key{did_you_mean(name, keys)}")
