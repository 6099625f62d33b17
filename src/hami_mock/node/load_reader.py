"""Text → the shape of a load, or what to write instead. Pure.

80; 20-60; sine:20-80:10m; burst:5-95:5m:part=30s:memory=70; or in YAML or JSON a schedule,
[{time: 1h, utilization: 80}, {time: 1h, utilization: 0}], also as {schedule: […], repeat: 3}.
"""

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.kit import durations
from hami_mock.kit.similar import did_you_mean
from hami_mock.kit.values import MOST_SECONDS, shown
from hami_mock.node.load_shapes import KINDS, Kind, Level, Shape, Span

MOST_CHARACTERS = 10_000
_MOST_SPANS = 500
_SHORTEST = 1.0
_NUMBER = r"\d{1,3}(?:\.\d{1,3})?"
_LEVEL = re.compile(rf"({_NUMBER})\s*%?(?:\s*-\s*({_NUMBER})\s*%?)?", re.ASCII)
_SHAPES = [name for name in KINDS if name != "schedule"]

ALLOWED = (
    "a percentage (80), a range (20-60), a shape such as sine:20-80:10m or training "
    f"({', '.join(_SHAPES)}), or a schedule such as [{{time: 1h, utilization: 80}}, "
    "{time: 1h, utilization: 0}]"
)


def read(value: object, place: str) -> Shape:
    """Return the shape that a text (or what YAML made of it) stands for.

    Raises UsageError that names the place, the value, and what to write.
    """
    try:
        return _shape(value)
    except ValueError as error:
        why = f" ({error})" if str(error) else ""
        raise UsageError(f"{place}: {shown(value)} is not a load{why}: write {ALLOWED}") from error


def _shape(value: object) -> Shape:
    if isinstance(value, str):
        if len(value) > MOST_CHARACTERS:
            raise ValueError(f"more than {MOST_CHARACTERS} characters")
        text = value.strip()
        if not text.startswith(("[", "{")):
            return _from_words(text)
        value = _document(text)
    if isinstance(value, list):
        value = {"schedule": value}
    if isinstance(value, Mapping):
        return _from_mapping(value)
    return _from_words(str(value) if type(value) in (int, float) else "")


def _document(text: str) -> object:
    from hami_mock.kit import strict_yaml  # few loads are documents

    return strict_yaml.load(text, MOST_CHARACTERS)


def _from_words(text: str) -> Shape:
    """Read 80, 20-60, or SHAPE[:LEVEL][:PERIOD][:NAME=VALUE]…"""
    first, *rest = (word.strip() for word in text.split(":"))
    if _LEVEL.fullmatch(first):
        rest.insert(0, first)
        first = "steady"
    if first not in _SHAPES:
        raise ValueError(f"there is no shape {shown(first)}{did_you_mean(first, _SHAPES)}")
    given: dict[str, object] = {}
    free = ["utilization", *KINDS[first].takes]
    for word in rest:
        name, equals, value = word.partition("=")
        if not equals:
            # A time has a unit, a percentage has none.
            is_level = _LEVEL.fullmatch(word) is not None
            name, value = next((n for n in free if (n == "utilization") is is_level), ""), word
            if not name:
                raise ValueError(f"{shown(word)} is one too many")
        if name in given:
            raise ValueError(f"{shown(name)} is given twice")
        if name in free:
            free.remove(name)
        given[name] = value
    return _made(first, given, text)


def _from_mapping(value: Mapping[Any, Any]) -> Shape:
    given = {str(name): each for name, each in value.items()}
    kind = str(given.pop("shape", "schedule" if "schedule" in given else "steady"))
    if kind not in KINDS:
        raise ValueError(f"there is no shape {shown(kind)}{did_you_mean(kind, _SHAPES)}")
    return _made(kind, given, shown(value))


def _made(name: str, given: Mapping[str, object], text: str) -> Shape:
    kind = KINDS[name]
    allowed = {"memory", *kind.takes, "schedule" if name == "schedule" else "utilization"}
    if name == "idle":
        allowed.discard("utilization")
    for key in given:
        if key not in allowed:
            hint = did_you_mean(key, allowed) or f": it takes {', '.join(sorted(allowed))}"
            raise ValueError(f"{name} has no {shown(key)}{hint}")
    busy = _level(given["utilization"]) if "utilization" in given else kind.busy
    if name in ("ramp", "sine", "burst", "inference") and busy.low == busy.high:
        busy = Level(min(kind.busy.low, busy.high), busy.high)
    period, part = _times(kind, given)
    spans = _spans(given.get("schedule")) if name == "schedule" else ()
    return Shape(
        name,
        text,
        busy,
        _level(given["memory"]) if "memory" in given else kind.memory,
        period,
        part,
        spans,
        tuple(accumulate(span.seconds for span in spans)),
        _repeat(given.get("repeat", True)),
    )


def _times(kind: Kind, given: Mapping[str, object]) -> tuple[float, float]:
    period = _seconds(given["period"]) if "period" in given else kind.period
    # Not longer than the period, where only that is given.
    part = _seconds(given["part"]) if "part" in given else min(kind.part, period / 2)
    if part > period:
        raise ValueError("its part is longer than its period")
    return period, part


def _spans(value: object) -> tuple[Span, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_SPANS:
        raise ValueError(f"a schedule is a list with 1 to {_MOST_SPANS} entries")
    return tuple(map(_span, value))


def _span(value: object) -> Span:
    if not isinstance(value, Mapping) or value.keys() != {"time", "utilization"}:
        raise ValueError(f"{shown(value)} must have time and utilization, and nothing else")
    return Span(_seconds(value["time"]), _level(value["utilization"]))


def _level(value: object) -> Level:
    text = value if isinstance(value, str) else str(value) if type(value) in (int, float) else ""
    match = _LEVEL.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{shown(value)} is neither a percentage nor a range")
    low = float(match[1])
    high = float(match[2]) if match[2] is not None else low
    if not low <= high <= 100:
        raise ValueError(f"{shown(value)} isn't within 0 to 100, with the smaller number first")
    return Level(low, high)


def _seconds(value: object) -> float:
    try:
        seconds = durations.parse(value)
    except ValueError as error:
        raise ValueError(f"{shown(value)} is not {durations.FORM}") from error
    if not _SHORTEST <= seconds <= MOST_SECONDS:
        least, most = durations.show(_SHORTEST), durations.show(MOST_SECONDS)
        raise ValueError(f"{shown(value)} is not from {least} to {most}")
    return seconds


def _repeat(value: object) -> int | None:
    """Return how often; None: for ever."""
    if value is True or value in ("true", "True", "yes", "on"):
        return None
    if value is False or value in ("false", "False", "no", "off"):
        return 1
    if type(value) is int and 1 <= value <= 10_000:
        return value
    raise ValueError(f"repeat must be true, false or a number of times, not {shown(value)}")
