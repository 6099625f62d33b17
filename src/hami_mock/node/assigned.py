"""What HAMi's scheduler assigned to the containers of this node's pods.

A pod's annotation …-devices-allocated has the devices of its containers in their order. Segments
may be missing for containers without devices (see `hami.assignment`), so those that aren't empty
are for the containers that ask for some. Pure.
"""

import logging
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from hami_mock.hami.assignment import AssignedDevice, Assignment
from hami_mock.hami.errors import Malformed
from hami_mock.kit.text import cut
from hami_mock.kubelet.holder import Container
from hami_mock.node.cards import Card
from hami_mock.node.holdings import Part, Parts
from hami_mock.node.instances import Instance
from hami_mock.node.pods import Pod
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.vendors.handout import has_claims, unique_name
from hami_mock.vendors.scheduling import Allowed, MadeInstance

if TYPE_CHECKING:
    from hami_mock.node.sizing import Node
    from hami_mock.node.state import NodeState

_NUMBER = re.compile("[0-9]{1,9}")

_log = logging.getLogger(__name__)


class _Side(NamedTuple):
    """Cards that HAMi assigns, the resource that counts them, and what they may be cut into."""

    vendor: HamiVendor
    resource_name: str
    cards: tuple[Card, ...]
    allowed: Allowed = None


_Told = tuple[str, str]
"""What annotations say of a container's devices, and of the instances that these are."""
_Read = tuple[_Told, Mapping[Container, Parts]]
"""What was told, and what it comes to."""
_Made = Mapping[tuple[int, str], Sequence[MadeInstance]]
"""Instances by the container's position and the card."""


class Assigned:
    """Reads the annotations, each once for as long as it stays the same.

    What a card was called then, it is called now: the names of some vendors' cards are numbers
    among those that aren't lost.
    """

    def __init__(self) -> None:
        self._read: dict[tuple[str, str, str], _Read] = {}

    def parts(self, state: "NodeState") -> dict[Container, Parts]:
        """Return what each container was assigned."""
        found: dict[Container, dict[str, Part]] = {}
        read: dict[tuple[str, str, str], _Read] = {}
        sides = [*_sides(state.node)] if state.pods else []
        for (namespace, name), pod in state.pods.items():
            for side in sides:
                annotation = side.vendor.pods.allocated
                text = pod.annotations.get(annotation)
                if not text:
                    continue
                key = namespace, name, annotation
                before = self._read.get(key)
                told = text, _instances_told(side, pod)
                now = before if before and before[0] == told else self._new(told, pod, side, state)
                if now is None:
                    continue
                read[key] = now
                for container, parts in now[1].items():
                    found.setdefault(container, {}).update(parts)
        self._read = read
        return {**found}

    def _new(self, told: _Told, pod: Pod, side: _Side, state: "NodeState") -> _Read | None:
        """Read annotations; None: they name a card that isn't there, maybe not yet."""
        try:
            matched = [*_matched(Assignment.parse(told[0]), pod, side.resource_name)]
            made = _made(side, told[1])
        except Malformed as error:
            who = cut(f"{pod.namespace}/{pod.name}")
            _log.warning("pod %s: ignoring what HAMi assigned: %s", who, error)
            return told, {}
        found: dict[Container, Parts] = {}
        for name, position, devices in matched:
            parts = _parts(devices, side, state)
            if parts is None:
                return None
            owner = unique_name(pod.uid, position)
            for uuid, part in parts.items():
                own = _instances(made.get((position, uuid), ()), side, uuid) if made else ()
                parts[uuid] = part._replace(instances=own, owner=owner)
            found[pod.namespace, pod.name, name] = parts
        return told, found


def card_named(
    device_id: str, cards: Iterable[Card], vendor: HamiVendor, node_name: str, lost: Set[str]
) -> Card | None:
    """Return the card that HAMi's scheduler means."""
    cards = tuple(cards)
    form = vendor.scheduling.device_id or "{uuid}"
    for card in cards:
        if device_id == form.format(uuid=card.uuid, node=node_name, index=card.index):
            return card
    if vendor.node.encoding is None:
        # The scheduler numbers the cards that it reckons from the node's capacity, and lost ones
        # aren't in there: n1-cambricon-mlu-0.
        present = [card for card in cards if card.uuid not in lost]
        number = device_id.rpartition("-")[2]
        if _NUMBER.fullmatch(number) and int(number) < len(present):
            return present[int(number)]
    return None


