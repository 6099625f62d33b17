"""What stands before the values of a row: the metrics' names with the row's labels.

Pods come and go one by one, so what was written for a row is kept for as long as the row is there.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hami_mock.kit.exposition_text import escaped
from hami_mock.kubelet.holder import Container
from hami_mock.node.cards import Card
from hami_mock.node.instances import Instance
from hami_mock.vendors.exporter import Exporter, Labels, Metric, Per
from hami_mock.views.exporters.rows import Row, card_fields, container_fields

Rows = Mapping[Per, Sequence[Row]]
Pieces = tuple[bytes, ...]
"""The pieces of all metrics of a row, one after the other: a value follows each of them."""
_Key = tuple[Per, str, Container | None, int, str, Instance | None]
"""The row's place, with the card's UUID: to hash a card takes as long as to write its labels."""

_NAME_HOLDERS = (Per.CARD, Per.INSTANCE)


class _Known(NamedTuple):
    card: Card
    pieces: Pieces


class _Written(NamedTuple):
    """A metric, by the number of its labels among those of its kind of row."""

    metric: Metric
    labels: int


class RowTexts:
    """Writes the pieces of rows."""

    def __init__(self, exporter: Exporter, node_name: str, driver: str) -> None:
        self._exporter = exporter
        self._node_name = node_name
        self._driver = driver
        self._known: dict[_Key, _Known] = {}
        self._card_template = _template(exporter.card_labels)
        self._container_template = _template(exporter.container_labels)
        self._templates: dict[Per, list[str]] = {}
        self._metrics: dict[Per, list[_Written]] = {}
        for per in Per:
            own = [metric for metric in exporter.metrics if metric.per is per]
            labels = [*dict.fromkeys(metric.labels for metric in own)]
            own_labels = exporter.instance_labels if per is Per.INSTANCE else exporter.card_labels
            self._templates[per] = [_template((*own_labels, *each)) for each in labels]
            self._metrics[per] = [_Written(metric, labels.index(metric.labels)) for metric in own]

    def of(self, rows: Rows) -> dict[Per, list[Pieces]]:
        """Return the pieces of each row; those of rows that are gone are forgotten."""
        before, self._known = self._known, {}
        fields: dict[str, dict[str, str]] = {}
        return {
            per: [self._of_row(per, row, before, fields) for row in own]
            for per, own in rows.items()
        }

    def parts(self, row: Row) -> tuple[str, str]:
        """Return the labels of a card's row, before and after those of a metric's own."""
        fields = self._fields(row, {})
        return self._card_template.format_map(fields), self._after(Per.CARD, row, fields)

    def labels(self, per: Per, row: Row) -> tuple[dict[Labels, str], str]:
        """Return the labels of any row: before a metric's values by its own labels, and after."""
        fields = self._fields(row, {})
        own = dict.fromkeys(each.metric.labels for each in self._metrics[per])
        texts = (template.format_map(fields) for template in self._templates[per])
        return dict(zip(own, texts, strict=True)), self._after(per, row, fields)

    def _of_row(
        self,
        per: Per,
        row: Row,
        before: Mapping[_Key, _Known],
        fields: dict[str, dict[str, str]],
    ) -> Pieces:
        card, usage = row.card, row.usage
        container = usage.container if usage else None
        key = per, card.uuid, container, row.number, row.pod_uid, row.instance
        known = before.get(key)
        # The same UUID may be another card: the configuration has changed.
        if known is None or (known.card is not card and known.card != card):
            known = _Known(card, self._write(per, row, self._fields(row, fields)))
        self._known[key] = known
        return known.pieces

    def _write(self, per: Per, row: Row, fields: Mapping[str, str]) -> Pieces:
        after = self._after(per, row, fields)
        labels = [template.format_map(fields) for template in self._templates[per]]
        pieces: list[bytes] = []
        for metric, number in self._metrics[per]:
            piece = f"{metric.name}{{{labels[number]}"
            for name, _, _ in metric.live:
                pieces.append(f'{piece},{name}="'.encode())
                piece = '"'
            pieces.append(f"{piece}{after}}} ".encode())
        return tuple(pieces)

    def _after(self, per: Per, row: Row, fields: Mapping[str, str]) -> str:
        """Return the labels of the container that has a card, or a part of one, for itself."""
        if per not in _NAME_HOLDERS or not (row.usage or self._exporter.has_empty_labels):
            return ""
        after = self._container_template.format_map(fields)
        return after and f",{after}"

    def _fields(self, row: Row, of_cards: dict[str, dict[str, str]]) -> dict[str, str]:
        card = row.card
        fields = of_cards.get(card.uuid)
        if fields is None:
            fields = of_cards[card.uuid] = _escaped(
                card_fields(card, self._node_name, self._driver)
            )
        return fields | _escaped(container_fields(row))


def _escaped(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: escaped(text) for name, text in fields.items()}


def _template(labels: Labels) -> str:
    """Return labels in one text, into which escaped fields are filled."""
    return ",".join(f'{name}="{escaped(text)}"' for name, text in labels)
