"""Cards from the settings."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import UsageError
from hami_mock.kubelet.limits import Version
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.advice import without_factor
from hami_mock.node.cards import Card, make_cards
from hami_mock.node.devices import CountedUnits
from hami_mock.node.event_kinds import Kind
from hami_mock.node.holders import Holders
from hami_mock.node.sizing import Node, Past, Share, scaled, size
from hami_mock.node.state import NodeState
from hami_mock.node.ways import NO_PERMISSION, Permission, Units, policy
from hami_mock.settings.settings import Settings, VendorSettings
from hami_mock.sources import host, unit_record
from hami_mock.sources.host import Host
from hami_mock.sources.inventory import Inventory
from hami_mock.vendors import Offer, Role

_NO_PAST = Past()
_UNKNOWN = Host()
_AGAIN_SECONDS = 30.0
"""How often the API server is asked whether it still refuses."""
_OPTIONS = {Role.SLOTS: "split", Role.MEMORY: "memory-scaling"}
_log = logging.getLogger(__name__)


def configured_node(
    settings: Settings,
    version: Version | None,
    past: Past = _NO_PAST,
    permission: Permission = NO_PERMISSION,
) -> Node:
    """Return the node that the settings make, for a kubelet of some version.

    Without device plugins it has cards, and offers nothing.

    Raises UsageError for each resource whose list the kubelet wouldn't accept, or that leaves a
    card without a device.
    """
    cards = [(vendor, vendor_cards(settings, vendor)) for vendor in settings.vendors]
    shares = [share for vendor, own in cards for share in _shares(vendor, own)]
    if not settings.device_plugins:
        shares = []
    way = policy(settings.units, permission, hami=settings.hami)
    resources, left_out = size(shares, version, past, way)
    if left_out:
        raise UsageError([f"{name}: {reason}" for name, reason in left_out])
    return Node(settings.node_name, tuple(card for _, own in cards for card in own), resources)


def vendor_cards(settings: Settings, vendor: VendorSettings) -> tuple[Card, ...]:
    return make_cards(settings.node_name, vendor.vendor, vendor.groups, vendor.mode)


async def plan(
    settings: Settings,
    past: Past = _NO_PAST,
    if_unknown: Permission = NO_PERMISSION,
    before: Host = _UNKNOWN,
) -> tuple[Node, Host]:
    """Return what the node will offer, and what is known of its kubelet and the API server.

    `if_unknown` holds where nobody can say whether the Node's status may be written; `before` is
    what was known, if the API server doesn't answer now.
    """
    known = (await host.ask(settings, if_unknown)).after(before)
    return configured_node(settings, known.version, past, known.permission), known


async def first_node(settings: Settings) -> tuple[Node, Host]:
    """Plan, with the units numbered as the agent before this one had them."""
    kept = unit_record.read(Path(settings.socket_dir), settings)
    in_status = {name: own for name, own in kept.items() if isinstance(own, CountedUnits)}
    known = Holders()
    if kept or Path(settings.pod_resources_socket).exists():
        known.name(await PodResources(settings.pod_resources_socket).holders())
    found = await host.ask(settings)

    def node(past: Past) -> Node:
        return configured_node(settings, found.version, past, found.permission)

    try:
        return node(Past(kept, known.ids, known.resources, unlisted=kept)), found
    except UsageError:
        if len(kept) == len(in_status):
            raise
        # Without holes in the numbering it may fit; if not, this says why.
        renumbered = node(Past(in_status))
        _log.warning("units are renumbered: with the old numbers, a list would not fit")
        return renumbered, found


class ConfiguredSource:
    """Makes the cards that the settings name."""

    missing: Sequence[str] = ()  # the settings are complete, or they are refused

    def __init__(
        self,
        settings: Settings,
        state: NodeState,
        inventory: Inventory,
        *,
        is_connected: bool = False,
    ) -> None:
        """Make one for an agent that is connected to the API server, or isn't."""
        self.known = _UNKNOWN
        """What the API server has said of the node, for when it is away."""
        self._settings = settings
        self._is_connected = is_connected
        self._state = state
        self._inventory = inventory
        self._one_at_a_time = anyio.Lock()
        self._trouble = ""
        """Why what the API server has said since can't be followed."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """See from time to time whether units may stand in the Node's status by now.

        A role is often applied after the agent that it is for, and there is no event for it.
        """
        task_status.started()
        told = ""
        while True:
            await self._state.wait_until(lambda: bool(self._refusal))
            if self.notice != told:
                told = self.notice
                _log.warning("%s", told)
            await anyio.sleep(_AGAIN_SECONDS)
            if not self._refusal:
                continue
            try:
                lines = await self.use(self._settings)
            except UsageError as error:
                # Units stay where they are: refused in the one place, and too many in the other.
                self._trouble = str(error)
                continue
            if lines:
                told = "; ".join(lines)
                self._state.events.add(Kind.CONFIGURATION_CHANGED, "--units auto", told)

    async def use(self, settings: Settings) -> list[str]:
        if settings.units is Units.STATUS and not self._is_connected:
            raise UsageError(
                "--units status: this agent isn't connected to the API server: restart it with "
                "this flag"
            )
        async with self._one_at_a_time:
            node, known = await plan(settings, await self._inventory.past(), before=self.known)
            lines = self._inventory.change(node)
            self._settings, self.known, self._trouble = settings, known, ""
            return lines

    @property
    def notice(self) -> str:
        """Why units can't stand in the Node's status; "" if they can, or needn't."""
        if self._trouble:
            return f"units stay where they are: {self._trouble}"
        refusal = self._refusal
        if not refusal:
            return ""
        if not self.known.permission.is_known:
            return f"it isn't known whether units may be put in the Node's status: {refusal}"
        return f"units have device plugins, and their limits: {refusal}"

    @property
    def _refusal(self) -> str:
        """Why the API server has to be asked again about units; "" if it hasn't."""
        if not self._is_connected or self._settings.units is not Units.AUTO:
            return ""
        units = [each for each in self._state.node.resources if not each.has_slots]
        have_plugins = any(not (each.in_status or each.later) for each in units)
        permission = self.known.permission
        is_open = have_plugins or (units and not permission.is_known)
        return permission.refusal if is_open else ""


