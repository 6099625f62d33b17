"""Shares of cards → resources with devices, within what the kubelet bears. Pure."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from hami_mock.kit.text import cut
from hami_mock.kubelet.limits import Version, fits, too_many
from hami_mock.kubelet.unit_ids import UnitIds
from hami_mock.kubelet.wire import HEALTHY, MESSAGE_LIMIT, device_size
from hami_mock.node.cards import Card
from hami_mock.node.devices import CountedUnits, Devices, SlotDevices
from hami_mock.node.resources import Resource
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.node.ways import Policy, Which, harmless, needed, without_room
from hami_mock.vendors import Offer, Role, Vendor

if TYPE_CHECKING:
    # What HAMi's scheduler knows takes long to load, and few agents need it.
    from hami_mock.node.hami_side import HamiSide

_LARGEST_FACTOR = 1024 * 1024
_LEAST_BYTES = device_size(1, HEALTHY)
"""What a device takes in a list at the least."""


@dataclass(frozen=True)
class Node:
    """What one node carries and offers."""

    name: str
    cards: tuple[Card, ...]
    resources: tuple[Resource, ...]

    @property
    def counts(self) -> list[int]:
        """How many devices each plugin has: what the kubelet has to keep in mind."""
        return [resource.count for resource in self.resources if not resource.in_status]

    @property
    def devices(self) -> int:
        return sum(self.counts)

    @property
    def retired(self) -> int:
        """How many devices are in the lists only because pods may hold them."""
        return sum(sum(resource.devices.retired.values()) for resource in self.resources)

    @property
    def is_settling(self) -> bool:
        """Whether something is as it is only because pods may hold devices."""
        return self.retired > 0 or any(resource.later for resource in self.resources)


@dataclass(frozen=True)
class Share:
    """A resource before it has devices: how much of it each card has.

    - source: who gave the name, for messages
    - amounts: of each card; MiB of memory, else devices (slots: the same for all)
    - factor: MiB that one device stands for; None: as coarse as it has to be. 1 if not memory
    - pooled: what the factor leaves over of single cards makes whole devices together
    - coarser: whether a larger factor is of use; where HAMi's scheduler knows none it isn't
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
    coarser: bool = True
    if_many: str = ""
    if_few: str = ""
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
    - used: the resources that pods hold devices of; None if nobody knows
    - unlisted: the resources that the kubelet has no list of now. What has no place there any more
      need not become unhealthy before it goes.
    """

    devices: Mapping[str, Devices] = field(default_factory=dict)
    held: Collection[str] | None = None
    used: Collection[str] | None = ()
    unlisted: Collection[str] = ()


class LeftOut(NamedTuple):
    """A resource that can't be offered, and why."""

    name: str
    reason: str


_NO_PAST = Past()
_ALL_BY_PLUGINS = Policy()


def size(
    shares: Sequence[Share],
    version: Version | None,
    past: Past = _NO_PAST,
    policy: Policy = _ALL_BY_PLUGINS,
) -> tuple[tuple[Resource, ...], tuple[LeftOut, ...]]:
    """Return the resources of shares, and what the kubelet wouldn't take or would show as 0.

    A device that was there before stays the same device. One that has no place any more is retired;
    if the list has no room for all of those, only the held ones stay in it.
    """
    stood = _stood_in_status(shares, past) if policy.which is Which.KEPT else frozenset()
    # What stands in the status needs no coarser units.
    needs_none = policy.which in (Which.NEEDED, Which.ALL) or stood
    auto = 1 if needs_none else _auto_factor(shares, version)
    into_status = _into_status(shares, version, auto, policy, stood)
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
        factor = _factor(share, auto)
        if share.name in into_status:
            resource = _in_status(share, factor, past, into_status[share.name])
            reason = _too_few(share, resource.later or resource)
        else:
            resource = _resource(share, factor, past)
            why = harmless(version) if policy.which is Which.NEEDED else policy.why
            resource = replace(resource, why="" if resource.has_slots else why)
            reason = _too_many(share, resource, policy) or _too_few(share, resource)
        if reason:
            left_out.append(LeftOut(share.name, reason))
        else:
            resources[share.name] = resource
    return tuple(resources.values()), tuple(left_out)


def scaled(amount: int, scaling: float) -> int:
    """Return an amount as it is offered: multiplied, for oversubscription."""
    # 100 x 1.15 is 114.99999999999999 in floating point; nobody means 114.
    return int(round(amount * scaling, 6))


def release(node: Node, held: Collection[str], used: Collection[str] = ()) -> Node:
    """Return the node without what is there only for pods: they hold these devices alone.

    `used` are the resources that they are of.
    """
    resources = tuple(
        resource.later
        if resource.later and resource.name not in used
        else replace(resource, devices=resource.devices.keep_retired(held))
        if resource.devices.retired
        else resource
        for resource in node.resources
    )
    return replace(node, resources=resources)


