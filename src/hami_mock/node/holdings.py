"""Who holds how much of which card: what `ctl status`, metrics, the page and the load agree on.

The kubelet knows a container's slots and units by their IDs. HAMi's scheduler decides more: it
assigns cards and amounts, whatever slots the kubelet then picks. Where it has, its word counts.

A container with slots is on the cards of its slots, and its units say how much of each: as with
HAMi, 3000 MiB and two cards are 3000 MiB of each. Which units the kubelet picked doesn't matter
then; they decide only for a container that has no slot. Units in the Node's status have no IDs: a
container has as many as it asks for.

A container that has nothing of ours may hold a card all the same: see `foreign_devices`. Pure.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hami_mock.kubelet.holder import Container, Holder
from hami_mock.node.cards import Card
from hami_mock.node.claims import ClaimKey
from hami_mock.node.foreign_devices import ForeignDevices
from hami_mock.node.holders import Holding
from hami_mock.vendors import Role

if TYPE_CHECKING:
    from hami_mock.node.assigned import Assigned
    from hami_mock.node.instances import Instance
    from hami_mock.node.resources import Resource
    from hami_mock.node.state import NodeState

_T = TypeVar("_T")

_WHOLE = 100
"""Percent of a card's compute, for a container that asked for no part."""


class Part(NamedTuple):
    """What HAMi assigned to a container of one card; 0 MiB or 0 percent: it asked for no part.

    `resource` is what the container asked for.
    """

    resource: str
    devices: int
    memory: int
    cores: int
    instances: "tuple[Instance, ...]" = ()
    owner: str = ""


Parts = Mapping[str, Part]
"""By the card's UUID."""


class Holdings:
    """The holdings, made anew when something has changed that they are made from."""

    def __init__(self) -> None:
        self._found: dict[str, list[Holding]] = {}
        self._parts: Mapping[Container, Parts] = {}
        self._made_from: object = None
        self._assigned: Assigned | None = None

    def of(self, state: "NodeState") -> dict[str, list[Holding]]:
        """Return them by the card's UUID, sorted by container, those without a name last."""
        self._look(state)
        return self._found

    def assigned(self, state: "NodeState") -> Mapping[Container, Parts]:
        """Return what HAMi assigned to containers, as their pods say."""
        self._look(state)
        return self._parts

    def _look(self, state: "NodeState") -> None:
        # A broadcast has another event after each change. Pods are compared as they are: that
        # takes microseconds.
        changes = state.holders.changes.next(), state.changes.next()
        if self._made_from != (changes, state.pods):
            self._parts = self._read(state)
            self._found = _holdings(state, self._parts)
            self._made_from = changes, dict(state.pods)

    def _read(self, state: "NodeState") -> Mapping[Container, Parts]:
        if self._assigned is None:
            if not state.pods:
                return {}
            # Here: few agents see pods of HAMi's, and what reads their annotations is large.
            from hami_mock.node.assigned import Assigned

            self._assigned = Assigned()
        return self._assigned.parts(state)


def _holdings(state: "NodeState", assigned: Mapping[Container, Parts]) -> dict[str, list[Holding]]:
    found: dict[str, list[Holding]] = defaultdict(list)
    foreign = ForeignDevices(state)
    for holder in _each_once(state.holders.all or ()):
        parts = parts_of(holder, assigned)
        own = {
            uuid: _holding(holder, card, devices, parts.get(uuid), state)
            for uuid, devices in _placed(holder, parts, state).items()
            if (card := state.cards.get(uuid))
        }
        if not parts and holder.devices.keys().isdisjoint(state.resources):
            own = dict(foreign.holdings(holder))
        for uuid, claimed in _claimed(holder, state).items():
            own[uuid] = _together(own[uuid], claimed) if uuid in own else claimed
        for uuid, holding in own.items():
            found[uuid].append(holding)
    return dict(found)


def _claimed(holder: Holder, state: "NodeState") -> dict[str, Holding]:
    """Return what a container's claims have of each card."""
    found: dict[str, Holding] = {}
    if not state.claims:
        return found
    keys = (ClaimKey(name, each) for name, ids in holder.devices.items() for each in ids)
    for key in keys:
        if (claim := state.claims.get(key)) is None:
            continue
        for device in claim.devices:
            if device.card in state.cards and not device.is_admin:
                instances = (device.instance,) if device.instance else ()
                # All containers with the claim share what it has, and HAMi's library counts it so.
                one = Holding(
                    holder.container,
                    {key.driver: 1},
                    device.memory,
                    device.cores,
                    1,
                    instances,
                    claim.uid,
                )
                before = found.get(device.card)
                found[device.card] = _together(before, one) if before else one
    return found


def _together(one: Holding, other: Holding) -> Holding:
    """Return what a container holds of a card that it got twice."""
    return Holding(
        one.container,
        dict(Counter(one.devices) + Counter(other.devices)),
        one.memory + other.memory,
        min(one.cores + other.cores, _WHOLE),
        one.slots + other.slots,
        (*one.instances, *other.instances),
        one.owner or other.owner,
    )


