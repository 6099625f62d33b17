"""The state → what a DRA driver has to offer of it now. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from hami_mock.node.cards import Card
from hami_mock.node.instances import Instance
from hami_mock.node.state import CardHealth, Health, NodeState
from hami_mock.vendors import VENDORS
from hami_mock.vendors.dra import CardHere, Device, DraDriver, Place, Profile, driver_of
from hami_mock.vendors.instance_profile import most_slices

_CARDS_OF_A_VENDOR = 1000
"""No vendor has more on a node."""


@dataclass(frozen=True)
class Offered:
    """A device of a card. `xid` is the error that made its card unhealthy; "" if it was no such."""

    card: Card
    device: Device
    health: CardHealth
    xid: str = ""

    @property
    def is_lost(self) -> bool:
        return self.health.health is Health.LOST


class Pool:
    """What a driver offers on this node, which is the pool's name."""

    def __init__(
        self, driver: DraDriver, profile: Profile, state: NodeState, driver_version: str
    ) -> None:
        self.driver = driver
        self.state = state
        self.name = state.node.name
        self._offer = partial(offered, driver, profile, state, driver_version)
        self._made_at: object = None
        self._devices: dict[str, Offered] = {}

    @property
    def devices(self) -> Mapping[str, Offered]:
        """The devices by name, in their order; made anew when the state has changed."""
        now = self.state.changes.next()
        if self._made_at is not now:
            self._devices = {each.device.name: each for each in self._offer()}
            self._made_at = now
        return self._devices


def offered(
    driver: DraDriver, profile: Profile, state: NodeState, driver_version: str
) -> list[Offered]:
    """Return a driver's devices, card by card; those of a card by name: its whole comes first."""
    found = []
    for card in state.node.cards:
        if driver_of(card.vendor, profile) is not driver:
            continue
        here = CardHere(
            card,
            state.node.name,
            driver_version,
            VENDORS.index(card.vendor) * _CARDS_OF_A_VENDOR + card.index,
            card.mode,
            _places(card, state),
            _possible(card) if card.uuid in state.cuts else (),
        )
        health, xid = state.health(card), _xid(card, state)
        devices = sorted(driver.devices(here), key=lambda device: device.name)
        found += [Offered(card, device, health, xid) for device in devices]
    return found


def _xid(card: Card, state: NodeState) -> str:
    xids = (fault.details.get("xid") for fault in state.faults_of(card.uuid))
    return next((str(xid) for xid in xids if xid is not None), "")


def _places(card: Card, state: NodeState) -> tuple[Place, ...] | None:
    """Return what was cut out of a card; None: it can't be cut now."""
    cut = state.cuts.get(card.uuid)
    if cut is None:
        return None
    return tuple(
        Place(part.profile, part.start, part.computes[0].uuid)
        for part in cut.parts
        if part.computes
    )


def _possible(card: Card) -> tuple[Place, ...]:
    cutting = card.vendor.cutting() if card.vendor.cutting else None
    if cutting is None:
        return ()
    return tuple(
        Place(profile, start, cutting.uuid(card.uuid, profile.name, start, 0))
        for profile in cutting.profiles(card.model)
        for start in profile.starts
    )


def instance(card: Card, place: Place | None) -> Instance | None:
    """Return the instance that a device is, as all who show the card know it."""
    cutting = card.vendor.cutting() if card.vendor.cutting else None
    if place is None or cutting is None:
        return None
    profiles = cutting.profiles(card.model)
    profile = place.profile
    return Instance(
        place.uuid,
        profile.name,
        profile.memory,
        -(-100 * profile.slices // most_slices(profiles)),
        place.start,
        cutting.instance_id(profile.units, place.start, max(each.units for each in profiles)),
    )
