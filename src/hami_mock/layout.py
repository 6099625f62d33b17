"""Settings → the node's cards and resources, within what the kubelet bears. Pure."""

from dataclasses import dataclass

from hami_mock.errors import Problems, UsageError
from hami_mock.inventory import Card, make_cards
from hami_mock.kubelet_rules import Version, dear, fits
from hami_mock.resources import Devices, Resource, SlotDevices, UnitDevices
from hami_mock.settings import Settings, VendorSettings
from hami_mock.unit_ids import UnitIds
from hami_mock.vendors import Offer, Role
from hami_mock.wire import HEALTHY, MESSAGE_LIMIT

_LARGEST_FACTOR = 1024 * 1024


@dataclass(frozen=True)
class Node:
    """What one node carries and offers."""

    name: str
    cards: tuple[Card, ...]
    resources: tuple[Resource, ...]


def lay_out(settings: Settings, kubelet_version: Version | None) -> Node:
    """Make the node's cards and resources.

    Raises UsageError for each resource whose list the kubelet wouldn't accept, or that leaves a
    card without a device.
    """
    cards: list[Card] = []
    resources: list[Resource] = []
    problems = Problems()
    for vendor in settings.vendors:
        own = make_cards(settings.node_name, vendor.vendor, vendor.groups)
        cards += own
        for offer in vendor.vendor.offers if own else ():
            with problems:
                resources.append(_resource(vendor, offer, own, kubelet_version))
    problems.raise_if_any()
    return Node(settings.node_name, tuple(cards), tuple(resources))


def _resource(
    settings: VendorSettings, offer: Offer, cards: tuple[Card, ...], kubelet_version: Version | None
) -> Resource:
    devices: Devices
    factor = 1
    match offer.role:
        case Role.SLOTS:
            devices = SlotDevices(cards, settings.split)
        case Role.MEMORY:
            memory = _memory(settings, cards)
            factor = settings.memory_factor or _auto_factor(offer, memory, kubelet_version)
            devices = _memory_units(offer, memory, factor)
        case Role.CORES:
            cores = _scaled(100, settings.core_scaling)
            devices = UnitDevices(UnitIds(offer.heads), dict.fromkeys(cards, cores))
        case Role.PERCENTAGE:
            devices = UnitDevices(UnitIds(offer.heads), dict.fromkeys(cards, 100))
    named = settings.names[offer.role]
    resource = Resource(named.name, named.source, offer, settings.vendor, cards, devices, factor)
    if not fits(resource.list_size()):
        raise UsageError(
            f"{resource.name}: {resource.count} devices make a list of {resource.list_size()} "
            f"bytes; the limit of the kubelet is {MESSAGE_LIMIT}: {_remedy(settings, offer, cards)}"
        )
    _check_no_card_is_empty(resource)
    return resource


def _remedy(settings: VendorSettings, offer: Offer, cards: tuple[Card, ...]) -> str:
    key = settings.vendor.key
    match offer.role:
        case Role.MEMORY:
            smallest = _smallest_factor(offer, _memory(settings, cards))
            return f"the smallest memory factor that fits is {smallest} (--{key}-memory-factor)"
        case Role.SLOTS:
            return f"lower --{key}-split or --{key}-cards"
        case Role.CORES | Role.PERCENTAGE:
            return f"lower --{key}-core-scaling or --{key}-cards"


def _check_no_card_is_empty(resource: Resource) -> None:
    for card in resource.cards:
        if not resource.devices.counts[card.uuid]:
            key = resource.vendor.key
            raise UsageError(
                f"{resource.name}: card {card.index} ({card.model.name}) comes to less than one "
                f"unit of {resource.unit} and would show 0: lower --{key}-memory-factor or raise "
                f"--{key}-memory-scaling and --{key}-core-scaling"
            )


def _memory(settings: VendorSettings, cards: tuple[Card, ...]) -> dict[Card, int]:
    return {card: _scaled(card.memory, settings.memory_scaling) for card in cards}


def _auto_factor(offer: Offer, memory: dict[Card, int], kubelet_version: Version | None) -> int:
    """Return the smallest power of two that makes the units few enough for the kubelet."""
    factor = 1
    while factor < _LARGEST_FACTOR:
        units = _memory_units(offer, memory, factor)
        if _list_fits(units, memory) and not dear(sum(units.counts.values()), kubelet_version):
            break
        factor *= 2
    return factor


def _smallest_factor(offer: Offer, memory: dict[Card, int]) -> int:
    """Return the smallest factor, power of two or not, whose list fits the message."""
    low, high = 1, _LARGEST_FACTOR
    while low < high:
        middle = (low + high) // 2
        if _list_fits(_memory_units(offer, memory, middle), memory):
            high = middle
        else:
            low = middle + 1
    return low


def _memory_units(offer: Offer, memory: dict[Card, int], factor: int) -> UnitDevices:
    return UnitDevices(UnitIds(offer.heads), {card: mib // factor for card, mib in memory.items()})


def _list_fits(units: UnitDevices, cards: dict[Card, int]) -> bool:
    return fits(sum(units.size(card, HEALTHY) for card in cards))


def _scaled(amount: int, scaling: float) -> int:
    # 100 x 1.15 is 114.99999999999999 in floating point; nobody means 114.
    return int(round(amount * scaling, 6))
