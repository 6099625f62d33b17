"""Settings → the node's cards and resources, within what the kubelet bears. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from hami_mock.errors import UsageError
from hami_mock.kubelet.limits import Version, dear, fits
from hami_mock.kubelet.unit_ids import UnitIds
from hami_mock.kubelet.wire import HEALTHY, MESSAGE_LIMIT
from hami_mock.node.cards import Card, make_cards
from hami_mock.node.devices import Devices, SlotDevices
from hami_mock.node.resources import Resource
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.settings.settings import Settings, VendorSettings
from hami_mock.vendors import Offer, Role

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
class Past:
    """What there was before a change: the devices of each resource, by the resource's name.

    `held` are those that pods hold; None if nobody knows.
    """

    devices: Mapping[str, Devices] = field(default_factory=dict)
    held: Collection[str] | None = None


_NO_PAST = Past()


def lay_out(
    settings: Settings,
    kubelet_version: Version | None,
    past: Past = _NO_PAST,
) -> Node:
    """Make the node's cards and resources.

    A device that was there before stays the same device. One that has no place any more is retired;
    if the list has no room for all of those, only the held ones stay in it.

    Raises UsageError for each resource whose list the kubelet wouldn't accept, or that leaves a
    card without a device.
    """
    cards = {
        vendor.vendor.key: make_cards(settings.node_name, vendor.vendor, vendor.groups)
        for vendor in settings.vendors
    }
    auto = _auto_factor(settings, cards, kubelet_version)
    resources: list[Resource] = []
    problems: list[str] = []
    for vendor in settings.vendors:
        own = cards[vendor.vendor.key]
        for offer in vendor.offers if own else ():
            try:
                resources.append(_resource(vendor, offer, own, auto, past))
            except UsageError as error:
                problems += error.problems
    if problems:
        raise UsageError(problems)
    all_cards = tuple(card for own in cards.values() for card in own)
    return Node(settings.node_name, all_cards, tuple(resources))


def release(node: Node, held: Collection[str]) -> Node:
    """Return the node without the retired devices that nobody holds."""
    resources = tuple(
        replace(resource, devices=resource.devices.keep_retired(held))
        if resource.devices.retired
        else resource
        for resource in node.resources
    )
    return replace(node, resources=resources)


def _resource(
    settings: VendorSettings,
    offer: Offer,
    cards: tuple[Card, ...],
    auto_factor: int,
    past: Past,
) -> Resource:
    factor = _factor(settings, offer, auto_factor)
    named = settings.names[offer.role]
    devices = _devices(settings, offer, cards, factor, past.devices.get(named.name))
    hami = settings.hami if offer.role is Role.SLOTS else None
    resource = Resource(
        named.name, named.source, offer, settings.vendor, cards, devices, factor, hami
    )
    if not fits(resource.list_size(word=HEALTHY)) and devices.retired and past.held is not None:
        resource = replace(resource, devices=devices.keep_retired(past.held))
    size = resource.list_size(word=HEALTHY)
    if not fits(size):
        retired = sum(resource.devices.retired.values())
        remedy = _remedy(settings, offer, cards)
        if _list_fits(_devices(settings, offer, cards, factor), cards):
            # All that is in the way is the past.
            remedy = (
                f"{retired} of them have no place any more, but pods may hold them"
                if retired
                else "short IDs are taken by devices that have no place any more"
            )
            remedy += ": take devices away first, and add others when those are gone"
        raise UsageError(
            f"{resource.name}: {resource.count + retired} devices make a list of {size} "
            f"bytes; the limit of the kubelet is {MESSAGE_LIMIT}: {remedy}"
        )
    _check_no_card_is_empty(resource)
    return resource


def _factor(settings: VendorSettings, offer: Offer, auto_factor: int) -> int:
    """Return how many MiB of memory one device stands for; 1 if it doesn't count memory."""
    if offer.role is not Role.MEMORY:
        return 1
    if settings.memory_factor is None:
        return max(auto_factor, offer.memory_unit)
    return settings.memory_factor * offer.memory_unit


