"""A pod's annotations → what its containers get, and what is written down about it. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hami_mock.errors import NotAssigned, UnhealthyDevice, UnknownDevice
from hami_mock.hami import environment
from hami_mock.hami.assignment import (
    BIND_PHASE,
    AssignedDevice,
    BindPhase,
    ascend_templates,
)
from hami_mock.hami.lock import Lock
from hami_mock.hami.register import HAMI_CORE
from hami_mock.node.cards import Card
from hami_mock.node.hami_side import HamiSide
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.vendors.mig_models import MIG
from hami_mock.vendors.vendor import Identity
from hami_mock.views.hami import instances
from hami_mock.views.hami.waiting import WaitingPod, takes_part

_VNPU_MODE = "huawei.com/vnpu-mode"

# HAMi 2.10 corrected the word, Cambricon's own plugin still reads the other one.
_MLU_ASSIGNED = ("CAMBRICON_DSMLU_ASSIGNED", "CAMBRICON_DSMLU_ASSIGHED")


@dataclass(frozen=True)
class Answer:
    """The variables of each container, what to write on the pod, and whether it has all now."""

    environments: list[dict[str, str]]
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
    left = pod.left(vendor)
    written: dict[str, str] = {}
    environments = []
    for size in sizes:
        position = next((i for i, devices in enumerate(left.containers) if devices), 0)
        devices, left = left.pop()
        if len(devices) != size:
            raise NotAssigned(
                f"{resource.name}: the kubelet asks for {size} devices for the next container of "
                f"{pod}, but HAMi has assigned {len(devices)}"
            )
        cards = [_card(device.id, resource, side, state) for device in devices]
        if side.mode == MIG:
            made = instances.realise({**pod.annotations, **written}, position, devices)
            written[instances.ANNOTATION] = made.annotation
            visible = vendor.environment.visible_devices
            environments.append(dict.fromkeys(visible, ",".join(made.uuids)))
        else:
            environments.append(_variables(pod, side, devices, cards, position))
    written[vendor.pods.to_allocate] = left.encode()
    if vendor.lock is Lock.CAMBRICON and left.is_empty:
        written |= {key: "true" for key in _MLU_ASSIGNED if key in pod.annotations}
    others = (each for each in vendors_of(state) if each.word != vendor.word)
    is_last = left.is_empty and all(pod.left(other).is_empty for other in others)
    if is_last:
        written[BIND_PHASE] = BindPhase.SUCCESS
    return Answer(environments, written, is_last)


def vendors_of(state: NodeState) -> list[HamiVendor]:
    """Return the vendors whose devices HAMi assigns and this agent allocates.

    Nothing is known of when another plugin of the node is done with its part of a pod.
    """
    resources: Iterable[Resource] = state.node.resources
    return [each.hami.vendor for each in resources if each.hami and takes_part(each)]


def _card(device_id: str, resource: Resource, side: HamiSide, state: NodeState) -> Card:
    """Return the card that HAMi means. Raises UnknownDevice or UnhealthyDevice."""
    card = next((card for card in resource.cards if card.uuid == device_id), None)
    if card is None and side.vendor.node.encoding is None:
        # The scheduler numbers the cards that it reckons from the node's capacity, and lost ones
        # aren't in there: n1-cambricon-mlu-0.
        present = [card for card in resource.cards if card.uuid not in state.lost]
        number = device_id.rpartition("-")[2]
        if number.isascii() and number.isdecimal() and int(number) < len(present):
            card = present[int(number)]
    if card is None:
        raise UnknownDevice(resource.name, device_id)
    if not state.health(card).is_usable:
        raise UnhealthyDevice(resource.name, device_id, card.uuid)
    return card


def _variables(
    pod: WaitingPod,
    side: HamiSide,
    devices: Sequence[AssignedDevice],
    cards: Sequence[Card],
    position: int,
) -> dict[str, str]:
    known, template = side.vendor.environment, ""
    if side.vendor.maker == "ascend":
        if pod.annotations.get(_VNPU_MODE) == HAMI_CORE:
            known = environment.ASCEND_HAMI_CORE
        templates = ascend_templates(pod.annotations.get(f"huawei.com/{side.vendor.word}") or "[]")
        template = next(filter(None, (templates.get(device.id) for device in devices)), "")
    by_uuid = known.identity is Identity.UUID
    return known.variables(
        devices,
        [card.uuid if by_uuid else str(card.index) for card in cards],
        unique=f"{pod.uid}_{position}",
        template=template,
        oversubscribed=side.memory_scaling > 1,
    )
