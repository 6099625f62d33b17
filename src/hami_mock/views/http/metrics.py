"""The counters and the state as Prometheus metrics, made when somebody asks.

prometheus_client is imported at the first scrape: an agent that nobody scrapes doesn't pay for it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from hami_mock import __version__
from hami_mock.node.fault_kinds import fault_kinds
from hami_mock.node.state import NodeState
from hami_mock.sources.configuration import Configuration
from hami_mock.views.deviceplugin.counters import BUCKETS
from hami_mock.views.deviceplugin.lifecycle import Phase, PluginLifecycle

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_COUNTERS = {
    "registrations": "Registrations that the kubelet accepted.",
    "registration_errors": "Registrations that failed.",
    "lists": "Device lists sent to the kubelet.",
    "list_bytes": "Bytes of the device lists sent to the kubelet.",
    "allocations": "Allocate calls answered.",
    "allocation_errors": "Allocate calls refused.",
    "allocated_devices": "Devices handed out by Allocate.",
}


class NodeCollector:
    """Reads the node's state and the counters of its resources at each scrape."""

    def __init__(
        self,
        state: NodeState,
        plugins: Sequence[PluginLifecycle],
        configuration: Configuration,
        api_writes: Callable[[], int] | None = None,
    ) -> None:
        self._state = state
        self._plugins = plugins
        self._configuration = configuration
        self._api_writes = api_writes

    def collect(self) -> "Iterator[Metric]":
        """Yield all metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        info = GaugeMetricFamily("hami_mock_info", "Always 1.", labels=["version"])
        info.add_metric([__version__], 1)
        yield info
        yield self._devices()
        watched = GaugeMetricFamily(
            "hami_mock_watched", "1 if the kubelet watches the resource.", labels=["resource"]
        )
        for plugin in self._plugins:
            watched.add_metric([plugin.resource.name], plugin.phase is Phase.WATCHED)
        yield watched
        wrong = GaugeMetricFamily(
            "hami_mock_configuration_error",
            "1 if the newest configuration has an error and an older one is in use.",
        )
        wrong.add_metric([], bool(self._configuration.error))
        yield wrong
        if self._api_writes is not None:
            writes = CounterMetricFamily("hami_mock_api_writes", "Writes to the API server.")
            writes.add_metric([], self._api_writes())
            yield writes
        yield from self._cards()
        yield from self._events_and_faults()
        yield from self._counters()
        yield self._allocation_seconds()

    def _devices(self) -> "Metric":
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(
            "hami_mock_devices", "Devices by health.", labels=["resource", "health"]
        )
        for plugin in self._plugins:
            for health, count in self._state.device_health(plugin.resource).items():
                family.add_metric([plugin.resource.name, health], count)
        return family

    def _cards(self) -> "Iterator[Metric]":
        from prometheus_client.core import GaugeMetricFamily

        labels = ["card", "uuid", "model"]
        healthy = GaugeMetricFamily(
            "hami_mock_card_healthy", "1 if the kubelet may use the card.", labels=labels
        )
        degraded = GaugeMetricFamily(
            "hami_mock_card_degraded", "1 if the card is degraded, healthy or not.", labels=labels
        )
        for card in self._state.node.cards:
            values = [card.name, card.uuid, card.model.name]
            health = self._state.health(card)
            healthy.add_metric(values, health.is_usable)
            degraded.add_metric(values, health.is_degraded)
        yield healthy
        yield degraded

    def _events_and_faults(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        events = CounterMetricFamily("hami_mock_events", "Events by kind.", labels=["kind"])
        for kind, count in self._state.events.counts.items():
            events.add_metric([kind], count)
        yield events
        xids = CounterMetricFamily(
            "hami_mock_xids", "Xids by card.", labels=["card", "uuid", "xid"]
        )
        for (uuid, xid), count in self._state.xids.items():
            card = self._state.cards.get(uuid)
            xids.add_metric([card.name if card else "", uuid, str(xid)], count)
        yield xids
        faults = GaugeMetricFamily(
            "hami_mock_faults", "Current faults by effect.", labels=["effect"]
        )
        for known in fault_kinds():
            faults.add_metric([known.name], sum(f.kind is known for f in self._state.faults))
        yield faults

    def _counters(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily

        for name, help_text in _COUNTERS.items():
            family = CounterMetricFamily(f"hami_mock_{name}", help_text, labels=["resource"])
            for plugin in self._plugins:
                family.add_metric([plugin.resource.name], getattr(plugin.counters, name))
            yield family

    def _allocation_seconds(self) -> "Metric":
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(
            "hami_mock_allocation_seconds", "Time to answer Allocate.", labels=["resource"]
        )
        for plugin in self._plugins:
            histogram = plugin.counters.allocation_seconds
            bounds = [str(bound) for bound in BUCKETS]
            buckets = [*zip(bounds, histogram.counts, strict=True), ("+Inf", histogram.number)]
            family.add_metric([plugin.resource.name], buckets, histogram.total)
        return family


def render(collector: NodeCollector) -> bytes:
    """Return the metrics in Prometheus' text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)
