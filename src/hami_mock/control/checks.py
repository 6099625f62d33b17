"""The arguments of requests: what each may be. Pure."""

from collections.abc import Mapping
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.kit.values import SPAN, Fields, Kind, Mistakes, whole
from hami_mock.node.fault import FaultKind, Verb

Arguments = Mapping[str, Any]
Kinds = Mapping[str, Kind[Any]]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError("not a list, or an empty one")
    return tuple(map(_text, value))


def _values(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("not a mapping")
    return {_text(name): _text(text) for name, text in value.items()}


def _moment(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    return float(value)


TEXT = Kind(_text, "a text")
TARGETS = Kind(_words, "one or more words for cards or resources")
VALUES = Kind(_values, "options and their values, as text")
MOMENT = Kind(_moment, "a time in seconds since 1970")
NUMBER = whole(0, 2**63)


def arguments_of(verb: Verb) -> tuple[Kinds, Kinds]:
    """Return the arguments that a verb must have, and those that it may have."""
    required = {p.name: p.kind for p in verb.parameters if p.is_required}
    optional = {p.name: p.kind for p in verb.parameters if not p.is_required}
    if isinstance(verb, FaultKind):
        optional["for"] = SPAN
    return {"targets": TARGETS, **required}, optional


def read_arguments(given: Arguments, required: Kinds, optional: Kinds) -> dict[str, Any]:
    """Return the arguments as what they mean.

    Raises UsageError with a line for each one that is missing, wrong or not wanted.
    """
    fields = Fields(given, "", Mistakes())
    fields.allow({*required, *optional})
    values = {name: fields.need(name, kind, None) for name, kind in required.items()}
    for name, kind in optional.items():
        if name in fields:
            values[name] = fields.get(name, kind, None)
    if fields.mistakes.lines:
        raise UsageError(fields.mistakes.lines)
    return values
