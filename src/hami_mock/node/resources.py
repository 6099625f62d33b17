"""Cards → resources: what the kubelet gets to see. Pure.

A resource counts slots (a card sliced into shares that whole containers take) or units (a MiB of
memory, a percent of compute). Both kinds of devices belong to a card, and health is the card's.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hami_mock.errors import UnhealthyDevice, UnknownDevice
from hami_mock.kubelet import wire
from hami_mock.node.cards import Card
from hami_mock.node.devices import CountedUnits, Devices, SlotDevices
from hami_mock.vendors import Offer, Role, Vendor

if TYPE_CHECKING:
    # What HAMi's scheduler knows takes long to load, and few agents need it.
    from hami_mock.node.hami_side import HamiSide

Uuids = Collection[str]
"""UUIDs of cards."""
_NONE: Mapping[str, str] = {}


@dataclass(frozen=True)
class Resource:
    """One extended resource of the node.

    `factor` is how much of the thing one device stands for (MiB of memory; 1 for all else), and
    `source` the option that gave the name, for messages. `hami` is what HAMi's scheduler sees of
    it; None: nothing.

    `why` says why it is offered the way it is, by a device plugin or in the Node's status. `later`
    is what it becomes once no pod holds a device of it.
    """

    name: str
    source: str
    offer: Offer
    vendor: Vendor
    cards: tuple[Card, ...]
    devices: Devices
    factor: int = 1
    hami: "HamiSide | None" = None
    why: str = ""
    later: "Resource | None" = None

    @property
    def in_status(self) -> bool:
        """Whether it stands in the Node's status; if not, it has a device plugin."""
        return isinstance(self.devices, CountedUnits)

    @property
    def count(self) -> int:
        return sum(self.devices.counts.values())

    @property
    def has_slots(self) -> bool:
        return self.offer.role is Role.SLOTS

    @property
    def unit(self) -> str:
        match self.offer.role:
            case Role.SLOTS:
                return "slot"
            case Role.MEMORY:
                return f"{self.factor} MiB"
            case Role.CORES | Role.PERCENTAGE:
                return "1 %" if self.offer.per_card == 100 else "1 core"

    def list_size(
        self, unhealthy: Uuids = (), word: bytes = wire.UNHEALTHY, lost: Uuids = ()
    ) -> int:
        """Return the bytes of the list message, with one word for all unhealthy devices."""
        devices = self.devices
        shown = (card for card in self.cards if card.uuid not in lost)
        return sum(
            devices.size(card, word if card.uuid in unhealthy else wire.HEALTHY) for card in shown
        ) + sum(devices.retired_size(uuid, word) for uuid in devices.retired)

    def encode_list(
        self, unhealthy: Uuids = (), lost: Uuids = (), *, stand_ins: Mapping[str, str] = _NONE
    ) -> bytes:
        return b"".join(self.list_pieces(unhealthy, lost, stand_ins=stand_ins))

    def list_pieces(
        self, unhealthy: Uuids = (), lost: Uuids = (), *, stand_ins: Mapping[str, str] = _NONE
    ) -> list[bytes | bytearray]:
        """Return the ListAndWatchResponse of all devices but those of lost cards, to be joined.

        Slots in `stand_ins` are as healthy as the card that stands there.

        The word "Unhealthy" is longer than "Healthy" and could push a full list over the limit, so
        there a word of the same length stands in: the kubelet takes any but "Healthy" as unhealthy.
        """
        fits = self.list_size(unhealthy, lost=lost) <= wire.MESSAGE_LIMIT
        word = wire.UNHEALTHY if fits else wire.UNKNOWN
        pieces: list[bytes | bytearray] = []
        for card in self.cards:
            if stand_ins and isinstance(self.devices, SlotDevices):
                stands_for = {
                    slot: stand_ins.get(slot, card.uuid) for slot in self.devices.ids(card)
                }
                pieces += (
                    wire.device(slot, word if uuid in unhealthy else wire.HEALTHY, card.numa)
                    for slot, uuid in stands_for.items()
                    if uuid not in lost
                )
            elif card.uuid not in lost:
                health = word if card.uuid in unhealthy else wire.HEALTHY
                pieces += self.devices.encode(card, health)
        for uuid in self.devices.retired:
            pieces += self.devices.encode_retired(uuid, word)
        return pieces

    def cards_of(self, device_ids: Collection[str], unhealthy: Uuids = ()) -> tuple[Card, ...]:
        """Return the cards that the devices are on, each once, by index.

        Raises UnknownDevice or UnhealthyDevice for the first ID that can't be given.
        """
        cards = {card.uuid: card for card in self.cards}
        found: set[str] = set()
        for device_id in device_ids:
            owner = self.devices.owner(device_id)
            if owner is None:
                raise UnknownDevice(self.name, device_id)
            uuid, is_retired = owner
            if is_retired or uuid in unhealthy:
                raise UnhealthyDevice(self.name, device_id, uuid)
            found.add(uuid)
        return tuple(card for uuid, card in cards.items() if uuid in found)
