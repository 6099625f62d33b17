"""Quantities as Kubernetes writes them: "20", "1k", "4Gi", "100m". Pure."""

import math
import re
from decimal import Decimal

# Short enough that no exponent makes a number that takes memory.
_QUANTITY = re.compile(
    r"([+-]?[0-9]{1,18}(?:\.[0-9]{0,18})?)(?:[eE]([+-]?[0-9]{1,2})|(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?"
)
_SUFFIXES = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    **{letter: Decimal(1000) ** (i + 2) for i, letter in enumerate("MGTPE")},
    **{f"{letter}i": Decimal(1024) ** (i + 1) for i, letter in enumerate("KMGTPE")},
}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_DECIMAL = ("", "k", "M", "G", "T", "P")


def quantity(value: object, parts: int = 1) -> int | None:
    """Return a quantity as a whole number, rounded up; None for no such.

    `parts` is how many make one: with 1000, "100m" is 100.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, int) and abs(value) >= 10**18:
        return None  # nor would Python write out one of thousands of digits
    found = _QUANTITY.fullmatch(str(value))
    if found is None:
        return None
    number, exponent, suffix = found.groups()
    return math.ceil(Decimal(number).scaleb(int(exponent or 0)) * _SUFFIXES[suffix or ""] * parts)


def written(number: int, *, is_binary: bool) -> str:
    """Return a number as the API server writes the quantity, with the largest suffix that fits."""
    base, suffixes = (1024, _BINARY) if is_binary else (1000, _DECIMAL)
    power = 0
    while number and number % base == 0 and power + 1 < len(suffixes):
        number, power = number // base, power + 1
    return f"{number}{suffixes[power]}"