def _sides(node: "Node") -> Iterator[_Side]:
    with_slots = [resource for resource in node.resources if resource.has_slots]
    for resource in with_slots:
        # Plugins without claims take the kubelet's word.
        if resource.hami is not None and has_claims(resource.hami.vendor):
            allowed = resource.hami.plugin.allowed
            yield _Side(resource.hami.vendor, resource.name, resource.cards, allowed)
    # A companion's slots are the real plugin's, and so are the names of its resources.
    others = {card.vendor for card in node.cards} - {resource.vendor for resource in with_slots}
    for vendor in others:
        own = tuple(card for card in node.cards if card.vendor is vendor)
        for chip in vendor.chips.values():
            yield _Side(chip, chip.resources.count, own)


def _matched(
    assignment: Assignment, pod: Pod, resource_name: str
) -> Iterator[tuple[str, int, tuple[AssignedDevice, ...]]]:
    """Yield the containers that have devices, with the position in the annotation, and these.

    Raises Malformed if nobody can tell whose they are.
    """
    names = (*pod.init_containers, *pod.containers)
    segments = assignment.containers
    filled = [(i, devices) for i, devices in enumerate(segments) if devices]
    asking = [name for name in names if pod.requests.get(name, {}).get(resource_name)]
    if len(asking) == len(filled):
        yield from ((name, *own) for name, own in zip(asking, filled, strict=True))
    elif len(segments) == len(names):
        yield from ((names[i], i, devices) for i, devices in filled)
    else:
        raise Malformed(
            f"{len(filled)} containers have devices, but {len(asking)} ask for {resource_name}"
        )


def _instances_told(side: _Side, pod: Pod) -> str:
    instances = side.vendor.scheduling.instances
    return pod.annotations.get(instances.annotation, "") if instances else ""


def _made(side: _Side, told: str) -> _Made:
    found: dict[tuple[int, str], list[MadeInstance]] = defaultdict(list)
    if told and (instances := side.vendor.scheduling.instances):
        for made in instances.read(told):
            found[made.position, made.card].append(made)
    return found


def _instances(made: Iterable[MadeInstance], side: _Side, uuid: str) -> tuple[Instance, ...]:
    """Return those that the card can be cut into; anybody may write more on a pod of theirs."""
    card = next(card for card in side.cards if card.uuid == uuid)
    known = side.vendor.scheduling.profiles(card.model, side.allowed)
    profiles = {each.name: each for each in known}
    return tuple(
        Instance(
            each.uuid,
            each.profile,
            profiles[each.profile].memory,
            profiles[each.profile].cores,
            each.start,
            each.gpu_instance,
            each.compute_instance,
        )
        for each in made
        if each.profile in profiles
    )


def _parts(
    devices: Iterable[AssignedDevice], side: _Side, state: "NodeState"
) -> dict[str, Part] | None:
    found: dict[str, Part] = {}
    for device in devices:
        card = card_named(device.id, side.cards, side.vendor, state.node.name, state.lost)
        if card is None:
            return None
        before = found.get(card.uuid, Part(side.resource_name, 0, 0, 0))
        found[card.uuid] = Part(
            side.resource_name,
            before.devices + 1,
            before.memory + max(0, device.memory),
            before.cores + percent_of(device, card, side.vendor),
        )
    return found


def percent_of(device: AssignedDevice, card: Card, vendor: HamiVendor) -> int:
    """Return how much of a card's compute a device is; some vendors' are assigned core by core."""
    known, cores = vendor.scheduling, max(0, device.cores)
    if not known.registers_cores or known.soft_slicing:
        return cores
    return math.ceil(100 * cores / max(1, vendor.card_cores(card.model)))
