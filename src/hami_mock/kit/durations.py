"""Lengths of time as people write them: 30s, 2m, 1h30m, 500ms, or a number of seconds. Pure."""

import re

FORM = "a time such as 30s, 2m, 1h30m or 500ms"
"""What `parse` takes, in words."""

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_WRITTEN = re.compile("".join(rf"(?:({_NUMBER}){unit})?" for unit in _UNITS), re.ASCII)


def parse(value: object) -> float:
    """Return the seconds, to the millisecond. Raises ValueError for what is no length of time."""
    if isinstance(value, bool):
        raise ValueError("a boolean is not a time")
    if isinstance(value, int | float):
        return _seconds(value)
    if not isinstance(value, str):
        raise ValueError("neither a string nor a number")
    if re.fullmatch(_NUMBER, value, re.ASCII):
        return _seconds(float(value))
    match = _WRITTEN.fullmatch(value)
    if match is None or not value:
        raise ValueError("not a time")
    parts = zip(match.groups(), _UNITS.values(), strict=True)
    return _seconds(sum(float(number) * unit for number, unit in parts if number))


def show(seconds: float) -> str:
    """Return a length of time in the largest units that fit: 90.0 is 1m30s."""
    milliseconds = round(seconds * 1000)
    if 0 < milliseconds < 1000:
        return f"{milliseconds}ms"
    text = ""
    for unit, size in list(_UNITS.items())[:3]:
        count, milliseconds = divmod(milliseconds, round(size * 1000))
        text += f"{count}{unit}" if count else ""
    rest = f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")
    return text if text and not milliseconds else f"{text}{rest}s"


def _seconds(value: float) -> float:
    # Not the other way round: what isn't a number is in no range.
    if not 0 <= value < 1e12:
        raise ValueError("out of range")
    return round(float(value), 3)


def about(seconds: float) -> str:
    """Return a length of time as a rough figure: 45 s, 3 min, 2.1 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