def parts_of(holder: Holder, assigned: Mapping[Container, Parts]) -> Parts:
    """Return what HAMi assigned to a holder: what its pod says, or what it was given for."""
    if holder.container is None:
        (resource,) = holder.devices
        given = Counter(holder.cards)
        return {uuid: Part(resource, count, 0, 0) for uuid, count in given.items()}
    told = assigned.get(holder.container, {})
    # Anybody may write on a pod of theirs what it never got.
    return {uuid: part for uuid, part in told.items() if part.resource in holder.devices}


def _each_once(holders: Iterable[Holder]) -> Iterator[Holder]:
    """Yield the containers in order, and then what has no name yet."""
    named: dict[Container, Holder] = {}
    unnamed = []
    for holder in holders:
        if holder.container is None:
            unnamed.append(holder)
        else:
            # The kubelet says each once. If it didn't, metrics would have two series of one name.
            named[holder.container] = holder
    yield from (named[container] for container in sorted(named))
    yield from unnamed


def _placed(holder: Holder, parts: Parts, state: "NodeState") -> dict[str, dict[str, int]]:
    """Return how many devices of each resource are for each card, by the card's UUID."""
    held = {
        name: (state.resources[name], ids)
        for name, ids in holder.devices.items()
        if name in state.resources
    }
    counted = _counted(holder, state)
    placed: dict[str, dict[str, int]] = defaultdict(dict, {uuid: {} for uuid in parts})
    for name, (resource, ids) in held.items():
        if resource.has_slots:
            slices = len(ids) if resource.vendor.hami.asks_slices else 0
            assigned = {uuid: slices or part.devices for uuid, part in _on(resource, parts)}
            for uuid, count in (assigned or _by_card(resource, ids)).items():
                placed[uuid][name] = count
    by_slots = dict(placed)
    for name, (resource, ids) in held.items():
        if not resource.has_slots:
            on_each = {uuid: len(ids) for uuid, _ in _on(resource, by_slots)}
            for uuid, count in (on_each or _by_card(resource, ids)).items():
                placed[uuid][name] = count
    for name, count in counted.items():
        for uuid, _ in _on(state.resources[name], by_slots):
            placed[uuid][name] = count
    return placed


def _counted(holder: Holder, state: "NodeState") -> dict[str, int]:
    """Return the units in the Node's status that a container has, by resource."""
    pod = state.pods.get(holder.container[:2]) if holder.container else None
    if pod is None or holder.container is None:
        return {}
    asked = pod.requests.get(holder.container[2], {})
    return {
        resource.name: asked[resource.name]
        for resource in state.node.resources
        if resource.in_status and resource.name in asked
    }


def _on(resource: "Resource", cards: Mapping[str, _T]) -> Iterator[tuple[str, _T]]:
    """Yield those of the cards that the resource has devices on."""
    return ((uuid, what) for uuid, what in cards.items() if uuid in resource.devices.counts)


def _by_card(resource: "Resource", ids: Iterable[str]) -> dict[str, int]:
    found = Counter(map(resource.devices.card_of, ids))
    return {uuid: count for uuid, count in found.items() if uuid is not None}


def _holding(
    holder: Holder,
    card: Card,
    devices: Mapping[str, int],
    part: Part | None,
    state: "NodeState",
) -> Holding:
    of = {name: state.resources[name] for name in devices}
    slots = sum(count for name, count in devices.items() if of[name].has_slots)
    if part is not None:
        # Of a real plugin's slots nothing is known here but what HAMi says.
        slots = slots or part.devices
        memory, cores = part.memory or card.memory, min(part.cores or _WHOLE, _WHOLE)
        return Holding(holder.container, devices, memory, cores, slots, part.instances, part.owner)
    times = 1 if card.vendor.hami.asks_slices else max(1, slots)
    asked = {of[name].offer.role: (of[name], count) for name, count in devices.items()}
    return Holding(
        holder.container, devices, _memory(asked, card, times), _cores(asked, card, times), slots
    )


_Asked = Mapping[Role, tuple["Resource", int]]


def _memory(asked: _Asked, card: Card, times: int) -> int:
    """Return the MiB that units come to; as with HAMi, MiB count more than percent."""
    if Role.MEMORY in asked:
        resource, count = asked[Role.MEMORY]
        return min(count * times, resource.devices.counts.get(card.uuid, count)) * resource.factor
    if Role.PERCENTAGE in asked:
        return card.memory * min(asked[Role.PERCENTAGE][1] * times, 100) // 100
    return card.memory


def _cores(asked: _Asked, card: Card, times: int) -> int:
    if Role.CORES not in asked:
        return _WHOLE
    resource, count = asked[Role.CORES]
    if resource.offer.per_card != 100:
        count = math.ceil(100 * count / max(1, resource.devices.counts.get(card.uuid, 0)))
    return min(count * times, _WHOLE)
