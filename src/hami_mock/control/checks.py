"""The arguments of requests, by name: what each may be. Pure."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.faults.actions import MOST_SECONDS
from hami_mock.node.fault import Call

_LONGEST_REASON = 500


@dataclass(frozen=True)
class Check:
    """A check of one argument, and in words what passes it."""

    is_allowed: Callable[[Any], bool]
    allowed: str


def _whole(low: int, high: int) -> Check:
    def check(value: Any) -> bool:
        return type(value) is int and low <= value <= high

    return Check(check, f"a whole number from {low} to {high}")


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= MOST_SECONDS


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_reason(value: Any) -> bool:
    # It becomes part of a line of the log.
    return isinstance(value, str) and len(value) <= _LONGEST_REASON and value.isprintable()


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _are_values(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


_DURATION = Check(_is_duration, "a duration such as 500ms, 2s or 1m30s, at most a week")

CHECKS: Mapping[str, Check] = {
    "targets": Check(_are_words, "one or more words for cards or resources"),
    "xid": _whole(1, 99999),
    "reason": Check(_is_reason, f"a line of at most {_LONGEST_REASON} characters"),
    "call": Check(lambda value: value in [*Call], f"one of {', '.join(Call)}"),
    "seconds": _DURATION,
    "for": _DURATION,
    "since": _whole(0, 2**63),
    "values": Check(_are_values, "options and their values, as text"),
    "reset": Check(lambda value: isinstance(value, bool), "true or false"),
    "text": Check(_is_text, "the text of a scenario"),
    "name": Check(_is_text, "the name of a scenario"),
    "seed": _whole(0, 2**31 - 1),
}


def check_arguments(arguments: Mapping[str, Any], required: Set[str], optional: Set[str]) -> None:
    """Raise UsageError with a line for each argument that is missing, wrong or not wanted."""
    problems = [f"{name}: it is missing" for name in sorted(required - arguments.keys())]
    for name, value in arguments.items():
        if name not in required | optional:
            problems.append(f"{name}: there is no such argument here")
        elif not CHECKS[name].is_allowed(value):
            problems.append(f"{name}: {value!r} is not allowed: it must be {CHECKS[name].allowed}")
    if problems:
        raise UsageError(problems)