def _stood_in_status(shares: Sequence[Share], past: Past) -> Set[str]:
    names = {share.name for share in shares}
    return {n for n, own in past.devices.items() if n in names and isinstance(own, CountedUnits)}


def _into_status(
    shares: Sequence[Share],
    version: Version | None,
    auto: int,
    policy: Policy,
    stood: Set[str],
) -> Mapping[str, str]:
    """Return which units go into the Node's status, by the name of their resource, and why."""
    units = [share for share in shares if share.offer.role is not Role.SLOTS]
    match policy.which:
        case Which.NONE:
            return {}
        case Which.ALL:
            return {share.name: policy.why for share in units}
    units = [share for share in units if share.name not in stood]
    counts = {share.name: sum(share.counts(_factor(share, auto)).values()) for share in units}
    sizes = {
        # Where it can't fit anyhow, nobody needs to number millions of units to see it.
        share.name: counts[share.name] * _LEAST_BYTES
        if counts[share.name] * _LEAST_BYTES > MESSAGE_LIMIT
        else _resource(share, _factor(share, auto)).list_size(word=HEALTHY)
        for share in units
    }
    unfit = {name: size for name, size in sizes.items() if not fits(size)}
    if policy.which is Which.NEEDED:
        return needed(counts, unfit, version)
    why = f"they were there before, and it isn't known now whether they still may be: {policy.why}"
    return dict.fromkeys(stood, why) | without_room(counts, unfit)


def _in_status(share: Share, factor: int, past: Past, why: str) -> Resource:
    """Return a resource of units in the status, or what it is while pods hold devices of it.

    The kubelet refuses pods that ask for a resource without a plugin while another pod still holds
    devices of it. So the plugin stays until none does.
    """
    counted = replace(_bare(share, factor), devices=CountedUnits(share.counts(factor)), why=why)
    if not _is_used(past, share.name):
        return counted
    resource = _resource(share, factor, past)
    if not _fits(resource):
        # Meanwhile there are no more than before.
        before = past.devices.get(share.name, resource.devices)
        assert isinstance(before, UnitDevices)
        kept = {c: min(n, before.counts.get(c.uuid, 0)) for c, n in share.counts(factor).items()}
        devices = before.resized(kept).keep_retired(past.held)
        resource = replace(resource, devices=devices)
    known = "pods hold devices of it"
    if past.used is None:
        socket = "the agent needs the kubelet's pod-resources socket"
        known = f"it isn't known whether pods hold devices of it: {socket}"
    waits = f"{known}; it moves to the Node's status when none does"
    return replace(resource, why=waits, later=counted)


def _is_used(past: Past, name: str) -> bool:
    if past.used is None:
        return isinstance(past.devices.get(name), UnitDevices)
    return name in past.used


def _factor(share: Share, auto: int) -> int:
    return share.factor or max(auto, share.offer.memory_unit)


def _bare(share: Share, factor: int) -> Resource:
    return Resource(
        name=share.name,
        source=share.source,
        offer=share.offer,
        vendor=share.vendor,
        cards=share.cards,
        devices=CountedUnits({}),
        factor=factor,
        hami=share.hami,
    )


def _resource(share: Share, factor: int, past: Past = _NO_PAST) -> Resource:
    devices = _devices(share, factor, past.devices.get(share.name))
    resource = replace(_bare(share, factor), devices=devices)
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


def _too_many(share: Share, resource: Resource, policy: Policy) -> str:
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
    elif share.offer.role is Role.MEMORY and share.coarser:
        smallest = _smallest_factor(share)
        remedy = f"the smallest memory factor that fits is {smallest} ({share.if_many})"
    else:
        remedy = share.if_many
    return (
        f"{resource.count + retired} devices need a list of {resource.list_size(word=HEALTHY)} "
        f"bytes; the kubelet's limit is {MESSAGE_LIMIT}: {remedy}"
        + f"; in the Node's status there is no limit, but they aren't put there: {policy.why}"
        * bool(policy.why and not resource.has_slots)
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

    A restarted kubelet pays for all devices. A memory resource whose factor the user has chosen
    isn't counted: no choice of ours could make up for it.
    """
    free = [share for share in shares if share.factor is None]
    others = [share for share in shares if share.offer.role is not Role.MEMORY]
    fixed = [sum(share.amounts) for share in others]
    # Where the other devices are too many by themselves, coarser units alone can't help.
    fixed = [] if too_many(fixed, version) else fixed

    def is_safe(factor: int) -> bool:
        sized = [_resource(share, _factor(share, factor)) for share in free]
        units = [resource.count for resource in sized]
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
