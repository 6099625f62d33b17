"""Shares of cards → resources with devices, within what the kubelet bears. Pure."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from hami_mock.kit.text import cut
from hami_mock.kubelet.limits import Version, fits, too_many
from hami_mock.kubelet.unit_ids import UnitIds
from hami_mock.kubelet.wire import HEALTHY, MESSAGE_LIMIT
from hami_mock.node.cards import Card
from hami_mock.node.devices import Devices, SlotDevices
from hami_mock.node.resources import Resource
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.vendors import Offer, Role, Vendor

if TYPE_CHECKING:
    # What HAMi's scheduler knows takes long to load, and few agents need it.
    from hami_mock.node.hami_side import HamiSide

_LARGEST_FACTOR = 1024 * 1024


@dataclass(frozen=True)
class Node:
    """What one node carries and offers."""

    name: str
    cards: tuple[Card, ...]
    resources: tuple[Resource, ...]

    @property
    def devices(self) -> int:
        """How many devices of all resources there are: what the kubelet has to keep in mind."""
        return sum(resource.count for resource in self.resources)

    @property
    def retired(self) -> int:
        """How many devices are in the lists only because pods may hold them."""
        return sum(sum(resource.devices.retired.values()) for resource in self.resources)


@dataclass(frozen=True)
class Share:
    """A resource before it has devices: how much of it each card has.

    - source: who gave the name, for messages
    - amounts: of each card; MiB of memory, else devices (slots: the same for all)
    - factor: MiB that one device stands for; None: as coarse as it has to be. 1 if not memory
    - pooled: what the factor leaves over of single cards makes whole devices together
    - mode: how the cards are sliced, where there are several ways
    - if_many, if_few: what the user can do about a list that is too long, and a card without any
    """

    name: str
    source: str
    offer: Offer
    vendor: Vendor
    cards: tuple[Card, ...]
    amounts: tuple[int, ...]
    factor: int | None = 1
    pooled: bool = False
    if_many: str = ""
    if_few: str = ""
    mode: str = ""
    hami: "HamiSide | None" = None

    def counts(self, factor: int) -> dict[Card, int]:
        """Return how many devices each card has; of a pool the first cards have what is left."""
        whole = [amount // factor for amount in self.amounts]
        more = sum(self.amounts) // factor - sum(whole) if self.pooled else 0
        counts = [count + (position < more) for position, count in enumerate(whole)]
        return dict(zip(self.cards, counts, strict=True))


@dataclass(frozen=True)
class Past:
    """What there was before a change: the devices of each resource, by the resource's name.

    - held: those that pods hold; None if nobody knows
    - unlisted: the resources that the kubelet has no list of now. What has no place there any more
      need not become unhealthy before it goes.
    """

    devices: Mapping[str, Devices] = field(default_factory=dict)
    held: Collection[str] | None = None
    unlisted: Collection[str] = ()


class LeftOut(NamedTuple):
    """A resource that can't be offered, and why."""

    name: str
    reason: str


_NO_PAST = Past()


def size(
    shares: Sequence[Share], version: Version | None, past: Past = _NO_PAST
) -> tuple[tuple[Resource, ...], tuple[LeftOut, ...]]:
    """Return the resources of shares, and what the kubelet wouldn't take or would show as 0.

    A device that was there before stays the same device. One that has no place any more is retired;
    if the list has no room for all of those, only the held ones stay in it.
    """
    auto = _auto_factor(shares, version)
    resources: dict[str, Resource] = {}
    left_out = []
    for share in shares:
        if not share.name.isprintable():
            reason = f"{share.source} gives it a name that can't be printed"
            left_out.append(LeftOut(cut(share.name), reason))
            continue
        if share.name in resources:
            other = resources[share.name].source
            left_out.append(LeftOut(share.name, f"{share.source} and {other} both use this name"))
            continue
        resource = _resource(share, _factor(share, auto), past)
        if reason := _too_many(share, resource) or _too_few(share, resource):
            left_out.append(LeftOut(share.name, reason))
        else:
            resources[share.name] = resource
    return tuple(resources.values()), tuple(left_out)


