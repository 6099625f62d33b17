"""What every drawing of numbers needs: round values for an axis, and paths of few points. Pure."""

import math
from collections.abc import Sequence

Point = tuple[float, float]
"""A time and a value, or a place in a picture."""

_TOLERANCE = 0.2
"""Pixels by which a line may be off: nobody sees it, and most points needn't be written."""


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round values, at most so many (3 or more), whose ends enclose a range."""
    span = max(high - low, 1e-9)
    power = math.floor(math.log10(span / most)) - 1
    steps = (digit * 10.0**exponent for exponent in range(power, power + 5) for digit in (1, 2, 5))
    for step in steps:
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first < most:
            return [number * step for number in range(first, max(last, first + 1) + 1)]
    raise AssertionError("a step that is longer than the range always fits")


def thinned(points: Sequence[Point], tolerance: float = _TOLERANCE) -> list[Point]:
    """Return the points without those that a straight line shows as well (Douglas-Peucker)."""
    keep = {0, len(points) - 1}
    spans = [(0, len(points) - 1)]
    while spans:
        first, last = spans.pop()
        between = range(first + 1, last)
        if not between:
            continue
        far = max(between, key=lambda i: _off(points[i], points[first], points[last]))
        if _off(points[far], points[first], points[last]) > tolerance:
            keep.add(far)
            spans += [(first, far), (far, last)]
    return [points[index] for index in sorted(keep) if points]


def _off(point: Point, first: Point, last: Point) -> float:
    """Return how far a point is above or below the line from one to another."""
    (x, y), (x0, y0), (x1, y1) = point, first, last
    if x0 == x1:
        return abs(y - min(max(y, min(y0, y1)), max(y0, y1)))
    return abs(y0 + (y1 - y0) * (x - x0) / (x1 - x0) - y)
