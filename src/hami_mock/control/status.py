"""The whole state as data, for `ctl status`."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from hami_mock import __version__
from hami_mock.kubelet.pod_resources import Holder
from hami_mock.node.cards import Card
from hami_mock.node.state import NodeState
from hami_mock.views.deviceplugin.lifecycle import Phase, PluginLifecycle

Holding = dict[str, Any]
"""A pod, a container of it, and how many devices of a card it holds."""


def status(
    state: NodeState, plugins: Sequence[PluginLifecycle], holders: Sequence[Holder] | None
) -> dict[str, Any]:
    """Return node, resources and cards; who holds what only if that is known."""
    holdings = _holdings(holders or (), state)
    return {
        "node": state.node.name,
        "version": __version__,
        "ready": all(plugin.phase is Phase.WATCHED for plugin in plugins),
        "holders_known": holders is not None,
        "resources": [_resource(plugin, state, holders) for plugin in plugins],
        "cards": [_card(card, state, holdings.get(card.uuid, ())) for card in state.node.cards],
    }


def _resource(
    plugin: PluginLifecycle, state: NodeState, holders: Sequence[Holder] | None
) -> dict[str, Any]:
    resource = plugin.resource
    held = None
    if holders is not None:
        held = sum(len(holder.devices.get(resource.name, ())) for holder in holders)
    faults = [fault.text for fault in state.faults if resource.name in fault.targets]
    return {
        "name": resource.name,
        "unit": resource.unit,
        "phase": plugin.phase,
        "reason": plugin.reason,
        "count": resource.count,
        **state.device_health(resource),
        "held": held,
        "faults": faults,
    }


def _card(card: Card, state: NodeState, holdings: Sequence[Holding]) -> dict[str, Any]:
    uuid, health = card.uuid, state.health(card)
    return {
        "name": card.name,
        "uuid": uuid,
        "model": card.model.name,
        "memory": card.memory,
        "numa": card.numa,
        "health": health.health,
        "degraded": health.is_degraded,
        "reasons": list(health.reasons),
        "xids": {str(xid): n for (of, xid), n in state.xids.items() if of == uuid},
        "holders": list(holdings),
    }


def _holdings(holders: Sequence[Holder], state: NodeState) -> dict[str, list[Holding]]:
    """Return who holds how many devices of each card, by the card's UUID."""
    found: dict[str, list[Holding]] = defaultdict(list)
    for holder in holders:
        per_card: dict[str, dict[str, int]] = defaultdict(dict)
        for name, ids in holder.devices.items():
            if name in state.resources:
                cards = Counter(map(state.resources[name].devices.card_of, ids))
                for uuid, count in cards.items():
                    if uuid is not None:
                        per_card[uuid][name] = count
        for uuid, devices in per_card.items():
            held = {"pod": holder.pod, "container": holder.container, "devices": devices}
            found[uuid].append(held)
    return found
