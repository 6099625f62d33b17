"""The views of a maker's tool, with cards filled in; and a plain table for makers without one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from string import Formatter
from typing import Any, NamedTuple

from hami_mock.cli.smi_cards import ShownCard
from hami_mock.kit.terminal import table, width
from hami_mock.vendors.smi import Parts, Tool, Values, View


class _Column(NamedTuple):
    header: str
    form: str
    side: str


_PLAIN = (
    _Column("CARD", "{card}", "k"),
    _Column("NAME", "{name}", " "),
    _Column("BUS ID", "{bus}", "k"),
    _Column("BUS", "{place}", "k"),
    _Column("HEALTH", "{health}", "k"),
    _Column("BUSY", "{busy:.0f}%", "r"),
    _Column("MEMORY MiB", "{memory_used}/{memory_total}", "r"),
    _Column("POWER W", "{power:.0f}/{power_limit:.0f}", "r"),
    _Column("TEMP", "{temperature:.0f}C", "r"),
    _Column("PODS", "{pods}", "r"),
)
_LEFT_OUT = ({"BUS"}, {"BUS ID"}, {"BUS ID", "BUS"}, {"BUS ID", "BUS", "PODS"})
"""What is left out of the plain table, until it fits; after that, names give way."""
_ANY_WIDTH = 10_000
_SPEC = re.compile(r"(?P<side>[<>^]?)(?P<columns>\d*)")


def drawn(tool: Tool, view: View, cards: Sequence[ShownCard]) -> Iterator[str]:
    """Yield the lines of a view of one maker's cards, of which there is at least one."""
    every = [(card, _values(tool, card, len(cards))) for card in cards]
    _, first = every[0]
    yield from _filled(view.head, tool, first)
    for card, values in every:
        yield from _filled(view.card, tool, values)
        for instance in card.instances:
            yield from _filled(view.instance, tool, {**values, **instance})
    if view.parts and any(card.values["is_cut"] for card in cards):
        yield from _parts(view.parts, tool, every)
    if (programs := view.processes) is not None:
        yield from _filled(programs.head, tool, first)
        rows = 0
        for card, values in every:
            own = [{**values, **process} for process in card.processes]
            for process in own:
                yield from _filled((programs.row,), replace(tool, lost=""), process)
            if programs.by_card:
                yield from _filled((() if own else (programs.none,)), tool, values)
                yield from programs.end
            rows += len(own)
        if not programs.by_card:
            yield from () if rows else (programs.none,)
            yield from programs.end
    yield from _filled(view.foot, tool, first)


def _parts(view: Parts, tool: Tool, every: Sequence[tuple[ShownCard, Values]]) -> Iterator[str]:
    _, first = every[0]
    yield from _filled(view.head, tool, first)
    parts = [{**values, **part} for card, values in every for part in card.instances]
    for part in parts:
        yield from _filled(view.part, tool, {**part, **tool.more_of_part(part)})
    yield from () if parts else view.none


def plain(cards: Sequence[ShownCard]) -> list[str]:
    """Return the table of cards whose maker has no tool that others parse."""
    most = width()
    for left_out in _LEFT_OUT:
        columns = [column for column in _PLAIN if column.header not in left_out]
        lines = _plain(columns, cards, most=_ANY_WIDTH)
        if most is None or max(map(len, lines[1:])) <= most:
            return lines
    return _plain(columns, cards, most)


def _plain(columns: Sequence[_Column], cards: Sequence[ShownCard], most: int | None) -> list[str]:
    filler = _Filler("-")
    rows = []
    for card in cards:
        values = {
            **card.values,
            "place": card.values["bus"].partition(":")[2],
            "pods": len(card.processes),
        }
        rows.append([filler.vformat(column.form, (), values) for column in columns])
    sides = "".join(column.side for column in columns)
    return table([column.header for column in columns], rows, sides, most)


def listed(card: ShownCard) -> Iterator[str]:
    """Yield a line for a card, and one for each part that was cut out of it."""
    yield "{card}: {name} (UUID: {uuid})".format_map(card.values)
    for part in card.instances:
        yield "  {profile} (UUID: {instance})".format_map(part)


def _values(tool: Tool, card: ShownCard, count: int) -> Values:
    values = {
        **card.values,
        "count": count,
        "version": tool.version,
        "health_word": tool.health.get(card.values["health"], card.values["health"]),
    }
    return {**values, **tool.more(values)}


def _filled(lines: Sequence[str], tool: Tool, values: Values) -> Iterator[str]:
    is_lost = values["health"] == "lost" and tool.lost
    filler = _Filler(tool.lost if is_lost else tool.unknown)
    cells = _Cells(filler, tool.cells, values)
    for line in lines:
        yield filler.vformat(line, (), cells)


class _Cells(dict[str, Any]):
    """The values, and the texts that a tool makes of several."""

    def __init__(self, filler: "_Filler", cells: Mapping[str, str], values: Values) -> None:
        super().__init__(values)
        self._filler, self._cells = filler, cells

    def __missing__(self, name: str) -> str | None:
        form = self._cells[name]
        # Half of a text says nothing.
        if any(self[name] is None for _, name, _, _ in Formatter().parse(form) if name):
            return None
        return self._filler.vformat(form, (), self)


class _Filler(Formatter):
    """Fills values in; one that isn't there is a word, and a text is no wider than its place."""

    def __init__(self, unknown: str) -> None:
        self._unknown = unknown

    def get_value(self, key: int | str, _args: Sequence[Any], values: Mapping[str, Any]) -> Any:
        return values[str(key)]

    def format_field(self, value: Any, spec: str) -> str:
        place = _SPEC.match(spec)
        assert place is not None
        if value is None:
            value, spec = self._unknown, f"{place['side']}{place['columns']}"
        columns = int(place["columns"] or 0)
        text = format(value, spec)
        return text[:columns] if columns and isinstance(value, str) else text
