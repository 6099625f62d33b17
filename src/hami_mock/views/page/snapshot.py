"""The node now, as data for people: the page, `hami-mock top` and the tests all show this.

Cards, resources and what containers make of cards are mappings by name, in order, and what isn't
known is None: so two snapshots differ by a JSON Merge Patch.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol
from zlib import crc32

from hami_mock import __version__
from hami_mock.faults.stage import Stage
from hami_mock.kit.text import cut
from hami_mock.node.cards import Card
from hami_mock.node.readings import Reading, Usage
from hami_mock.node.state import NodeState
from hami_mock.sources.configuration import Configuration
from hami_mock.views.offering import Offering

_MOST_EVENTS = 50
_READ = (
    "memory_busy", "memory_reserved", "memory_free", "power", "power_limit", "temperature",
    "memory_temperature", "fan", "sm_clock", "memory_clock", "ecc_errors", "last_xid",
)  # fmt: skip
"""What of a card's reading is shown beside how busy it is; rounded."""


class Shown(Protocol):
    """What can be looked at: an agent."""

    @property
    def state(self) -> NodeState: ...
    def offerings(self) -> Sequence[Offering]: ...
    @property
    def stage(self) -> Stage: ...
    @property
    def configuration(self) -> Configuration: ...
    def failures(self) -> Mapping[str, str]: ...


def snapshot(shown: Shown) -> dict[str, Any]:
    """Return all that is to be seen of a node; it asks nobody, and every text in it is short."""
    state, offerings, failures = shown.state, shown.offerings(), shown.failures()
    configuration = shown.configuration
    are_offered = all(each.is_offered for each in offerings)
    scenario, readings = shown.stage.status, state.readings
    return {
        "node": cut(state.node.name),
        "version": __version__,
        "time": round(time.time(), 1),
        "ready": are_offered and not configuration.missing and not failures,
        "problems": [
            *(cut(f"{part}: {why}") for part, why in failures.items()),
            *map(cut, (*configuration.error, *configuration.missing)),
        ],
        "holders_known": state.holders.all is not None,
        "cards": {
            cut(card.name): _card(card, state, readings.get(card.uuid)) for card in state.node.cards
        },
        "resources": {cut(each.resource.name): _resource(each, state) for each in offerings},
        "scenario": scenario and {**scenario, "name": cut(scenario["name"])},
        "events": _events(state),
    }


def _card(card: Card, state: NodeState, reading: Reading | None) -> dict[str, Any]:
    health, load = state.health(card), state.load(card)
    return {
        "uuid": cut(card.uuid),
        "model": cut(card.model.name),
        "pci_bus_id": card.pci_bus_id,
        "numa": card.numa,
        "health": health.health,
        "degraded": health.is_degraded,
        "reasons": [cut(reason) for reason in health.reasons],
        "memory": card.memory,
        "busy": round(reading.busy if reading else load.busy, 1),
        "memory_used": reading.memory_used if reading else load.memory,
        **{name: _rounded(getattr(reading, name, None)) for name in _READ},
        "throttles": sorted(reading.throttles) if reading else [],
        "containers": {_name(usage): _usage(usage) for usage in state.usages(card)},
    }


def _rounded(value: float | None) -> float | None:
    return value if value is None else round(value, 1)


def _name(usage: Usage) -> str:
    return "/".join(map(cut, usage.container))


def _usage(usage: Usage) -> dict[str, Any]:
    namespace, pod, container = map(cut, usage.container)
    return {
        "namespace": namespace,
        "pod": pod,
        "container": container,
        "busy": usage.load.busy,
        "memory": usage.load.memory,
        "memory_limit": usage.memory_limit,
        "cores_limit": usage.cores_limit,
        "slots": usage.slots,
        "profiles": [instance.profile for instance in usage.instances],
        "hue": hue(namespace, pod),
    }


def hue(namespace: str, pod: str) -> int:
    """Return a pod's colour, in degrees: the same wherever it is shown."""
    return crc32(f"{namespace}/{pod}".encode()) % 360


def _resource(offering: Offering, state: NodeState) -> dict[str, Any]:
    resource = offering.resource
    faults = (fault.text for fault in state.faults if resource.name in fault.targets)
    return {
        "unit": resource.unit,
        "count": resource.count,
        **state.device_health(resource),
        "held": state.count_held(resource),
        "phase": offering.phase,
        "reason": cut(offering.reason),
        "faults": [cut(text) for text in faults],
    }


def _events(state: NodeState) -> dict[str, dict[str, Any]]:
    latest = state.events.after(state.events.counts.total() - _MOST_EVENTS)
    return {str(event.number): {**asdict(event), "warning": event.is_warning} for event in latest}