def _devices(
    settings: VendorSettings,
    offer: Offer,
    cards: tuple[Card, ...],
    factor: int,
    before: Devices | None = None,
) -> SlotDevices | UnitDevices:
    match offer.role:
        case Role.SLOTS:
            if isinstance(before, SlotDevices):
                return before.resized(cards, settings.split)
            return SlotDevices(cards, settings.split)
        case Role.MEMORY:
            counts = {
                card: _scaled(card.memory, settings.memory_scaling) // factor for card in cards
            }
        case Role.CORES:
            counts = {
                card: _scaled(offer.per_card or card.model.cores, settings.core_scaling)
                for card in cards
            }
        case Role.PERCENTAGE:
            counts = dict.fromkeys(cards, 100)
    if isinstance(before, UnitDevices) and before.heads == offer.heads:
        return before.resized(counts)
    return UnitDevices.make(UnitIds(offer.heads), counts)


def _remedy(settings: VendorSettings, offer: Offer, cards: tuple[Card, ...]) -> str:
    key = settings.vendor.key
    if offer.role is Role.MEMORY:
        smallest = _smallest_factor(settings, offer, cards)
        return f"the smallest memory factor that fits is {smallest} (--{key}-memory-factor)"
    # Percentages never get here: the most cards there can be have 12,800 of them.
    share = "split" if offer.role is Role.SLOTS else "core-scaling"
    return f"lower --{key}-{share} or --{key}-cards"


def _check_no_card_is_empty(resource: Resource) -> None:
    for card in resource.cards:
        if not resource.devices.counts[card.uuid]:
            key = resource.vendor.key
            is_memory = resource.offer.role is Role.MEMORY
            remedy = f"lower --{key}-memory-factor or raise --{key}-memory-scaling"
            raise UsageError(
                f"{resource.name}: card {card.index} ({card.model.name}) comes to less than one "
                f"unit of {resource.unit} and would show 0: "
                + (remedy if is_memory else f"raise --{key}-core-scaling")
            )


def _auto_factor(
    settings: Settings, cards: dict[str, tuple[Card, ...]], version: Version | None
) -> int:
    """Return the smallest power of two, the same for all vendors, that the kubelet bears.

    What a restarted kubelet pays for is the sum of all devices. A memory resource whose factor the
    user has chosen isn't counted: no choice of ours could make up for it.
    """
    fixed = 0
    free: list[tuple[VendorSettings, Offer]] = []
    for vendor in settings.vendors:
        own = cards[vendor.vendor.key]
        for offer in vendor.offers if own else ():
            if offer.role is not Role.MEMORY:
                fixed += sum(_devices(vendor, offer, own, 1).counts.values())
            elif vendor.memory_factor is None:
                free.append((vendor, offer))

    def is_safe(factor: int) -> bool:
        # Where the other devices are too many by themselves, coarser units alone can't help.
        units = 0 if dear(fixed, version) else fixed
        for vendor, offer in free:
            own = cards[vendor.vendor.key]
            devices = _devices(vendor, offer, own, _factor(vendor, offer, factor))
            units += sum(devices.counts.values())
            if not _list_fits(devices, own):
                return False
        return not dear(units, version)

    smallest_card = min(
        (
            _scaled(card.memory, vendor.memory_scaling)
            for vendor, _ in free
            for card in cards[vendor.vendor.key]
        ),
        default=0,
    )
    factor = 1
    while factor * 2 <= smallest_card and not is_safe(factor):
        factor *= 2
    return factor


def _smallest_factor(settings: VendorSettings, offer: Offer, cards: tuple[Card, ...]) -> int:
    """Return the smallest factor, power of two or not, whose list fits the message."""
    low, high = 1, _LARGEST_FACTOR
    while low < high:
        middle = (low + high) // 2
        if _list_fits(_devices(settings, offer, cards, middle * offer.memory_unit), cards):
            high = middle
        else:
            low = middle + 1
    return low


def _list_fits(devices: Devices, cards: tuple[Card, ...]) -> bool:
    return fits(sum(devices.size(card, HEALTHY) for card in cards))


def _scaled(amount: int, scaling: float) -> int:
    # 100 x 1.15 is 114.99999999999999 in floating point; nobody means 114.
    return int(round(amount * scaling, 6))
