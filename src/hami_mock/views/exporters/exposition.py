"""Prometheus' text format from pieces that stay as they are while the same things are shown.

All that doesn't change from scrape to scrape, which is nearly everything, is made once: names,
help and labels. A scrape fills in the numbers. prometheus_client takes 30 times as long.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

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
        self._pieces = [b""]
        """What stays, and in every second place a value."""
        self._labels = _LabelTexts(exporter, node_name, self._driver)

    def render(self, rows: Rows, end: bytes = b"") -> bytes:
        """Return the text of some rows, with something else at its end."""
        layout = [[row.place for row in own] for own in rows.values()]
        if layout != self._layout:
            self._labels = _LabelTexts(self._exporter, self._node_name, self._driver)
            self._pieces = _spaced(self._make_pieces(rows))
            self._layout = layout
        self._pieces[1::2] = self._values(rows)
        return b"".join([*self._pieces, end])

    def card_labels(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        """Return the labels of the cards' rows that were rendered last.

        They are in two parts: what stands before and after the labels of a metric's own.
        """
        return self._labels.of_cards(rows)

    def _values(self, rows: Rows) -> list[bytes]:
        values: list[bytes] = []
        for metric in self._exporter.metrics:
            own, form, scale = _rows_of(metric, rows), metric.form, metric.scale
            read = VALUES[metric.reads]
            if metric.live:
                readers = [*((VALUES[reads], form) for _, reads, form in metric.live), (read, form)]
                values += [(form % reader(row)).encode() for row in own for reader, form in readers]
            else:
                # As bytes from the start: a megabyte of text takes long to encode.
                as_bytes = form.encode()
                values += [as_bytes % (read(row) * scale) for row in own]
        return values

    def _make_pieces(self, rows: Rows) -> list[str]:
        pieces = [""]
        for name, metrics in groupby(self._exporter.metrics, key=lambda metric: metric.name):
            has_head = False
            for metric in metrics:
                for labels in self._labels.of(metric, _rows_of(metric, rows)):
                    if not has_head:
                        pieces[-1] += head_text(name, metric.help, metric.kind)
                        has_head = True
                    first, *others = labels
                    pieces[-1] += f"{name}{{{first}"
                    pieces += others
                    pieces[-1] += "} "
                    pieces.append("\n")
        return pieces


def _spaced(pieces: Sequence[str]) -> list[bytes]:
    """Return pieces with a place for a value between each two of them."""
    spaced = [b""] * (2 * len(pieces) - 1)
    spaced[::2] = [piece.encode() for piece in pieces]
    return spaced


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
        self._known: dict[tuple[object, ...], list[list[str]]] = {}
        self._of_cards: list[tuple[str, str]] | None = None

    def of(self, metric: Metric, rows: Sequence[Row]) -> list[list[str]]:
        """Return the labels of a metric's rows: pieces, with a value between each two of them."""
        key = metric.per, metric.labels, metric.live, metric.reads in SOME_LACK
        if key not in self._known:
            parts = self._parts(metric.labels, metric.per, rows)
            self._known[key] = [_pieces(before, metric, after) for before, after in parts]
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


def _pieces(before: str, metric: Metric, after: str) -> list[str]:
    pieces = [before]
    for name, _, _ in metric.live:
        pieces[-1] += f',{name}="'
        pieces.append('"')
    pieces[-1] += after
    return pieces