def _shares(settings: VendorSettings, all_cards: tuple[Card, ...]) -> Iterator[Share]:
    key = settings.vendor.prefix
    # A card that the plugin passes over is on the node all the same.
    cards = tuple(card for card in all_cards if not settings.plugin.passes_over(card))
    for offer in settings.offers if cards else ():
        named = settings.names[offer.role]
        # Percentages are never too many: the most cards there can be have 12,800 of them.
        option = _OPTIONS.get(offer.role, "core-scaling")
        is_memory = offer.role is Role.MEMORY
        factor = f"--{key}-memory-factor"
        coarser = not (is_memory and settings.hami) or bool(settings.vendor.config.factor)
        if_many = factor if is_memory else f"lower --{key}-{option} or --{key}-cards"
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
            coarser=coarser,
            if_many=if_many if coarser else without_factor(settings.vendor, offer),
            if_few=(f"lower {factor} or " if is_memory else "") + f"raise --{key}-{option}",
            hami=settings.hami if offer.role is Role.SLOTS else None,
        )


def _amount(settings: VendorSettings, offer: Offer, card: Card) -> int:
    match offer.role:
        case Role.SLOTS:
            return settings.split
        case Role.MEMORY:
            known = settings.hami.vendor if settings.hami else None
            memory = known.card_memory(card.memory, card.model) if known else card.memory
            return scaled(memory, settings.memory_scaling)
        case Role.CORES:
            return scaled(offer.per_card or card.model.cores, settings.core_scaling)
        case Role.PERCENTAGE:
            return 100
