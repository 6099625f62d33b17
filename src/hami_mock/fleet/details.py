"""One node of a fleet, for who looks closer: its cards, its pods and what is wrong."""

from collections import Counter
from typing import Any

from hami_mock.fleet.allocation import Shape
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.kit.text import cut
from hami_mock.node.fault import On

_MOST_PODS = 200


def details(fleet: Fleet, member: Member) -> dict[str, Any]:
    """Return what is true of a node now; every text in it is short."""
    state, shape = fleet.state(member), Shape.of(member.pool)
    parts: dict[str, Counter[str]] = {card.uuid: Counter() for card in state.node.cards}
    for (namespace, pod_name, _), of_container in state.assigned().items():
        if state.pods[namespace, pod_name].is_over:
            continue
        for uuid, part in of_container.items():
            parts[uuid].update(slots=part.devices, memory=part.memory, cores=part.cores)
    pods = [pod for pod in (member.pods or {}).values() if not pod.is_over]
    return {
        "name": member.name,
        "pool": member.pool.name,
        "zone": member.zone,
        "rack": member.rack,
        "there": member.is_there,
        "ready": member.is_ready,
        "faults": [
            cut(fault.text)
            for fault in member.faults
            if fault.kind.on is On.NODES or not fault.targets & parts.keys()
        ],
        "whole": shape.whole._asdict(),
        "cards": [
            {
                "name": cut(card.name),
                "model": cut(card.model.name),
                "health": (health := state.health(card)).health,
                "degraded": health.is_degraded,
                "reasons": [cut(reason) for reason in health.reasons],
                "memory": card.memory,
                # None: whoever placed the pods knows nothing of cards.
                "used": {name: parts[card.uuid][name] for name in ("memory", "slots", "cores")}
                if shape.assigned
                else None,
            }
            for card in state.node.cards
        ],
        "pods": [
            {
                "name": cut(f"{pod.namespace}/{pod.name}"),
                "phase": cut(pod.phase),
                **shape.used_by(pod)._asdict(),
            }
            for pod in pods[:_MOST_PODS]
        ],
        "more_pods": max(0, len(pods) - _MOST_PODS),
    }
