"""A snapshot of a fleet as lines for a terminal: pools as blocks, nodes as signs, events. Pure.

A node is a character; where more nodes are than fit, a character is several of them, and shows how
full they are on average, or the worst that is wrong with one.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from hami_mock.fleet.snapshot import COLUMNS, ILL, Mark
from hami_mock.kit import moments
from hami_mock.kit.terminal import Style, bar, clip, is_unicode, paint, shorten

Data = Mapping[str, Any]
_Cell = tuple[str, tuple[str, ...]]
"""A character, and its styles."""

_LEAST_EVENTS = 4
"""Lines that are left for events, with their title."""
_LEAST_NAME = 6
_BAR = 10
_LEVELS = "▁▂▃▄▅▆▇█"
_PLAIN_LEVELS = "123456789#"
_COLOURS = (108, 79, 73, 74, 68, 63)
"""From little to much, for terminals with 256 colours; each is seen on black and on white."""
_BLINK = "5"
_FAILED: _Cell = "!", (Style.RED, Style.BOLD, _BLINK)
_DEGRADED: _Cell = "~", (Style.YELLOW, Style.BOLD)
_NOT_READY: _Cell = "/", (Style.YELLOW,)
_NOT_THERE: _Cell = "-", (Style.DIM,)
_WIDTH = len(COLUMNS)


def frame(snapshot: Data, columns: int, lines: int | None = None) -> list[str]:
    """Return the screen; where it has so many lines and no more, it is cut to fit."""
    shown = [clip(line, columns) for line in _frame(snapshot, columns, lines)]
    return shown if lines is None else shown[:lines]


def _frame(snapshot: Data, columns: int, lines: int | None) -> Iterator[str]:
    yield _head(snapshot, columns)
    yield _legend()
    yield ""
    pools: Sequence[Data] = snapshot["pools"]
    if not pools:
        yield "This fleet has no pools."
    # A pool has two lines above its nodes and an empty one below.
    room = math.inf if lines is None else max(lines - 3 - _LEAST_EVENTS, 4)
    shown = pools if len(pools) * 4 <= room else pools[: max(int(room - 1) // 4, 1)]
    signs = [pool["nodes"] + 2 * len(_zones(pool)) - 2 for pool in shown]
    heights = _heights(signs, columns, room - 3 * len(shown))
    used, first = 3, 0
    for pool, height in zip(shown, heights, strict=True):
        each, cells = _cells(snapshot["rows"], first, pool, height * columns)
        yield from _pool(pool, each, cells, columns)
        used += 3 + math.ceil(len(cells) / columns)
        first += pool["nodes"]
    if len(shown) < len(pools):
        yield paint(f"… and {len(pools) - len(shown)} pools more", Style.DIM)
        used += 1
    events = _events(snapshot["events"], columns)
    yield from events if lines is None else [*events][: max(lines - used, 0)]


def _heights(signs: Sequence[int], columns: int, room: float) -> list[int]:
    """Return how many lines each pool's nodes get: as many as they need, or their share."""
    needed = [max(1, math.ceil(each / columns)) for each in signs]
    if sum(needed) <= room:
        return needed
    spare = max(room - len(signs), 0)
    return [1 + int(spare * (each - 1) / max(sum(needed) - len(signs), 1)) for each in needed]


def _head(snapshot: Data, columns: int) -> str:
    pools = snapshot["pools"]

    def total(key: str) -> int:
        return sum(pool[key] for pool in pools)

    missing = total("nodes") - total("ready")
    state = f"{missing:,} not ready" if missing else "all ready"
    words = [_many(total("nodes"), "node"), state]
    words += [f"{total('ill'):,} with faults"] if total("ill") else []
    words.append(_many(total("pods"), "pod"))
    if (writes := snapshot.get("writes")) is not None:
        words.append(f"{writes['per_second']:g} writes/s")
    clock = moments.show(snapshot["time"])[-8:]
    # The last words are those that can be missed.
    while len(rest := f"  {', '.join(words)}  ") + len(clock) + _LEAST_NAME > columns and words[2:]:
        words.pop()
    name = shorten(snapshot["fleet"], max(columns - len(rest) - len(clock), _LEAST_NAME))
    space = " " * max(columns - len(name) - len(rest) - len(clock), 0)
    style = Style.YELLOW if missing else Style.GREEN
    return f"{paint(name, Style.BOLD)}{rest.replace(state, paint(state, style), 1)}{space}{clock}"