def release(node: Node, held: Collection[str]) -> Node:
    resources = tuple(
        replace(resource, devices=resource.devices.keep_retired(held))
        if resource.devices.retired
        else resource
        for resource in node.resources
    )
    return replace(node, resources=resources)


def _factor(share: Share, auto: int) -> int:
    return share.factor or max(auto, share.offer.memory_unit)


def _resource(share: Share, factor: int, past: Past = _NO_PAST) -> Resource:
    resource = Resource(
        name=share.name,
        source=share.source,
        offer=share.offer,
        vendor=share.vendor,
        cards=share.cards,
        devices=_devices(share, factor, past.devices.get(share.name)),
        factor=factor,
        mode=share.mode,
        hami=share.hami,
    )
    if share.name in past.unlisted or (past.held is not None and not _fits(resource)):
        return replace(resource, devices=resource.devices.keep_retired(past.held))
    return resource


def _devices(share: Share, factor: int, before: Devices | None) -> Devices:
    if share.offer.role is Role.SLOTS:
        slots = before if isinstance(before, SlotDevices) else SlotDevices((), 0)
        return slots.resized(share.cards, share.amounts[0])
    if isinstance(before, UnitDevices) and before.heads == share.offer.heads:
        return before.resized(share.counts(factor))
    return UnitDevices.make(UnitIds(share.offer.heads), share.counts(factor))


def _fits(resource: Resource) -> bool:
    return fits(resource.list_size(word=HEALTHY))


def _too_many(share: Share, resource: Resource) -> str:
    """Return why the kubelet wouldn't take the list of a resource; empty if it would."""
    if _fits(resource):
        return ""
    retired = sum(resource.devices.retired.values())
    if _fits(_resource(share, resource.factor)):
        # All that is in the way is the past.
        remedy = (
            f"{retired} of them no longer fit, but pods may hold them"
            if retired
            else "short IDs are taken by devices that no longer fit"
        )
        remedy += ": remove devices first, and add others once those are gone"
    elif share.offer.role is Role.MEMORY:
        smallest = _smallest_factor(share)
        remedy = f"the smallest memory factor that fits is {smallest} ({share.if_many})"
    else:
        remedy = share.if_many
    return (
        f"{resource.count + retired} devices need a list of {resource.list_size(word=HEALTHY)} "
        f"bytes; the kubelet's limit is {MESSAGE_LIMIT}: {remedy}"
    )


def _too_few(share: Share, resource: Resource) -> str:
    """Return what comes to less than one device, of a pool all cards together; else nothing."""
    if share.pooled:
        return "" if resource.count else f"all cards together have less than {resource.unit}"
    for card in share.cards:
        if not resource.devices.counts[card.uuid]:
            return (
                f"card {card.index} ({card.model.name}) has less than one unit of "
                f"{resource.unit} and would show 0: {share.if_few}"
            )
    return ""


def _auto_factor(shares: Sequence[Share], version: Version | None) -> int:
    """Return the smallest power of two, the same for all vendors, that the kubelet bears.

    What a restarted kubelet pays for is the sum of all devices. A memory resource whose factor the
    user has chosen isn't counted: no choice of ours could make up for it.
    """
    free = [share for share in shares if share.factor is None]
    others = [share for share in shares if share.offer.role is not Role.MEMORY]
    fixed = sum(sum(share.amounts) for share in others)
    # Where the other devices are too many by themselves, coarser units alone can't help.
    fixed = 0 if too_many(fixed, version) else fixed

    def is_safe(factor: int) -> bool:
        sized = [_resource(share, _factor(share, factor)) for share in free]
        units = sum(resource.count for resource in sized)
        return not too_many(fixed + units, version) and all(map(_fits, sized))

    smallest = min((amount for share in free for amount in share.amounts if amount), default=0)
    factor = 1
    while factor * 2 <= smallest and not is_safe(factor):
        factor *= 2
    return factor


def _smallest_factor(share: Share) -> int:
    """Return the smallest factor, power of two or not, whose list fits the message."""
    unit = share.offer.memory_unit
    factors = range(_LARGEST_FACTOR)
    return bisect_left(factors, True, 1, key=lambda each: _fits(_resource(share, each * unit)))
