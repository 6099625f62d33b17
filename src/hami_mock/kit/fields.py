"""A mapping of a file that knows its place in it, and collects what is wrong with it. Pure."""

import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hami_mock.kit.similar import did_you_mean

_T = TypeVar("_T")
_D = TypeVar("_D")


@dataclass(frozen=True)
class Kind(Generic[_T]):
    """A kind of value. `read` raises ValueError for what isn't allowed; `allowed` says what is."""

    read: Callable[[object], _T]
    allowed: str


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
