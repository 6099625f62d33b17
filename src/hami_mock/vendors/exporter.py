"""What a maker's own exporter serves, as data: metrics, labels, units. Loaded when one is served.

A metric `reads` a value by a name that `views.exporters.values` knows. A label's text is a format
with the names that `views.exporters.rows` fills in: {uuid}, {index}, {node}, {pod}, …
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

Labels = tuple[tuple[str, str], ...]
"""Names of labels, each with the format of its text, in the order in which they are written."""

MIB = 1024 * 1024


class Per(StrEnum):
    """What there is a row for."""

    CARD = "card"
    CONTAINER = "container"
    SLICE = "slice"
    """A container on a card that is given out in slices."""
    INSTANCE = "instance"
    """A part that was cut out of a card, in place of the card."""


@dataclass(frozen=True)
class Metric:
    """One metric.

    - reads, scale: its value, and by what that is multiplied for the metric's unit
    - form: how the value is written, as `%` takes it
    - labels: more of them, beside those of all rows
    - live: labels whose text is a value, and the form of each
    """

    name: str
    reads: str
    help: str
    kind: str = "gauge"
    per: Per = Per.CARD
    scale: float = 1
    form: str = "%d"
    labels: Labels = ()
    live: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Exporter:
    """A maker's exporter.

    - port: where the real one listens
    - card_labels: of every row; container_labels: of a row about a container, or about a card that
      one container alone holds
    - instance_labels: of every row about an instance, if it has such rows
    - has_empty_labels: a card that nobody holds has the container's labels all the same, empty
    - option: the option with the address at which we serve it
    - driver: the version of its driver that labels show
    - monitored_as: the type that HAMi's monitor gives its cards; empty: it doesn't see them
    """

    metrics: tuple[Metric, ...]
    card_labels: Labels
    container_labels: Labels
    port: int
    instance_labels: Labels = ()
    has_empty_labels: bool = False
    option: str = "vendor-metrics-listen"
    driver: str = ""
    monitored_as: str = ""

    @property
    def has_parts(self) -> bool:
        """Whether it shows parts that were cut out of a card in place of the card."""
        return any(metric.per is Per.INSTANCE for metric in self.metrics)

    def renamed(self, names: Mapping[str, str]) -> "Exporter":
        """Return the exporter with other names for some labels of cards."""

        def named(labels: Labels) -> Labels:
            return tuple((names.get(name, name), text) for name, text in labels)

        return replace(
            self,
            card_labels=named(self.card_labels),
            instance_labels=named(self.instance_labels),
        )