def _legend() -> str:
    signs = (
        (_FAILED, "failed"),
        (_DEGRADED, "degraded"),
        (_NOT_READY, "not ready"),
        (_NOT_THERE, "not there"),
        (_level(0), "empty"),
    )
    scale = "".join(paint(*_styled(_level(percent))) for percent in (1, 20, 40, 60, 80, 100))
    told = [f"{paint(*_styled(cell))} {text}" for cell, text in signs]
    return "  ".join((*told, f"{scale} full"))


def _styled(cell: _Cell) -> tuple[str, ...]:
    return cell[0], *cell[1]


def _pool(pool: Data, each: int, cells: Sequence[_Cell], columns: int) -> Iterator[str]:
    words = [_many(pool["nodes"], "node")]
    if pool["there"] < pool["nodes"]:
        words.append(f"{pool['there']:,} there")
    words.append(f"{pool['ready']:,} ready")
    if failed := pool["cards"] - pool["usable"]:
        words.append(f"{_many(failed, 'card')} failed")
    words.append(_many(pool["pods"], "pod"))
    words += [f"{each} nodes a sign"] if each > 1 else []
    words += [f"{count} x {name}" for name, count in pool["models"].items()]
    text = f"{pool['name']}  {', '.join(words)}"
    text = text if len(text) <= columns else f"{text[: columns - 1]}…"
    name = text[: len(pool["name"])]
    yield paint(name, Style.BOLD) + text[len(name) :]
    yield "  ".join(_bar(name, *pool[name]) for name in COLUMNS[:-1] if pool[name][1])
    for start in range(0, len(cells), columns):
        alike = groupby(cells[start : start + columns], key=lambda cell: cell[1])
        yield "".join(paint("".join(sign for sign, _ in run), *styles) for styles, run in alike)
    yield ""


def _bar(name: str, used: int, of: int) -> str:
    return f"{name} {paint(bar(used / of, _BAR), Style.CYAN)} {used / of:>4.0%}"


def _zones(pool: Data) -> dict[str, int]:
    """Return how many nodes each zone has."""
    zones: dict[str, int] = {}
    for group in pool["groups"]:
        zones[group["zone"]] = zones.get(group["zone"], 0) + len(group["nodes"])
    return zones


def _cells(rows: Sequence[int], first: int, pool: Data, most: int) -> tuple[int, list[_Cell]]:
    """Return how many nodes a sign stands for, so that no more are needed, and the signs.

    A line stands between two zones.
    """
    zones = _zones(pool)
    each = max(1, math.ceil(pool["nodes"] / max(most - 2 * len(zones) + 2, 1)))
    cells: list[_Cell] = []
    for nodes in zones.values():
        cells += [_border()] if cells else []
        end = first + nodes
        cells += [
            _cell(rows[number * _WIDTH : min(number + each, end) * _WIDTH])
            for number in range(first, end, each)
        ]
        first = end
    return each, cells


def _border() -> _Cell:
    return ("│" if is_unicode() else "|"), (Style.DIM,)


def _cell(rows: Sequence[int]) -> _Cell:
    marks = [Mark(mark) for mark in rows[_WIDTH - 1 :: _WIDTH]]
    if any(mark & (Mark.BROKEN | Mark.STOPPED) for mark in marks):
        return _FAILED
    if any(mark & ILL for mark in marks):
        return _DEGRADED
    if all(not mark & Mark.THERE for mark in marks):
        return _NOT_THERE
    if any(not mark & Mark.READY for mark in marks):
        return _NOT_READY
    used = [max(rows[at : at + _WIDTH - 1]) for at in range(0, len(rows), _WIDTH)]
    return _level(math.ceil(sum(used) / len(used)))


def _level(percent: int) -> _Cell:
    """Return how full a node is, as a sign that needs no colours, and a colour."""
    if percent <= 0:
        return ("·" if is_unicode() else "."), (Style.DIM,)
    signs = _LEVELS if is_unicode() else _PLAIN_LEVELS
    share = min(percent, 100) / 100
    colour = _COLOURS[min(int(share * len(_COLOURS)), len(_COLOURS) - 1)]
    return signs[min(int(share * len(signs)), len(signs) - 1)], (f"38;5;{colour}",)


def _events(events: Sequence[Data], columns: int) -> Iterator[str]:
    if not events:
        yield "Nothing has happened yet."
        return
    yield paint("EVENTS", Style.BOLD)
    for event in reversed(events):
        head = f"{moments.show(event['time'])[-8:]}  "
        subject = event["subject"] and f"{event['subject']}: "
        text = shorten(f"{event['kind']}  {subject}{event['message']}", columns - len(head))
        kind = event["kind"]
        painted = paint(kind, Style.YELLOW) if event["warning"] else kind
        yield head + (painted + text[len(kind) :] if text.startswith(kind) else text)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"
