"""Cards → resources → devices: what the kubelet gets to see. Pure.

A resource counts slots (a card sliced into shares that whole containers take) or units (a MiB of
memory, a percent of compute). Both kinds of devices belong to a card, and health is the card's.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from hami_mock import wire
from hami_mock.errors import UnhealthyDevice, UnknownDevice
from hami_mock.inventory import Card
from hami_mock.unit_ids import UnitIds
from hami_mock.vendors import Offer, Role, Vendor

Unhealthy = Collection[str]
"""The UUIDs of the cards that are unhealthy now."""


class Devices(Protocol):
    """The devices of one resource, card by card."""

    @property
    def counts(self) -> dict[str, int]:
        """How many devices each card has, by UUID."""

    def size(self, card: Card, health: bytes) -> int:
        """Return the bytes that the card's devices take in a list."""

    def encode(self, card: Card, health: bytes) -> Iterator[bytes | bytearray]:
        """Yield the card's devices as they stand in a list, in pieces to be joined."""

    def ids(self, card: Card) -> Iterator[str]:
        """Yield the IDs of the card's devices."""

    def card_of(self, device_id: str) -> Card | None:
        """Return the card that a device is on, or None if there is no such device."""


class SlotDevices:
    """Every card cut into the same number of slots, `<card UUID>-<slot>`."""

    def __init__(self, cards: tuple[Card, ...], split: int) -> None:
        self.split = split
        self._cards = {card.uuid: card for card in cards}
        self._slots = {str(slot) for slot in range(split)}

    @property
    def counts(self) -> dict[str, int]:
        """How many slots each card has."""
        return dict.fromkeys(self._cards, self.split)

    def size(self, card: Card, health: bytes) -> int:
        """Return the bytes that the card's slots take in a list."""
        digits = (len(str(slot)) for slot in range(self.split))
        return sum(
            wire.device_size(len(card.uuid) + 1 + length, health, card.numa) for length in digits
        )

    def encode(self, card: Card, health: bytes) -> Iterator[bytes]:
        """Yield the card's slots as they stand in a list, on the card's NUMA node."""
        for slot in self.ids(card):
            yield wire.device(slot, health, card.numa)

    def ids(self, card: Card) -> Iterator[str]:
        """Yield the IDs of the card's slots."""
        for slot in range(self.split):
            yield f"{card.uuid}-{slot}"

    def card_of(self, device_id: str) -> Card | None:
        """Return the card of a slot."""
        uuid, _, slot = device_id.rpartition("-")
        return self._cards.get(uuid) if slot in self._slots else None


@dataclass(frozen=True)
class Extent:
    """The numbers `first`, `first + 1`, … of a resource's units that are one card's."""

    card: Card
    first: int
    count: int


class UnitDevices:
    """Units numbered through from the first card to the last.

    They have no NUMA node: the kubelet's search for the best NUMA placement of tens of thousands
    of devices takes minutes.
    """

    def __init__(self, ids: UnitIds, per_card: dict[Card, int]) -> None:
        self._ids = ids
        self._extents: dict[str, Extent] = {}
        first = 0
        for card, count in per_card.items():
            self._extents[card.uuid] = Extent(card, first, count)
            first += count
        self._count = first
        self._in_order = [extent for extent in self._extents.values() if extent.count]
        self._firsts = [extent.first for extent in self._in_order]

    @property
    def counts(self) -> dict[str, int]:
        """How many units each card has."""
        return {uuid: extent.count for uuid, extent in self._extents.items()}

    def size(self, card: Card, health: bytes) -> int:
        """Return the bytes that the card's units take in a list."""
        extent = self._extents[card.uuid]
        lengths = self._ids.lengths(extent.first, extent.count)
        return sum(many * wire.device_size(length, health) for length, many in lengths)

    def encode(self, card: Card, health: bytes) -> Iterator[bytearray]:
        """Yield the card's units as they stand in a list, a piece for each length of IDs."""
        extent = self._extents[card.uuid]
        for columns in self._ids.columns(extent.first, extent.count):
            yield wire.devices(columns, health)

    def ids(self, card: Card) -> Iterator[str]:
        """Yield the IDs of the card's units."""
        extent = self._extents[card.uuid]
        for number in range(extent.first, extent.first + extent.count):
            yield self._ids.encode(number)

    def card_of(self, device_id: str) -> Card | None:
        """Return the card of a unit."""
        number = self._ids.decode(device_id)
        if number is None or number >= self._count:
            return None
        return self._in_order[bisect_right(self._firsts, number) - 1].card


@dataclass(frozen=True)
class Resource:
    """One extended resource of the node.

    `factor` is how much of the thing one device stands for (MiB of memory; 1 for all else), and
    `source` the option that gave the name, for messages.
    """

    name: str
    source: str
    offer: Offer
    vendor: Vendor
    cards: tuple[Card, ...]
    devices: Devices
    factor: int = 1

    @property
    def count(self) -> int:
        """How many devices there are."""
        return sum(self.devices.counts.values())

    @property
    def has_slots(self) -> bool:
        """Whether the devices are slots of cards; else they are units."""
        return self.offer.role is Role.SLOTS

    @property
    def unit(self) -> str:
        """What one device stands for, in words."""
        match self.offer.role:
            case Role.SLOTS:
                return "slot"
            case Role.MEMORY:
                return f"{self.factor} MiB"
            case Role.CORES | Role.PERCENTAGE:
                return "1 %"

    def list_size(self, unhealthy: Unhealthy = (), word: bytes = wire.UNHEALTHY) -> int:
        """Return the bytes of the list message, with one word for all unhealthy devices."""
        return sum(
            self.devices.size(card, word if card.uuid in unhealthy else wire.HEALTHY)
            for card in self.cards
        )

    def encode_list(self, unhealthy: Unhealthy = ()) -> bytes:
        """Return the ListAndWatchResponse of all devices.

        The word "Unhealthy" is longer than "Healthy" and could push a full list over the limit, so
        there a word of the same length stands in: the kubelet takes any but "Healthy" as unhealthy.
        """
        fits = self.list_size(unhealthy) <= wire.MESSAGE_LIMIT
        word = wire.UNHEALTHY if fits else wire.UNKNOWN
        return b"".join(
            piece
            for card in self.cards
            for piece in self.devices.encode(card, word if card.uuid in unhealthy else wire.HEALTHY)
        )

    def cards_of(self, device_ids: Collection[str], unhealthy: Unhealthy = ()) -> tuple[Card, ...]:
        """Return the cards that the devices are on, each once, by index.

        Raises UnknownDevice or UnhealthyDevice for the first ID that can't be given.
        """
        found: dict[int, Card] = {}
        for device_id in device_ids:
            card = self.devices.card_of(device_id)
            if card is None:
                raise UnknownDevice(self.name, device_id)
            if card.uuid in unhealthy:
                raise UnhealthyDevice(self.name, device_id, card.uuid)
            found[card.index] = card
        return tuple(found[index] for index in sorted(found))
