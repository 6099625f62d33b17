"""Charts over time as SVG, for light and dark pages: strips one below the other. Pure."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hami_mock.kit.plotting import Point, thinned, ticks

WIDTH = 760
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 28, 50, 34
_HEIGHT, _GAP = 84, 36
_PLOT = WIDTH - _LEFT - _RIGHT
_LETTER = 7.0
"""About how wide a letter is; legends are set with it."""
_TIME_STEP = 20 * 60

_COLOURS = ("#1d5fc2", "#c2570c", "#1a7f4b", "#8446b8")
_DARK_COLOURS = ("#6ea8ff", "#ffa657", "#56d38c", "#c99bff")
_STYLE = """\
text{fill:#3d444d;font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
.paper{fill:#fff;stroke:#d5dae0}.head{font-size:15px;font-weight:600}.name{font-weight:600}
.grid{stroke:#e4e7eb}.mark{stroke:#c93c37;stroke-dasharray:4 3}.event{fill:#b02a25}
.line{fill:none;stroke-width:1.6;stroke-linejoin:round}.area{stroke:none;fill-opacity:.3}
.whole{fill:none;stroke:#1f2328;stroke-width:1.3;stroke-dasharray:5 3}"""
_DARK_STYLE = """\
text{fill:#c3cad3}.paper{fill:#0d1117;stroke:#30363d}.grid{stroke:#262c36}
.mark{stroke:#ff7b72}.event{fill:#ff8f87}.whole{stroke:#f0f3f6}"""


@dataclass(frozen=True)
class Line:
    """One series. `is_whole`: the sum that the stacked ones should come to."""

    label: str
    points: Sequence[Point]
    colour: int = 0
    is_whole: bool = False


@dataclass(frozen=True)
class Strip:
    """A plot with an axis of its own; the values go from `low` at least as far as the data."""

    title: str
    unit: str
    lines: Sequence[Line]
    low: float = 0.0
    high: float = 0.0
    is_stacked: bool = False


@dataclass(frozen=True)
class Picture:
    """Strips over the same time; `marks` are moments in which something happened."""

    title: str
    strips: Sequence[Strip]
    begin: float
    end: float
    marks: Mapping[float, str]


def runs(points: Sequence[Point], step: float) -> Iterator[list[Point]]:
    """Yield the parts of a series between its gaps: nothing is drawn where nothing was said."""
    own: list[Point] = []
    for point in points:
        if own and point[0] - own[-1][0] > 1.5 * step:
            yield own
            own = []
        own.append(point)
    if own:
        yield own


def stacked(lines: Sequence[Line]) -> list[tuple[Line, list[Point]]]:
    """Return series on top of each other, each with the one that it stands on."""
    floor: dict[float, float] = {}
    found = []
    for line in lines:
        below = [(time, floor.get(time, 0.0)) for time, _ in line.points]
        above = [(time, floor.get(time, 0.0) + value) for time, value in line.points]
        floor |= dict(above)
        found.append((Line(line.label, above, line.colour), below))
    return found


def draw(picture: Picture, step: float) -> str:
    """Return a picture as SVG; two points further apart than `step` have a gap between them."""
    height = _TOP + len(picture.strips) * (_HEIGHT + _GAP) - _GAP + _BOTTOM + 18
    tops = [_TOP + 18 + number * (_HEIGHT + _GAP) for number in range(len(picture.strips))]
    parts = [
        part
        for strip, top in zip(picture.strips, tops, strict=True)
        for part in _Plot(picture, strip, top, step).parts()
    ]
    title = html.escape(picture.title)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            f' aria-label="{title}">',
            f"<style>\n{_STYLE}\n{_colours(_COLOURS)}",
            "@media (prefers-color-scheme:dark){",
            f"{_DARK_STYLE}\n{_colours(_DARK_COLOURS)}}}\n</style>",
            f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
            f'<text class="head" x="{_LEFT}" y="26">{title}</text>',
            *_marks(picture, tops),
            *parts,
            *_times(picture, tops[-1] + _HEIGHT + 18),
            "</svg>\n",
        ]
    )


def _colours(colours: Sequence[str]) -> str:
    return "".join(
        f".l{n}{{stroke:{colour}}}.a{n}{{fill:{colour}}}" for n, colour in enumerate(colours)
    )


def _across(picture: Picture, time: float) -> float:
    return _LEFT + _PLOT * (time - picture.begin) / (picture.end - picture.begin)


def _times(picture: Picture, y: float) -> Iterator[str]:
    first = math.ceil(picture.begin / _TIME_STEP) * _TIME_STEP
    for time in range(first, int(picture.end) + 1, _TIME_STEP):
        text = datetime.fromtimestamp(time, UTC).strftime("%H:%M")
        x = _across(picture, time)
        yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{text}</text>'


def _marks(picture: Picture, tops: Sequence[float]) -> Iterator[str]:
    for time, text in picture.marks.items():
        x = _across(picture, time)
        yield (
            f'<path class="mark" d="M{x:.1f} {tops[0] - 24}V{tops[-1] + _HEIGHT}"/>'
            f'<text class="event" x="{x + 4:.1f}" y="{tops[0] - 16}">{html.escape(text)}</text>'
        )


class _Plot:
    """One strip, at its place."""

    def __init__(self, picture: Picture, strip: Strip, top: float, step: float) -> None:
        self._picture, self._strip, self._top, self._step = picture, strip, top, step
        self._stack = stacked([line for line in strip.lines if not line.is_whole])
        lines = [own for own, _ in self._stack] if strip.is_stacked else strip.lines
        highest = max((value for line in lines for _, value in line.points), default=0.0)
        self._ticks = ticks(strip.low, max(strip.high, highest, strip.low + 1))

    def parts(self) -> Iterator[str]:
        strip = self._strip
        title = html.escape(strip.title)
        yield f'<text x="{_LEFT}" y="{self._top - 8}"><tspan class="name">{title}</tspan>' + (
            f" {html.escape(strip.unit)}</text>"
        )
        yield from self._legend()
        for value in self._ticks:
            y = self._down(value)
            yield f'<path class="grid" d="M{_LEFT} {y:.1f}h{_PLOT}"/>' + (
                f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.5g}</text>'
            )
        if strip.is_stacked:
            for line, below in self._stack:
                yield from self._area(line, below)
        for line in strip.lines:
            if line.is_whole or not strip.is_stacked:
                yield from self._line(line)

    def _legend(self) -> Iterator[str]:
        x = float(WIDTH - _RIGHT)
        if len(self._strip.lines) == 1:
            return
        for line in reversed(self._strip.lines):
            x -= _LETTER * len(line.label)
            yield f'<text x="{x:.1f}" y="{self._top - 8}">{html.escape(line.label)}</text>'
            yield f'<path class="{_class(line)}" d="M{x - 22:.1f} {self._top - 12}h16"/>'
            x -= 36

    def _line(self, line: Line) -> Iterator[str]:
        for run in runs(line.points, self._step):
            yield f'<path class="{_class(line)}" d="M{self._path(run)}"/>'

    def _area(self, line: Line, below: Sequence[Point]) -> Iterator[str]:
        pairs = zip(runs(line.points, self._step), runs(below, self._step), strict=True)
        for above, under in pairs:
            there, back = self._path(above), self._path(under, back=True)
            yield f'<path class="area a{line.colour}" d="M{there}L{back}Z"/>'
            yield f'<path class="line l{line.colour}" d="M{there}"/>'

    def _path(self, points: Sequence[Point], *, back: bool = False) -> str:
        placed = [(_across(self._picture, time), self._down(value)) for time, value in points]
        path = thinned(placed)
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in (reversed(path) if back else path))

    def _down(self, value: float) -> float:
        low, high = self._ticks[0], self._ticks[-1]
        return self._top + _HEIGHT * (high - value) / (high - low)


def _class(line: Line) -> str:
    return "whole" if line.is_whole else f"line l{line.colour}"
