"""Figures beside their targets, as tables or as JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from hami_mock.kit.terminal import Style, paint, table


@dataclass(frozen=True)
class Figure:
    """One measured number and, where there is one, the most or the least that it should be."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    peer: str = ""
    """What another program for the same purpose was measured to need, if that is known."""
    at_least: float | None = None
    is_firm: bool = False
    """Whether it doesn't depend on how fast the machine is, or what else it has to do."""

    @property
    def is_ok(self) -> bool | None:
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    @property
    def verdict(self) -> str:
        if self.is_ok is None:
            return ""
        return paint("ok", Style.GREEN) if self.is_ok else paint("MISSED", Style.RED)


@dataclass(frozen=True)
class Comparison:
    """The same step done by us and by the rival, in milliseconds."""

    devices: int
    step: str
    ours: float
    rival: float

    @property
    def ratio(self) -> float:
        return self.ours / self.rival


@dataclass(frozen=True)
class Section:
    """What one part of the bench has to say."""

    title: str
    figures: Sequence[Figure]
    comparisons: Sequence[Comparison] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)


def broken(sections: Iterable[Section]) -> list[str]:
    """Return what missed its target though no machine is too slow for it."""
    return [
        f"{section.title}: {figure.name}: {_number(figure.value)}, not {_target(figure)}"
        for section in sections
        for figure in section.figures
        if figure.is_firm and figure.is_ok is False
    ]


def as_table(sections: Sequence[Section]) -> str:
    """Return the report for people."""
    blocks = []
    for section in sections:
        lines = [paint(section.title, Style.BOLD, Style.CYAN)]
        if section.comparisons:
            rows = [
                (f"{c.devices:,}", c.step, f"{c.ours:.2f}", f"{c.rival:.2f}", f"{c.ratio:.3f}")
                for c in section.comparisons
            ]
            header = ("DEVICES", "STEP", "OURS ms", "RIVAL ms", "OURS / RIVAL")
            lines += [*table(header, rows, "r rrr"), ""]
        lines += _figures(section.figures)
        lines += [f"  {note}" for note in section.notes]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def as_json(sections: Sequence[Section]) -> str:
    """Return the report for programs."""
    document = []
    for section in sections:
        entry = asdict(section)
        for figure, row in zip(section.figures, entry["figures"], strict=True):
            row["ok"] = figure.is_ok
        for comparison, row in zip(section.comparisons, entry["comparisons"], strict=True):
            row["ratio"] = comparison.ratio
        document.append(entry)
    return json.dumps(document, indent=2)


def _figures(figures: Sequence[Figure]) -> list[str]:
    rows = [(f.name, _number(f.value), f.unit, _target(f), f.verdict, f.peer) for f in figures]
    header = ("FIGURE", "VALUE", "UNIT", "TARGET", "", "PEER")
    width = len(header) if any(f.peer for f in figures) else len(header) - 1
    return [*table(header[:width], [row[:width] for row in rows], " r r")]


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.2f}"


def _target(figure: Figure) -> str:
    if figure.at_least is not None:
        return f">= {figure.at_least:g}"
    return "" if figure.at_most is None else f"<= {figure.at_most:g}"
