"""Charts as SVG that stands in a page, whose style sheet gives the colours. Pure.

Each is drawn 480 units wide, so that its letters can be read on a phone and beside another chart.
Series differ by dashes too, and cells have numbers in them: nobody needs to tell colours apart.
"""

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from hami_mock.kit.plotting import Point, thinned, ticks
from hami_mock.kit.terminal import shorten
from hami_mock.kit.text import cut

WIDTH = 480
_LETTER = 7.0
"""About how wide a letter is; on phones they are larger."""
_LEFT, _RIGHT, _BOTTOM = 52, 16, 40
_LINE = 18
_MOST_TICKS = 7
_PLOT_HEIGHT = 200
_NAME_WIDTH = 150
_VALUE_WIDTH = 96
_CELL = 34


@dataclass(frozen=True)
class Series:
    """A line of a chart; `style` is one of the sheet's. `has_dots`: each point was measured."""

    label: str
    points: Sequence[Point]
    style: int = 0
    has_dots: bool = False


@dataclass(frozen=True)
class Bar:
    """A row of a chart of bars: a share of the whole, and what is said of it.

    `idle` is a part behind the first, hatched.
    """

    label: str
    share: float
    text: str
    idle: float = 0.0
    about: str = ""


@dataclass(frozen=True)
class Axis:
    """What an axis counts; values above `most` are cut off. `is_whole`: there are no halves."""

    label: str
    least: float = 0.0
    most: float | None = None
    is_whole: bool = False

    def ticks(self, values: Iterable[float]) -> list[float]:
        """Return the values to write on it: the highest encloses all of the data."""
        high = self.most or max((*values, self.least + (1 if self.is_whole else 1e-6)))
        if self.is_whole and high - self.least < _MOST_TICKS:
            return [float(value) for value in range(int(self.least), math.ceil(high) + 1)]
        return ticks(self.least, high, _MOST_TICKS)


