"""A pod's annotations → what its containers get, and what is written down about it. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hami_mock.errors import NotAssigned, UnhealthyCard, UnknownDevice
from hami_mock.hami.assignment import BIND_PHASE, AssignedDevice, BindPhase
from hami_mock.kit.text import cut
from hami_mock.node.assigned import card_named
from hami_mock.node.cards import Card
from hami_mock.node.hami_side import HamiSide
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.vendors.handout import Claim, Container, hand_out, unique_name
from hami_mock.views.allotted import Allotted
from hami_mock.views.hami.waiting import WaitingPod, left_to_allocate, takes_part


@dataclass(frozen=True)
class Answer:
    """What each container gets, what to write on the pod, and whether it has all now."""

    allotted: list[Allotted]
    annotations: dict[str, str]
    is_last: bool


def answer(
    pod: WaitingPod, resource: Resource, side: HamiSide, sizes: Sequence[int], state: NodeState
) -> Answer:
    """Take the devices of so many containers from a pod's assignment.

    The devices and, with the last of them, the bind phase are one patch: nobody ever sees a pod
    that has got everything and still waits.

    Raises DeviceError, or Malformed if an annotation can't be read.
    """
    vendor = side.vendor
    written: dict[str, str] = {}
    allotted = []
    for size in sizes:
        claim = pod.next(vendor, size)
        if claim is None or claim.size != size or not claim.devices:
            raise NotAssigned(
                f"{resource.name}: the kubelet asks for {size} devices for the next container of "
                f"{pod}, but HAMi has assigned {claim.size if claim else 0}"
            )
        cards = [_card(device.id, resource, side, state) for device in claim.devices]
        given = hand_out(_container(pod, claim, cards, side))
        allotted.append(Allotted(given.variables, cards))
        written |= {**claim.taken, **given.annotations}
        pod = pod.having(written)
    if pod.next(vendor, 0) is None:
        written |= {key: "true" for key in vendor.pods.assigned if key in pod.annotations}
    is_last = all(pod.next(each, 0) is None for each in vendors_of(state))
    if is_last and any(_says_success(each, pod) for each in vendors_of(state)):
        written[BIND_PHASE] = BindPhase.SUCCESS
    return Answer(allotted, written, is_last)


def answer_all(pod: WaitingPod, state: NodeState) -> Answer:
    """Take all that a pod's containers ask for, where there is no kubelet that asks for it.

    Raises DeviceError, or Malformed if an annotation can't be read.
    """
    written: dict[str, str] = {}
    allotted: list[Allotted] = []
    is_last = False
    for resource, sizes in asked_of(pod, state):
        assert resource.hami is not None, "it takes part"
        found = answer(pod, resource, resource.hami, sizes, state)
        written |= found.annotations
        allotted += found.allotted
        is_last = found.is_last
        pod = pod.having(found.annotations)
    if not is_last:
        raise NotAssigned(f"{pod} asks for other devices than HAMi has assigned to it")
    return Answer(allotted, written, is_last)


def asked_of(pod: WaitingPod, state: NodeState) -> Iterator[tuple[Resource, list[int]]]:
    """Yield what HAMi assigns devices of, and how many each of a pod's containers asks for."""
    names = (*pod.spec.init_containers, *pod.spec.containers)
    for resource in state.node.resources:
        if takes_part(resource):
            asked = (pod.spec.requests.get(name, {}).get(resource.name, 0) for name in names)
            if sizes := [size for size in asked if size]:
                yield resource, sizes


def assigned_cards(
    pod: WaitingPod, resource: Resource, side: HamiSide, sizes: Sequence[int], state: NodeState
) -> Iterator[tuple[str, ...]]:
    """Yield the UUIDs of the cards whose slots each container should get, up to one with none.

    Raises Malformed if an annotation can't be read.
    """
    for size in sizes:
        claim = pod.next(side.vendor, size)
        if claim is None or claim.size != size:
            return
        named = (
            card_named(device.id, resource.cards, side.vendor, state.node.name, state.lost)
            for device in _for_longest(claim, pod, resource, side.vendor)
        )
        yield tuple(card.uuid for card in named if card is not None)
        pod = pod.having(claim.taken)


def _for_longest(
    claim: Claim, pod: WaitingPod, resource: Resource, vendor: HamiVendor
) -> tuple[AssignedDevice, ...]:
    """Return the devices of whoever has a container's slots for the longest time.

    The kubelet gives the slots of an init container to those after it, before it asks for others.
    """
    left = left_to_allocate(pod, resource.name, vendor)
    if not left or not pod.spec.passes_on(left[0][0]):
        return claim.devices
    kept = (devices for name, devices in left if not pod.spec.passes_on(name))
    return (*chain.from_iterable(kept), *claim.devices)[: claim.size]


def vendors_of(state: NodeState) -> list[HamiVendor]:
    """Return the vendors whose devices HAMi assigns and this agent allocates.

    Nothing is known of when another plugin of the node is done with its part of a pod.
    """
    resources: Iterable[Resource] = state.node.resources
    return [each.hami.vendor for each in resources if each.hami and takes_part(each)]


def _says_success(vendor: HamiVendor, pod: WaitingPod) -> bool:
    return vendor.scheduling.says_success and says_phase(vendor, pod.annotations)


def says_phase(vendor: HamiVendor, annotations: Mapping[str, str]) -> bool:
    """Tell whether a vendor's plugin says on a pod with these annotations how it went."""
    return vendor.scheduling.sets_bind_phase and vendor.pods.to_allocate in annotations


def _card(device_id: str, resource: Resource, side: HamiSide, state: NodeState) -> Card:
    """Return the card that HAMi means. Raises UnknownDevice or UnhealthyCard."""
    card = card_named(device_id, resource.cards, side.vendor, state.node.name, state.lost)
    if card is None:
        raise UnknownDevice(resource.name, cut(device_id, 100))
    if not state.health(card).is_usable:
        raise UnhealthyCard(resource.name, cut(card.uuid, 100))
    return card


def _container(pod: WaitingPod, claim: Claim, cards: Sequence[Card], side: HamiSide) -> Container:
    return Container(
        side.vendor,
        pod.annotations,
        claim.position,
        claim.devices,
        tuple(card.visible_as for card in cards),
        unique=unique_name(pod.uid, claim.position),
        mode=side.mode,
        is_oversubscribed=side.memory_scaling > 1,
        words=side.plugin.words,
        cards=tuple(cards),
        shared=pod.shared,
    )
