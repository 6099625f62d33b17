"""Cards from the settings."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import UsageError
from hami_mock.kubelet.limits import Version
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.cards import Card, make_cards
from hami_mock.node.sizing import Node, Past, Share, size
from hami_mock.settings.settings import Settings, VendorSettings
from hami_mock.sources import unit_record
from hami_mock.sources.inventory import Inventory
from hami_mock.vendors import Offer, Role

_NO_PAST = Past()
_OPTIONS = {Role.SLOTS: "split", Role.MEMORY: "memory-scaling"}
_log = logging.getLogger(__name__)


def configured_node(settings: Settings, version: Version | None, past: Past = _NO_PAST) -> Node:
    """Return the node that the settings make, for a kubelet of some version.

    Raises UsageError for each resource whose list the kubelet wouldn't accept, or that leaves a
    card without a device.
    """
    cards = [(vendor, vendor_cards(settings, vendor)) for vendor in settings.vendors]
    shares = [share for vendor, own in cards for share in _shares(vendor, own)]
    resources, left_out = size(shares, version, past)
    if left_out:
        raise UsageError([f"{name}: {reason}" for name, reason in left_out])
    return Node(settings.node_name, tuple(card for _, own in cards for card in own), resources)


def vendor_cards(settings: Settings, vendor: VendorSettings) -> tuple[Card, ...]:
    return make_cards(settings.node_name, vendor.vendor, vendor.groups)


async def plan(settings: Settings, past: Past = _NO_PAST) -> tuple[Node, Version | None]:
    """Return what the node will offer, and the kubelet's version if it could be learnt.

    The API server is asked only if the answer decides something: `auto` without a version given.
    """
    version = settings.kubelet_version
    is_needed = any(vendor.memory_factor is None for vendor in settings.vendors)
    if version is None and is_needed:
        from hami_mock.cluster import kubernetes  # few agents have to ask

        if kubernetes.is_configured():
            version = await kubernetes.kubelet_version(settings.node_name)
    return configured_node(settings, version, past), version


async def first_node(settings: Settings) -> tuple[Node, Version | None]:
    """Plan, with the units numbered as the agent before this one had them."""
    kept = unit_record.read(Path(settings.socket_dir), settings)
    if not kept:
        return await plan(settings)
    holders = await PodResources(settings.pod_resources_socket).holders()
    held = None if holders is None else {i for holder in holders for i in holder.ids}
    try:
        return await plan(settings, Past(kept, held, unlisted=kept))
    except UsageError:
        # Without holes in the numbering it may fit; if not, this says why.
        planned = await plan(settings)
        _log.warning("units are renumbered: with the old numbers, a list would not fit")
        return planned


class ConfiguredSource:
    """Makes the cards that the settings name."""

    missing: Sequence[str] = ()  # the settings are complete, or they are refused

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()  # and that is all: other settings are brought here

    async def use(self, settings: Settings) -> list[str]:
        node, _ = await plan(settings, await self._inventory.past())
        return self._inventory.change(node)


def _shares(settings: VendorSettings, cards: tuple[Card, ...]) -> Iterator[Share]:
    key = settings.vendor.prefix
    for offer in settings.offers if cards else ():
        named = settings.names[offer.role]
        # Percentages are never too many: the most cards there can be have 12,800 of them.
        option = _OPTIONS.get(offer.role, "core-scaling")
        is_memory = offer.role is Role.MEMORY
        factor = f"--{key}-memory-factor"
        yield Share(
            name=named.name,
            source=named.source,
            offer=offer,
            vendor=settings.vendor,
            cards=cards,
            amounts=tuple(_amount(settings, offer, card) for card in cards),
            # None, which is auto, stays None.
            factor=settings.memory_factor and settings.memory_factor * offer.memory_unit
            if is_memory
            else 1,
            if_many=factor if is_memory else f"lower --{key}-{option} or --{key}-cards",
            if_few=(f"lower {factor} or " if is_memory else "") + f"raise --{key}-{option}",
            mode=settings.mode,
            hami=settings.hami if offer.role is Role.SLOTS else None,
        )


def _amount(settings: VendorSettings, offer: Offer, card: Card) -> int:
    match offer.role:
        case Role.SLOTS:
            return settings.split
        case Role.MEMORY:
            return _scaled(card.memory, settings.memory_scaling)
        case Role.CORES:
            return _scaled(offer.per_card or card.model.cores, settings.core_scaling)
        case Role.PERCENTAGE:
            return 100


def _scaled(amount: int, scaling: float) -> int:
    # 100 x 1.15 is 114.99999999999999 in floating point; nobody means 114.
    return int(round(amount * scaling, 6))
