"""Portions → resources with devices, within what the kubelet bears. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from hami_mock.errors import UsageError
from hami_mock.kubelet.limits import Version, dear, fits
from hami_mock.kubelet.unit_ids import UnitIds
from hami_mock.kubelet.wire import HEALTHY, MESSAGE_LIMIT
from hami_mock.node.devices import Devices, SlotDevices
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Past
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.sources.annotated.portion import Portion
from hami_mock.vendors.vendor import Role

_LARGEST_FACTOR = 1024 * 1024


def offer(
    portions: Sequence[Portion], past: Past, version: Version | None
) -> tuple[list[Resource], list[str]]:
    """Return the resources of portions, and why some are left out.

    A device that was there before stays the same device. One that has no place any more is retired.
    """
    auto = _auto_factor(portions, version)
    resources: dict[str, Resource] = {}
    reasons = []
    for portion in portions:
        if portion.name in resources:
            other = resources[portion.name].source
            reasons.append(f"{portion.name}: left out: {portion.source} and {other} both name it")
            continue
        try:
            resources[portion.name] = _resource(portion, auto, past)
        except UsageError as error:
            reasons += error.problems
    return list(resources.values()), reasons


def _resource(portion: Portion, auto: int, past: Past) -> Resource:
    """Raises UsageError if the kubelet wouldn't take the list, or it would be empty."""
    factor = portion.factor or max(auto, portion.offer.memory_unit)
    resource = Resource(
        name=portion.name,
        source=portion.source,
        offer=portion.offer,
        vendor=portion.vendor,
        cards=portion.cards,
        devices=_devices(portion, factor, past.devices.get(portion.name)),
        factor=factor,
    )
    if not resource.count:
        raise UsageError(
            f"{resource.name}: left out: all cards together come to less than {resource.unit}"
        )
    if not _fits(resource) and past.held is not None:
        resource = replace(resource, devices=resource.devices.keep_retired(past.held))
    if _fits(resource):
        return resource
    retired = sum(resource.devices.retired.values())
    raise UsageError(
        f"{resource.name}: left out: {resource.count + retired} devices make a list of "
        f"{resource.list_size(word=HEALTHY)} bytes; the limit of the kubelet is {MESSAGE_LIMIT}: "
        + _remedy(portion)
    )


def _devices(portion: Portion, factor: int, before: Devices | None) -> Devices:
    if portion.offer.role is Role.SLOTS:
        split = portion.amounts[0]
        if isinstance(before, SlotDevices):
            return before.resized(portion.cards, split)
        return SlotDevices(portion.cards, split)
    counts = dict(zip(portion.cards, shares(portion.amounts, factor), strict=True))
    if isinstance(before, UnitDevices) and before.heads == portion.offer.heads:
        return before.resized(counts)
    return UnitDevices.make(UnitIds(portion.offer.heads), counts)


def shares(amounts: Sequence[int], factor: int) -> list[int]:
    """Return the devices of each card: together the sum over the factor, as for HAMi's mock.

    What is left of single cards makes a few whole devices more; the first cards have those.
    """
    whole = [amount // factor for amount in amounts]
    more = sum(amounts) // factor - sum(whole)
    return [count + (position < more) for position, count in enumerate(whole)]


def _fits(resource: Resource) -> bool:
    return fits(resource.list_size(word=HEALTHY))


def _remedy(portion: Portion) -> str:
    if portion.offer.role is not Role.MEMORY:
        return "the node says that it has more than anybody could register"
    low, high = 1, _LARGEST_FACTOR
    while low < high:
        middle = (low + high) // 2
        devices = _devices(portion, middle * portion.offer.memory_unit, None)
        if fits(sum(devices.size(card, HEALTHY) for card in portion.cards)):
            high = middle
        else:
            low = middle + 1
    return (
        f"the smallest memory factor that fits is {low} (--{portion.vendor.key}-memory-factor; "
        "memoryFactor in HAMi's device configuration must be the same)"
    )


def _auto_factor(portions: Sequence[Portion], version: Version | None) -> int:
    """Return the smallest power of two, the same for all, that the kubelet bears."""
    free = [portion for portion in portions if portion.factor is None]
    fixed = sum(
        sum(shares(portion.amounts, portion.factor))
        for portion in portions
        if portion.factor is not None and portion.offer.role is not Role.MEMORY
    )

    def is_safe(factor: int) -> bool:
        units = 0 if dear(fixed, version) else fixed
        for portion in free:
            devices = _devices(portion, max(factor, portion.offer.memory_unit), None)
            units += sum(devices.counts.values())
            if not fits(sum(devices.size(card, HEALTHY) for card in portion.cards)):
                return False
        return not dear(units, version)

    smallest = min((amount for portion in free for amount in portion.amounts if amount), default=0)
    factor = 1
    while factor * 2 <= smallest and not is_safe(factor):
        factor *= 2
    return factor
