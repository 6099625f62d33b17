"""The devices of a resource, each on a card: what slots and units have in common, and slots. Pure.

A device never becomes another one: whatever changes, an ID means the same slot or the same unit of
the same card for as long as a pod may hold it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from hami_mock.kubelet import wire
from hami_mock.node.cards import Card


class Devices(Protocol):
    """The devices of one resource, card by card.

    Some may be retired: the configuration has no place for them any more, but a pod may still hold
    them. They stay in the list, unhealthy, until it is known that nobody does.
    """

    @property
    def key(self) -> object:
        """Equal for devices that make the same list."""

    @property
    def counts(self) -> dict[str, int]:
        """How many devices each card has, by UUID, without the retired ones."""

    @property
    def retired(self) -> dict[str, int]:
        """How many retired devices each card has, by UUID, where it has any."""

    def size(self, card: Card, health: bytes) -> int:
        """Return the bytes that the card's devices take in a list."""

    def encode(self, card: Card, health: bytes) -> Iterator[bytes | bytearray]:
        """Yield the card's devices as they stand in a list, in pieces to be joined."""

    def retired_size(self, uuid: str, health: bytes) -> int:
        """Return the bytes that a card's retired devices take in a list."""

    def encode_retired(self, uuid: str, health: bytes) -> Iterator[bytes | bytearray]:
        """Yield a card's retired devices as they stand in a list."""

    def ids(self, card: Card) -> Iterator[str]:
        """Yield the IDs of the card's devices."""

    def card_of(self, device_id: str) -> str | None:
        """Return the UUID of the card that a device is on, or None if there is no such device."""

    def is_retired(self, device_id: str) -> bool:
        """Tell whether a device is retired."""

    def keep_retired(self, held: Collection[str] | None) -> "Devices":
        """Return the same devices, with only those retired that are held (None: nobody knows)."""


class SlotDevices:
    """Cards cut into slots, `<card UUID>-<slot>`."""

    def __init__(
        self,
        cards: Iterable[Card],
        split: int,
        retired: Mapping[str, Collection[int]] | None = None,
    ) -> None:
        self.split = split
        self._cards = {card.uuid: card for card in cards}
        self._retired = {uuid: frozenset(slots) for uuid, slots in (retired or {}).items() if slots}

    def resized(self, cards: Iterable[Card], split: int) -> "SlotDevices":
        """Return the slots of other cards, or other slots of the cards; what is cut is retired."""
        now = {card.uuid: card for card in cards}
        retired = {
            uuid: {*range(self.split if uuid in self._cards else 0), *self._retired.get(uuid, ())}
            - set(range(split if uuid in now else 0))
            for uuid in {**self._cards, **self._retired}
        }
        return SlotDevices(now.values(), split, retired)

    @property
    def key(self) -> object:
        """Equal for slots that make the same list."""
        return self.split, {uuid: card.numa for uuid, card in self._cards.items()}, self._retired

    @property
    def counts(self) -> dict[str, int]:
        """How many slots each card has."""
        return dict.fromkeys(self._cards, self.split)

    @property
    def retired(self) -> dict[str, int]:
        """How many retired slots each card has."""
        return {uuid: len(slots) for uuid, slots in self._retired.items()}

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

    def retired_size(self, uuid: str, health: bytes) -> int:
        """Return the bytes that a card's retired slots take in a list."""
        return sum(map(len, self.encode_retired(uuid, health)))

    def encode_retired(self, uuid: str, health: bytes) -> Iterator[bytes]:
        """Yield a card's retired slots; nobody will place anything on them."""
        for slot in sorted(self._retired.get(uuid, ())):
            yield wire.device(f"{uuid}-{slot}", health)

    def ids(self, card: Card) -> Iterator[str]:
        """Yield the IDs of the card's slots."""
        for slot in range(self.split):
            yield f"{card.uuid}-{slot}"

    def card_of(self, device_id: str) -> str | None:
        """Return the card of a slot."""
        uuid, slot = _slot(device_id)
        is_there = uuid in self._cards and 0 <= slot < self.split
        return uuid if is_there or slot in self._retired.get(uuid, ()) else None

    def is_retired(self, device_id: str) -> bool:
        """Tell whether a slot is retired."""
        uuid, slot = _slot(device_id)
        return slot in self._retired.get(uuid, ())

    def keep_retired(self, held: Collection[str] | None) -> "SlotDevices":
        """Return the same slots, with only those retired that are held; if nobody knows, none.

        A slot can't become another one: its ID names its card.
        """
        retired = {
            uuid: {slot for slot in slots if f"{uuid}-{slot}" in (held or ())}
            for uuid, slots in self._retired.items()
        }
        return SlotDevices(self._cards.values(), self.split, retired)


def _slot(device_id: str) -> tuple[str, int]:
    """Return card and slot of an ID; -1 is no slot."""
    uuid, _, slot = device_id.rpartition("-")
    # Only as we write it: not 007, and no digits of other scripts.
    is_slot = len(slot) < 6 and slot.isascii() and slot.isdigit() and str(int(slot)) == slot
    return uuid, int(slot) if is_slot else -1
