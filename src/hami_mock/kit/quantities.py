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
