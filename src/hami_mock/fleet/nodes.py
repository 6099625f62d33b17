"""A pool and a number → one node: its cards, its state, its Node object. Pure.

Nothing of a node is kept that can be made again: ten thousand nodes are ten thousand numbers, and
what is wrong with a few of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

from hami_mock.fleet import names
from hami_mock.kubelet.holder import Container, Holder
from hami_mock.node.amounts import amount
from hami_mock.node.cards import card_uuid
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import EventLog
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import DOWN, STOPPED
from hami_mock.node.labels import node_labels
from hami_mock.node.pods import Pod
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node
from hami_mock.node.state import Health, NodeState
from hami_mock.node.ways import Units
from hami_mock.settings.pools import Pool
from hami_mock.sources.configured import configured_node
from hami_mock.views.hami.registration import difference, registration

_KUBELET = "v1.0.0-hami-mock"


class _Unheard(EventLog):
    """Of a state that is made for a look: what was wrong before is no news."""

    def add(self, kind: Kind, subject: str, message: str) -> None:
        pass


def node_of(pool: Pool, index: int) -> Node:
    """Return a node of a pool: all that it offers stands in its status, for it has no kubelet."""
    named = replace(pool.settings, node_name=pool.node_name(index), units=Units.STATUS)
    return configured_node(named, None)


def models_of(node: Node) -> dict[str, int]:
    """Return how many cards of each model a node has."""
    return dict(Counter(card.model.name for card in node.cards))


def with_slots_only(node: Node, name: str) -> Node:
    """Return another node of the same pool: its cards, and the resources that count their slots."""
    resources = [resource for resource in node.resources if resource.has_slots]
    cards = {
        card.uuid: replace(card, uuid=card_uuid(name, card.vendor, card.index))
        for resource in resources
        for card in resource.cards
    }
    own = (
        replace(each, cards=tuple(cards[card.uuid] for card in each.cards)) for each in resources
    )
    return Node(name, tuple(cards.values()), tuple(own))


def state_of(pool: Pool, index: int, faults: Iterable[Fault] = ()) -> NodeState:
    """Return a node's state with what is wrong with it."""
    return state_with(node_of(pool, index), pool.settings.ignored_xids, faults)


def state_with(node: Node, ignored_xids: Set[int], faults: Iterable[Fault]) -> NodeState:
    state = NodeState(node, _Unheard(), ignored_xids=ignored_xids)
    if faults := tuple(faults):
        state.begin_faults(*faults)
    return state


def assigned_holders(state: NodeState) -> Iterator[Holder]:
    """Yield who holds devices of the cards that HAMi's scheduler has assigned to them.

    Of other pods nobody knows which cards they have: here is no kubelet that picks devices.
    """
    slots = [resource.name for resource in state.node.resources if resource.has_slots]
    for container in state.assigned():
        pod = state.pods[container[:2]]
        asked = pod.requests.get(container[2], {})
        counts = {name: asked[name] for name in slots if asked.get(name)}
        devices = {name: device_ids(pod, container, count) for name, count in counts.items()}
        yield Holder(container, devices)


def device_ids(pod: Pod, container: Container, count: int) -> tuple[str, ...]:
    """Return IDs of devices that a container has, of whatever card."""
    return tuple(f"{pod.uid}/{container[2]}/{number}" for number in range(count))


def offered(state: NodeState) -> list[Resource]:
    """Return the resources that a node has, but for those that are down on command."""
    return [each for each in state.node.resources if not state.has(each.name, DOWN)]


def allocatable(state: NodeState) -> dict[str, int]:
    """Return how much of each resource the node has to give."""
    return _counts(state, Health.HEALTHY)


def capacity(state: NodeState) -> dict[str, int]:
    """Return how much of each resource the node shows that it has.

    A kubelet counts devices of a failed card; a number in the status has the failed card's no more.
    """
    return _counts(state, *(health for health in Health if health is not Health.LOST))


def _counts(state: NodeState, *counted: Health) -> dict[str, int]:
    if not state.faults:
        return {resource.name: resource.count for resource in state.node.resources}
    return {
        each.name: amount(each, state) if each.in_status else _listed(each, state, *counted)
        for each in offered(state)
    }


def _listed(resource: Resource, state: NodeState, *counted: Health) -> int:
    """Return what a kubelet counts of a device plugin's list, whoever has the others."""
    devices = state.device_health(resource)
    return sum(devices[health] for health in counted)


def labels_of(pool: Pool, index: int, fleet: str) -> dict[str, str]:
    """Return the labels that say where a node stands, and the pool's own."""
    placed = {names.ZONE: pool.zone_of(index), names.RACK: pool.rack_of(index)}
    return {
        names.HOSTNAME: pool.node_name(index),
        **names.MACHINE,
        **{key: value for key, value in placed.items() if value},
        **pool.labels,
        names.FLEET: fleet,
        names.POOL: pool.name,
    }


def node_object(
    pool: Pool, state: NodeState, fleet: str, now: float = 0.0, faults: str | None = None
) -> dict[str, Any]:
    """Return the Node object as it should be; `now` is for what says when it was written.

    `faults` is the annotation that keeps what is wrong on purpose.
    """
    index = pool.index_of(state.node.name)
    assert index is not None, "a node is named after its pool"
    settings = pool.settings
    annotations: dict[str, str | None] = {}
    if not any(fault.kind is STOPPED for fault in state.faults):
        annotations[names.KWOK_NODE] = "fake"
    if faults is not None:
        annotations[names.FAULTS] = faults
    if settings.hami:
        moment = datetime.fromtimestamp(now).astimezone()
        # With the first report of those vendors that report.
        annotations |= difference(registration(state), {}, set(), moment, None).annotations
    discovered = node_labels(
        state.node, settings.labels, int(now), settings.driver_version, state.lost
    )
    shared = {
        "cpu": quantity_text(pool.cpu),
        "memory": str(pool.memory),
        "pods": str(pool.max_pods),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": state.node.name,
            "labels": {**discovered, **labels_of(pool, index, fleet)},
            "annotations": annotations,
        },
        "spec": {"taints": [taint._asdict() for taint in pool.taints]} if pool.taints else {},
        "status": {
            "capacity": {**shared, **_texts(capacity(state))},
            "allocatable": {**shared, **_texts(allocatable(state))},
            "nodeInfo": {"kubeletVersion": _KUBELET, "operatingSystem": "linux"},
        },
    }


def quantity_text(thousandths: int) -> str:
    """Return an amount of CPU as the API server writes it."""
    whole, rest = divmod(thousandths, 1000)
    return f"{thousandths}m" if rest else str(whole)


def _texts(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}
