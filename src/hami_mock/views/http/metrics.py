"""The counters and the state as Prometheus metrics, made when somebody asks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hami_mock import __version__
from hami_mock.kit.exposition_text import head_text, sample_text
from hami_mock.kit.text import cut
from hami_mock.kubelet.dra_gates import DROPPED
from hami_mock.node.event_kinds import Kind
from hami_mock.node.fault_kinds import fault_kinds
from hami_mock.node.state import NodeState
from hami_mock.sources.configuration import Configuration
from hami_mock.views.deviceplugin.counters import BUCKETS, Histogram
from hami_mock.views.offering import Offering

if TYPE_CHECKING:
    from hami_mock.views.dra.view import DriverFigures

_Rows = Iterable[tuple[Sequence[str], float]]
"""The values of a metric's labels, each with the metric's own."""

_CARD = ("card", "uuid", "model")
_COUNTED = {
    "registrations": "Registrations that the kubelet accepted.",
    "registration_errors": "Registrations that failed.",
    "lists": "Device lists sent to the kubelet.",
    "list_bytes": "Bytes of the device lists sent to the kubelet.",
    "allocations": "Allocate calls answered.",
    "allocation_errors": "Allocate calls refused.",
    "allocated_devices": "Devices handed out by Allocate.",
}
_METRICS = {
    "info": ("gauge", "Always 1.", "version"),
    "devices": ("gauge", "Devices by health.", "resource", "health"),
    "watched": (
        "gauge",
        "1 if the kubelet watches the resource, or if it is in the Node's status.",
        "resource",
    ),
    "configuration_error": (
        "gauge",
        "1 if the newest configuration has an error and an older one is in use.",
    ),
    "api_writes": ("counter", "Writes to the API server."),
    "part_failing": ("gauge", "1 if a part of the agent doesn't work now.", "part"),
    "part_failures": ("counter", "How often a part of the agent failed.", "part"),
    "card_healthy": ("gauge", "1 if the kubelet may use the card.", *_CARD),
    "card_degraded": ("gauge", "1 if the card is degraded, healthy or not.", *_CARD),
    "events": ("counter", "Events by kind.", "kind"),
    "xids": ("counter", "Xids by card.", "card", "uuid", "xid"),
    "faults": ("gauge", "Current faults by effect.", "effect"),
    **{name: ("counter", help_text, "resource") for name, help_text in _COUNTED.items()},
    "dra_registered": ("gauge", "1 if the kubelet has registered the DRA driver.", "driver"),
    "dra_devices": ("gauge", "Devices that the DRA driver has to offer.", "driver"),
    "dra_slices": ("gauge", "ResourceSlices of the DRA driver at the API server.", "driver"),
    "dra_slice_writes": ("counter", "Writes of ResourceSlices.", "driver"),
    "dra_claims": ("gauge", "ResourceClaims that are prepared now.", "driver"),
    "dra_claim_errors": ("counter", "Claims that couldn't be prepared.", "driver"),
    "dra_gate_off": ("gauge", "1 if a feature gate turned out to be off.", "driver", "gate"),
}


@dataclass(frozen=True)
class NodeCollector:
    """Reads the node's state and the counters of its resources at each scrape."""

    state: NodeState
    offerings: Callable[[], Sequence[Offering]]
    configuration: Configuration
    api_writes: Callable[[], int] | None = None
    failures: Callable[[], Mapping[str, str]] = dict
    """Part of the agent → why it doesn't work now."""
    failure_counts: Mapping[str, int] = field(default_factory=dict)
    drivers: Callable[[], Sequence["DriverFigures"]] = tuple

    def lines(self) -> Iterator[str]:
        for short, rows in self._rows().items():
            kind, help_text, *labels = _METRICS[short]
            name = f"hami_mock_{short}" + ("_total" if kind == "counter" else "")
            yield head_text(name, help_text, kind)
            for values, value in rows:
                # A real plugin's cards are called as somebody else likes.
                safe = map(cut, values)
                yield sample_text(name, zip(labels, safe, strict=True), value)
        yield from self._histogram(
            "allocation_seconds", "Time to answer Allocate.", "resource",
            [(each.resource.name, each.counters.allocation_seconds) for each in self.offerings()],
        )  # fmt: skip
        if drivers := self.drivers():
            yield from self._histogram(
                "dra_prepare_seconds", "Time to prepare a claim.", "driver",
                [(each.driver, each.prepare_seconds) for each in drivers],
            )  # fmt: skip

    def _rows(self) -> dict[str, _Rows]:
        state, offerings, writes = self.state, self.offerings(), self.api_writes
        counts, failing = self.failure_counts, self.failures()
        cards = [((c.name, c.uuid, c.model.name), state.health(c)) for c in state.node.cards]
        return {
            "info": [((__version__,), 1)],
            "devices": self._devices(offerings),
            "watched": [((o.resource.name,), o.is_offered) for o in offerings],
            "configuration_error": [((), bool(self.configuration.error))],
            **({"api_writes": [((), writes())]} if writes else {}),
            "part_failing": [((part,), part in failing) for part in counts],
            "part_failures": [((part,), count) for part, count in counts.items()],
            "card_healthy": [(labels, health.is_usable) for labels, health in cards],
            "card_degraded": [(labels, health.is_degraded) for labels, health in cards],
            # Zeros too: what first shows as 1 has not increased in the eyes of Prometheus.
            "events": [((kind,), state.events.counts[kind]) for kind in Kind],
            "xids": self._xids(),
            "faults": [((k.name,), sum(f.kind is k for f in state.faults)) for k in fault_kinds()],
            **{
                name: [((o.resource.name,), getattr(o.counters, name)) for o in offerings]
                for name in _COUNTED
            },
            **self._of_drivers(),
        }

    def _devices(self, offerings: Sequence[Offering]) -> _Rows:
        for each in offerings:
            for health, count in self.state.device_health(each.resource).items():
                yield (each.resource.name, health), count

    def _xids(self) -> _Rows:
        for (uuid, xid), count in self.state.xids.items():
            card = self.state.cards.get(uuid)
            yield (card.name if card else "", uuid, str(xid)), count

    def _of_drivers(self) -> dict[str, _Rows]:
        """Return the rows of DRA, where there is any."""
        drivers = self.drivers()
        if not drivers:
            return {}
        return {
            "dra_registered": [((each.driver,), each.is_registered) for each in drivers],
            "dra_devices": [((each.driver,), each.devices) for each in drivers],
            "dra_slices": [((each.driver,), each.slices) for each in drivers],
            "dra_slice_writes": [((each.driver,), each.slice_writes) for each in drivers],
            "dra_claims": [((each.driver,), each.claims) for each in drivers],
            "dra_claim_errors": [((each.driver,), each.claim_errors) for each in drivers],
            "dra_gate_off": [
                ((each.driver, gate), gate in each.gates_off)
                for each in drivers
                for gate in DROPPED
            ],
        }

    @staticmethod
    def _histogram(
        short: str, help_text: str, label: str, rows: Iterable[tuple[str, Histogram]]
    ) -> Iterator[str]:
        name = f"hami_mock_{short}"
        yield head_text(name, help_text, "histogram")
        for value, histogram in rows:
            of = label, cut(value)
            counts = zip(map(str, BUCKETS), histogram.counts, strict=True)
            for bound, count in (*counts, ("+Inf", histogram.number)):
                yield sample_text(f"{name}_bucket", (("le", bound), of), count)
            yield sample_text(f"{name}_count", (of,), histogram.number)
            yield sample_text(f"{name}_sum", (of,), histogram.total)


def render(collector: NodeCollector) -> bytes:
    """Return the metrics in Prometheus' text format."""
    return "".join(collector.lines()).encode()
