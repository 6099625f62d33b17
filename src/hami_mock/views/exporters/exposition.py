"""Prometheus' text format from pieces that stay as they are while the same things are shown.

All that doesn't change from scrape to scrape, which is nearly everything, is made once: names,
help and labels. A scrape fills in the numbers. prometheus_client takes 30 times as long.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from hami_mock.kit.exposition_text import head_text
from hami_mock.vendors.exporter import Exporter, Metric, Per
from hami_mock.views.exporters.row_texts import Rows, RowTexts
from hami_mock.views.exporters.rows import Row
from hami_mock.views.exporters.values import SOME_LACK, VALUES

_T = TypeVar("_T")


class Exposition:
    """The text of one exporter's metrics."""

    def __init__(self, exporter: Exporter, node_name: str, driver: str = "") -> None:
        self._exporter = exporter
        self._layout: list[list[tuple[object, ...]]] = []
        self._pieces: list[bytes] = []
        """What stays, and in every second place a value."""
        self._texts = RowTexts(exporter, node_name, driver or exporter.driver)
        self._card_labels: list[tuple[str, str]] | None = None

    def render(self, rows: Rows, end: bytes = b"") -> bytes:
        """Return the text of some rows, with something else at its end."""
        layout = [[row.place for row in own] for own in rows.values()]
        if layout != self._layout:
            pieces = self._make_pieces(rows)
            self._pieces = [b""] * (2 * len(pieces))
            self._pieces[::2] = pieces
            self._layout, self._card_labels = layout, None
        self._pieces[1::2] = self._values(rows)
        return b"".join([*self._pieces, end])

    def card_labels(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        """Return the labels of the cards' rows that were rendered last.

        They are in two parts: what stands before and after the labels of a metric's own.
        """
        if self._card_labels is None:
            self._card_labels = [self._texts.parts(row) for row in rows]
        return self._card_labels

    def _values(self, rows: Rows) -> list[bytes]:
        """Return all values, each with what ends its line or its label."""
        values: list[bytes] = []
        for metric in self._exporter.metrics:
            own, scale = _with_values(metric, rows, rows), metric.scale
            read, form = VALUES[metric.reads], f"{metric.form}\n"
            if metric.live:
                readers = [*((VALUES[reads], form) for _, reads, form in metric.live), (read, form)]
                values += [(form % reader(row)).encode() for row in own for reader, form in readers]
            else:
                # As bytes from the start: a megabyte of text takes long to encode.
                as_bytes = form.encode()
                values += [as_bytes % (read(row) * scale) for row in own]
        return values

    def _make_pieces(self, rows: Rows) -> list[bytes]:
        texts = self._texts.of(rows)
        pieces: list[bytes] = []
        used: Counter[Per] = Counter()
        for name, metrics in groupby(self._exporter.metrics, key=lambda metric: metric.name):
            begin = len(pieces)
            for metric in metrics:
                first = used[metric.per]
                end = used[metric.per] = first + 1 + len(metric.live)
                own = _with_values(metric, rows, texts)
                if metric.live:
                    pieces += [piece for text in own for piece in text[first:end]]
                else:
                    pieces += [text[first] for text in own]
            if len(pieces) > begin:
                pieces[begin] = head_text(name, metric.help, metric.kind).encode() + pieces[begin]
        return pieces


def _with_values(metric: Metric, rows: Rows, of: Mapping[Per, Sequence[_T]]) -> Sequence[_T]:
    """Return what belongs to the rows that have a value of a metric."""
    own = of.get(metric.per, ())
    if metric.reads in SOME_LACK:
        read = VALUES[metric.reads]
        pairs = zip(rows.get(metric.per, ()), own, strict=True)
        return [each for row, each in pairs if read(row) is not None]
    return own
