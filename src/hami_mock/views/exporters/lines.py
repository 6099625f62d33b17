"""Metrics of many nodes, one metric after the other: what one node has of it, and nothing is kept.

`Exposition` keeps all labels of one node ready; those of ten thousand would fill the memory.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hami_mock.vendors.exporter import Exporter, Labels, Metric, Per
from hami_mock.views.exporters.row_texts import Rows, RowTexts
from hami_mock.views.exporters.rows import Row
from hami_mock.views.exporters.values import VALUES

NODE = "any-node-of-the-pool.hami-mock.invalid"
"""Stands for a node's name in texts that are made once for many nodes."""


class Labelled(NamedTuple):
    """A row with its labels, before and after those that are values."""

    row: Row
    before: Mapping[Labels, str]
    after: str


LabelledRows = Mapping[Per, list[Labelled]]


class Lines:
    """Writes an exporter's metrics."""

    def __init__(self, exporter: Exporter, driver: str = "") -> None:
        self._texts = RowTexts(exporter, NODE, driver or exporter.driver)

    def labelled(self, rows: Rows, node_name: str) -> LabelledRows:
        """Return rows with their labels, for as long as it takes to write all metrics of them."""
        return {
            per: [self._labelled(per, row, node_name) for row in own] for per, own in rows.items()
        }

    def _labelled(self, per: Per, row: Row, node_name: str) -> Labelled:
        before, after = self._texts.labels(per, row)
        named = {labels: text.replace(NODE, node_name) for labels, text in before.items()}
        return Labelled(row, named, after.replace(NODE, node_name))


def lines(metric: Metric, rows: LabelledRows) -> str:
    """Return the lines that rows have of a metric."""
    return "".join(_lines(metric, rows.get(metric.per, ())))


def _lines(metric: Metric, rows: Iterable[Labelled]) -> Iterable[str]:
    read, name, scale = VALUES[metric.reads], metric.name, metric.scale
    for row, before, after in rows:
        value = read(row)
        if value is not None:
            live = "".join(
                f',{label}="{form % VALUES[reads](row)}"' for label, reads, form in metric.live
            )
            shown = metric.form % (value if metric.live else value * scale)
            yield f"{name}{{{before[metric.labels]}{live}{after}}} {shown}\n"
