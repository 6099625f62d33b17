"""Prometheus' text format from a template that stays as it is while the same things are shown.

All that doesn't change from scrape to scrape, which is nearly everything, is made once: names,
help and labels. A scrape fills in the numbers. prometheus_client takes 30 times as long.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from hami_mock.node.cards import Card
from hami_mock.vendors.exporter import Exporter, Labels, Metric, Per
from hami_mock.views.exporters.rows import Row, card_fields, container_fields
from hami_mock.views.exporters.values import SOME_LACK, VALUES

Rows = Mapping[Per, Sequence[Row]]


class Exposition:
    """The text of one exporter's metrics."""

    def __init__(self, exporter: Exporter, node_name: str, driver: str = "") -> None:
        self._exporter = exporter
        self._node_name = node_name
        self._driver = driver or exporter.driver
        self._layout: list[list[tuple[object, ...]]] = []
        self._template = ""
        self._labels = _LabelTexts(exporter, node_name, self._driver)

    def text(self, rows: Rows) -> str:
        layout = [[row.place for row in own] for own in rows.values()]
        if layout != self._layout:
            self._labels = _LabelTexts(self._exporter, self._node_name, self._driver)
            self._template = self._make_template(rows)
            self._layout = layout
        return self._template % tuple(self._values(rows))

    def card_labels(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        """Return the labels of the cards' rows that `text` was made of last.

        They are in two parts: what stands before and after the labels of a metric's own.
        """
        return self._labels.of_cards(rows)

    def _values(self, rows: Rows) -> list[Any]:
        values: list[Any] = []
        for metric in self._exporter.metrics:
            read, scale = VALUES[metric.reads], metric.scale
            own = _rows_of(metric, rows)
            if metric.live:
                readers = [*(VALUES[reads] for _, reads, _ in metric.live), read]
                values += [reader(row) for row in own for reader in readers]
            elif scale == 1:
                values += map(read, own)
            else:
                values += [read(row) * scale for row in own]
        return values

    def _make_template(self, rows: Rows) -> str:
        parts: list[str] = []
        for name, metrics in groupby(self._exporter.metrics, key=lambda metric: metric.name):
            lines: list[str] = []
            for metric in metrics:
                head, tail = f"{name}{{", f"}} {metric.form}\n"
                own = _rows_of(metric, rows)
                lines += [f"{head}{text}{tail}" for text in self._labels.of(metric, own)]
                help_text, kind = metric.help, metric.kind
            if lines:
                parts += [_literal(head_text(name, help_text, kind)), *lines]
        return "".join(parts)


def _rows_of(metric: Metric, rows: Rows) -> Sequence[Row]:
    own = rows.get(metric.per, ())
    if metric.reads in SOME_LACK:
        read = VALUES[metric.reads]
        return [row for row in own if read(row) is not None]
    return own


class _LabelTexts:
    """Writes the labels of rows; what several metrics have in common is written once."""

    def __init__(self, exporter: Exporter, node_name: str, driver: str) -> None:
        self._exporter = exporter
        self._node_name = node_name
        self._driver = driver
        self._fields: dict[str, dict[str, str]] = {}
        """Of cards, by UUID."""
        self._known: dict[tuple[object, ...], list[str]] = {}
        self._of_cards: list[tuple[str, str]] | None = None

    def of(self, metric: Metric, rows: Sequence[Row]) -> list[str]:
        """Return the labels of a metric's rows, for a template."""
        key = metric.per, metric.labels, metric.live, metric.reads in SOME_LACK
        if key not in self._known:
            live = "".join(f',{name}="{form}"' for name, _, form in metric.live)
            self._known[key] = [
                f"{_literal(before)}{live}{_literal(after)}"
                for before, after in self._parts(metric.labels, metric.per, rows)
            ]
        return self._known[key]

    def of_cards(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        if self._of_cards is None:
            self._of_cards = [*self._parts((), Per.CARD, rows)]
        return self._of_cards

    def _parts(self, more: Labels, per: Per, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
        exporter = self._exporter
        labels = (*exporter.card_labels, *more)
        for row in rows:
            fields = self._card(row.card) | container_fields(row)
            has_container = per is Per.CARD and (row.usage or exporter.has_empty_labels)
            after = _written(exporter.container_labels, fields) if has_container else ""
            yield _written(labels, fields), after and f",{after}"

    def _card(self, card: Card) -> dict[str, str]:
        fields = self._fields.get(card.uuid)
        if fields is None:
            fields = self._fields[card.uuid] = card_fields(card, self._node_name, self._driver)
        return fields


def head_text(name: str, help_text: str, kind: str) -> str:
    return f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"


def escaped(text: str) -> str:
    """Return a label's text as it stands between its quotes."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _written(labels: Labels, fields: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{escaped(text.format_map(fields))}"' for name, text in labels)


def _literal(text: str) -> str:
    """Return a text as it stands in a template."""
    return text.replace("%", "%%")
