"""Gathers what the doctor of a fleet examines."""

import time
from collections.abc import Mapping
from contextlib import aclosing, suppress
from datetime import datetime
from statistics import median
from typing import Any

from hami_mock.cluster.kubernetes import Kubernetes, Object, annotations_of, labels_of
from hami_mock.cluster.resources import DEPLOYMENTS, LEASES, NODES, PODS
from hami_mock.errors import ClusterError
from hami_mock.fleet import names
from hami_mock.fleet.examining import Facts
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.nodes import node_object
from hami_mock.fleet.pods import BOUND
from hami_mock.fleet.shown import Made, Ours, is_ready, patch
from hami_mock.sources.pods import read_pod

_QUESTIONS = 9
_LEASES = 5
"""Of so many nodes that aren't ready the leases are read: they tell enough."""


async def look(
    kubernetes: Kubernetes, name: str, fleet: Fleet | None, status: Mapping[str, Any] | None
) -> Facts:
    """Return what is seen of a fleet; with the fleet of a file, also what differs from it.

    Raises ClusterError if the API server can't be asked.
    """
    silent: list[str] = []
    not_ready: list[str] = []
    changed: dict[str, list[str]] = {}
    faulty: list[Object] = []
    nodes = stopped = 0
    async with aclosing(kubernetes.pages(NODES, labels=f"{names.FLEET}={name}")) as pages:
        async for page in pages:
            for node in page:
                nodes += 1
                own = node["metadata"]["name"]
                if names.KWOK_NODE not in annotations_of(node):
                    stopped += 1
                elif not is_ready(node):
                    (not_ready if node["status"].get("conditions") else silent).append(own)
                if fleet is not None and (keys := _differing(fleet, node)):
                    changed[own] = keys
                    faulty += [node] if names.FAULTS in annotations_of(node) else []
    if fleet is not None and faulty:
        # What their pods have of cards that failed counts too.
        await _read_pods(kubernetes, fleet)
        changed |= {node["metadata"]["name"]: _differing(fleet, node) for node in faulty}
    return Facts(
        nodes=nodes,
        stopped=stopped,
        silent=silent,
        not_ready=not_ready,
        lease_ages=await _leases(kubernetes, not_ready[:_LEASES]),
        changed={name: keys for name, keys in changed.items() if keys},
        answer_seconds=await _answer_seconds(kubernetes),
        status=status,
        hami=await _hami(kubernetes),
    )


async def _read_pods(kubernetes: Kubernetes, fleet: Fleet) -> None:
    async with aclosing(kubernetes.pages(PODS, BOUND)) as pages:
        async for page in pages:
            for thing in page:
                if member := fleet.members.get(thing["spec"].get("nodeName", "")):
                    pod = read_pod(thing)
                    member.pods = {**(member.pods or {}), (pod.namespace, pod.name): pod}


def _differing(fleet: Fleet, node: Object) -> list[str]:
    """Return what a node shows otherwise than its pool and its faults say."""
    member = fleet.members.get(node["metadata"]["name"])
    if member is None or labels_of(node).get(names.POOL) != member.pool.name:
        return []
    text = annotations_of(node).get(names.FAULTS)
    fleet.restore(member, text)
    state, now = fleet.state(member), time.time()
    ours = Ours.of(member.pool, fleet.name)
    wanted = ours.noted(node_object(member.pool, state, fleet.name, now, text))
    found = patch(Made(member.pool, state, wanted), ours, node, now)
    return [key for part in found.values() for own in part.values() for key in own]


async def _leases(kubernetes: Kubernetes, nodes: list[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for name in nodes:
        with suppress(ClusterError, ValueError):  # there may be none
            lease = await kubernetes.get(LEASES, name, "kube-node-lease")
            renewed = datetime.fromisoformat(str(lease["spec"].get("renewTime")))
            holds = float(lease["spec"].get("leaseDurationSeconds") or 0)
            found[name] = time.time() - renewed.timestamp(), holds
    return found


async def _answer_seconds(kubernetes: Kubernetes) -> float:
    taken = []
    for _ in range(_QUESTIONS):
        since = time.monotonic()
        await kubernetes.server_version()
        taken.append(time.monotonic() - since)
    return median(taken)


async def _hami(kubernetes: Kubernetes) -> list[str] | None:
    """Return the arguments of HAMi's scheduler, if it is there and we may see it."""
    with suppress(ClusterError):
        async with aclosing(kubernetes.pages(DEPLOYMENTS)) as pages:
            async for page in pages:
                for deployment in page:
                    if (words := _extender(deployment)) is not None:
                        return words
    return None


def _extender(deployment: Object) -> list[str] | None:
    template = deployment["spec"].get("template") or {}
    for container in (template.get("spec") or {}).get("containers") or ():
        words = [*map(str, (*(container.get("command") or ()), *(container.get("args") or ())))]
        # Its image may come from anywhere; the flag is its own.
        if any(word.startswith("--scheduler-name") or word == "scheduler" for word in words[:3]):
            return words
    return None
