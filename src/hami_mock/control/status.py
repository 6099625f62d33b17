"""The whole state as data, for `ctl status`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from hami_mock import __version__
from hami_mock.node.cards import Card
from hami_mock.node.holders import Holding, Load
from hami_mock.node.readings import Reading
from hami_mock.node.state import NodeState
from hami_mock.views.offering import Offering

_NOTHING: Mapping[str, str] = MappingProxyType({})


def status(
    state: NodeState,
    offerings: Sequence[Offering],
    failures: Mapping[str, str] = _NOTHING,
    notices: Mapping[str, str] = _NOTHING,
) -> dict[str, Any]:
    """Return node, resources and cards; who holds what only if that is known."""
    readings, holdings = state.readings, state.holdings()
    return {
        "node": state.node.name,
        "version": __version__,
        "ready": not failures and all(each.is_offered for each in offerings),
        "failures": dict(failures),
        "notices": dict(notices),
        "holders_known": state.holders.all is not None,
        "resources": [_resource(each, state) for each in offerings],
        "cards": [
            {
                **_card(card, state),
                "cut": _cut(card, state, readings.get(card.uuid)),
                "reading": _reading(readings.get(card.uuid)),
                "holders": [_holding(each, card, state) for each in holdings.get(card.uuid, ())],
            }
            for card in state.node.cards
        ],
    }


def _resource(offering: Offering, state: NodeState) -> dict[str, Any]:
    resource = offering.resource
    return {
        "name": resource.name,
        "unit": resource.unit,
        "way": "status" if resource.in_status else "plugin",
        "why": resource.why,
        "waits_to_move": resource.later is not None,
        "phase": offering.phase,
        "reason": offering.reason,
        "count": resource.count,
        **state.device_health(resource),
        "held": state.count_held(resource),
        "faults": [fault.text for fault in state.faults if resource.name in fault.targets],
    }


def _card(card: Card, state: NodeState) -> dict[str, Any]:
    uuid, health = card.uuid, state.health(card)
    return {
        "name": card.name,
        "uuid": uuid,
        "pci_bus_id": card.pci_bus_id,
        "serial": card.serial,
        "minor": card.minor,
        "model": card.model.name,
        "product": card.model.product,
        "memory": card.memory,
        "numa": card.numa,
        "health": health.health,
        "degraded": health.is_degraded,
        "reasons": list(health.reasons),
        "xids": {str(xid): n for (of, xid), n in state.xids.items() if of == uuid},
        "load": asdict(state.load(card)),
    }


def _cut(card: Card, state: NodeState, whole: Reading | None) -> list[dict[str, Any]] | None:
    """Return what a card is cut into, as NVML numbers it; None: it isn't in MIG mode.

    `memory` and what is used of it are those of the GPU instance, which several may share.
    """
    cut = state.cut_of(card)
    if cut is None:
        return None
    from hami_mock.node.instances import Cutter
    from hami_mock.node.physics import instance_reading

    usages = {each.uuid: usage for usage in state.usages(card) for each in usage.instances}
    found, used = [], Counter[int]()
    for each in Cutter(card.vendor, card.model, card.uuid).devices(cut):
        now = whole and instance_reading(whole, each, usages.get(each.uuid))
        used[each.gpu_instance] += now.memory_used if now else 0
        found.append((each, now))
    return [
        {
            "uuid": each.uuid,
            "profile": each.profile,
            "gpu_instance": each.gpu_instance,
            "compute_instance": each.compute_instance,
            "memory": each.memory,
            "memory_used": now and min(used[each.gpu_instance], each.memory - now.memory_reserved),
            "busy": now and round(now.busy, 3),
        }
        for each, now in found
    ]


def _reading(reading: Reading | None) -> dict[str, Any] | None:
    """Return what a card shows now; None: it is lost, or the load hasn't begun."""
    if reading is None:
        return None
    found = {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in asdict(reading).items()
        if name != "held"  # only the driver's counters are made of it
    }
    return {**found, "throttles": sorted(reading.throttles)}


def _holding(holding: Holding, card: Card, state: NodeState) -> dict[str, Any]:
    who = holding.container
    namespace, pod, container = who or (None, None, None)
    return {
        "namespace": namespace,
        "pod": pod,
        "container": container,
        "devices": holding.devices,
        "memory": holding.memory,
        "cores": holding.cores,
        "slots": holding.slots,
        "instances": [
            {
                "uuid": instance.uuid,
                "profile": instance.profile,
                "start": instance.start,
                "gpu_instance": instance.gpu_instance,
                "compute_instance": instance.compute_instance,
            }
            for instance in holding.instances
        ],
        "load": asdict(state.load(card, who) if who else Load()),
    }