def line_chart(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Draw lines over a common axis."""
    return _Lines(title, x, y, series).draw()


class _Lines:
    def __init__(self, title: str, x: Axis, y: Axis, series: Sequence[Series]) -> None:
        self._title, self._x, self._y, self._series = title, x, y, series
        self._legend = list(_legend(series))
        self._top = 28 + _LINE * (self._legend[-1][1] + 1 if self._legend else 0)
        points = [point for each in series for point in each.points]
        # To the right a chart ends with its data: there is nothing to be read beyond it.
        self._far = max((across for across, _ in points), default=0.0) or 1.0
        every = x.ticks(across for across, _ in points)
        self._across_ticks = [value for value in every if value <= self._far]
        self._up_ticks = y.ticks(up for _, up in points)

    def draw(self) -> str:
        bottom = self._top + _PLOT_HEIGHT
        clip = f"clip-{crc32(self._title.encode())}"
        parts = [
            f'<text x="{_LEFT}" y="{self._top - 12}" class="axis">{_text(self._y.label)}</text>',
            *self._grid(bottom),
            f'<text x="{WIDTH - _RIGHT}" y="{bottom + 34}" class="axis" text-anchor="end">'
            f"{_text(self._x.label)}</text>",
            *self._names(),
            f'<clipPath id="{clip}"><rect x="{_LEFT - 5}" y="{self._top - 5}" '
            f'width="{WIDTH - _LEFT - _RIGHT + 10}" height="{_PLOT_HEIGHT + 10}"/></clipPath>',
            f'<g clip-path="url(#{clip})">',
            *(self._line(each) for each in self._series if each.points),
            "</g>",
        ]
        return _svg(self._title, bottom + _BOTTOM, parts)

    def _grid(self, bottom: float) -> Iterator[str]:
        for value in self._up_ticks:
            y = self._down(value)
            yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>'
            yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(value)}</text>'
        for value in self._across_ticks:
            x = self._across(value)
            yield f'<path class="tick" d="M{x:.1f} {bottom}v4"/>'
            yield (
                f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{_number(value)}</text>'
            )

    def _names(self) -> Iterator[str]:
        for (x, row), each in zip(self._legend, self._series, strict=False):
            y = 14 + _LINE * row
            yield f'<path class="line s{each.style}" d="M{x:.0f} {y - 4}h24"/>'
            yield f'<text x="{x + 30:.0f}" y="{y}">{_text(each.label)}</text>'

    def _line(self, series: Series) -> str:
        placed = [(self._across(x), self._down(y)) for x, y in series.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in thinned(placed))
        dots = (
            f'<circle class="dot s{series.style}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>'
            f"{_text(series.label)}, {_number(own[0])}: {_number(own[1])}</title></circle>"
            for (x, y), own in zip(placed, series.points, strict=True)
            if series.has_dots
        )
        title = f"<title>{_text(series.label)}</title>"
        return f'<path class="line s{series.style}" d="M{path}">{title}</path>{"".join(dots)}'

    def _across(self, value: float) -> float:
        low, high = self._across_ticks[0], self._far
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (value - low) / (high - low)

    def _down(self, value: float) -> float:
        low, high = self._up_ticks[0], self._up_ticks[-1]
        return self._top + _PLOT_HEIGHT * (high - value) / (high - low)


def _legend(series: Sequence[Series]) -> Iterator[tuple[float, int]]:
    """Yield where the name of each series stands: its x and its row."""
    x, row = float(_LEFT), 0
    for each in series:
        width = 30 + _LETTER * len(each.label) + 16
        if x > _LEFT and x + width > WIDTH:
            x, row = float(_LEFT), row + 1
        yield x, row
        x += width


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Draw a row for each bar: its name, the bar, and its value in words."""
    plot = WIDTH - _NAME_WIDTH - _VALUE_WIDTH
    parts = []
    for number, bar in enumerate(bars):
        y = 4 + number * 26
        name = shorten(bar.label, int((_NAME_WIDTH - 10) / _LETTER))
        width, idle = (plot * min(max(share, 0.0), 1.0) for share in (bar.share, bar.idle))
        about = _text(bar.about or f"{bar.label}: {bar.text}")
        parts += [
            f"<g><title>{about}</title>",
            f'<text x="{_NAME_WIDTH - 8}" y="{y + 14}" text-anchor="end">{_text(name)}</text>',
            _rect("track", _NAME_WIDTH, y, plot),
            _rect("fill", _NAME_WIDTH, y, width),
        ]
        if idle:
            parts.append(_rect("idle", _NAME_WIDTH + width, y, min(idle, plot - width)))
        parts.append(
            f'<text x="{_NAME_WIDTH + plot + 8}" y="{y + 14}">{_text(bar.text)}</text></g>'
        )
    return _svg(title, 8 + 26 * len(bars), parts)


def _rect(kind: str, x: float, y: float, width: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="18"/>'


def heat_map(
    title: str, x: str, y: str, steps: Sequence[str], cells: Sequence[Sequence[int]]
) -> str:
    """Draw a square of counts: `cells` are rows from the bottom, `steps` name both sides.

    The first row and the first column have a frame: one of the two is used up there.
    """
    left, top, side = 66, 24, _CELL * len(steps)
    bottom = top + side
    most = max((count for row in cells for count in row), default=0)
    parts = [f'<text x="{left}" y="14" class="axis">↑ {_text(y)}</text>']
    for up, row in enumerate(cells):
        y0 = bottom - _CELL * (up + 1)
        parts.append(_side_text(left - 6, y0 + 21, steps[up], "end"))
        for across, count in enumerate(row):
            where = f"{x} {steps[across]}, {y} {steps[up]}: {count:,}"
            parts += _cell(left + _CELL * across, y0, count, f"h{_shade(count, most)}", where)
    for across, step in enumerate(steps):
        parts.append(_side_text(left + _CELL * (across + 0.5), bottom + 16, step, "middle"))
    frame = f"M{left} {top}V{bottom}H{left + side}v-{_CELL}H{left + _CELL}V{top}Z"
    parts.append(f'<path class="frame" d="{frame}"/>')
    parts.append(
        f'<text x="{left + side}" y="{bottom + 34}" class="axis" text-anchor="end">'
        f"{_text(x)} →</text>"
    )
    return _svg(title, bottom + _BOTTOM, parts)


def _side_text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{_text(text)}</text>'


def _cell(x: float, y: float, count: int, shade: str, where: str) -> Iterator[str]:
    yield f'<g class="cell {shade}"><title>{_text(where)}</title>'
    yield f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}"/>'
    if count:
        yield _side_text(x + _CELL / 2, y + 21, _short(count), "middle")
    yield "</g>"


def _shade(count: int, most: int) -> int:
    """Return which of the sheet's shades 0 to 5 a count has: each root is a shade darker."""
    return 0 if not count else 1 + min(4, int(5 * (count / most) ** 0.5 * 0.999))


def _short(count: int) -> str:
    for unit, size in (("M", 10**6), ("k", 10**3)):
        if count >= size:
            scaled = count / size
            return f"{scaled:.1f}{unit}" if scaled < 10 else f"{scaled:.0f}{unit}"
    return str(count)


def _number(value: float) -> str:
    return f"{value + 0.0:,.6g}"


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{_text(title)}">\n'
        f"{body}\n</svg>"
    )


def _text(text: str) -> str:
    return html.escape(cut(text))
