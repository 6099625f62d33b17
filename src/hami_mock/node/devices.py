"""The devices of a resource, card by card: slots and counted units here, units that have IDs in
`unit_devices`. Pure.

A device never becomes another one: whatever changes, an ID means the same slot or the same unit of
the same card for as long as a pod may hold it. Some may be retired: the configuration has no place
for them any more, but a pod may still hold them. They stay in the list, unhealthy, until it is
known that nobody does.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from hami_mock.kubelet import wire
from hami_mock.node.cards import Card
from hami_mock.node.unit_devices import UnitDevices


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
        # Equal for slots that make the same list.
        self.key = split, {uuid: card.numa for uuid, card in self._cards.items()}, self._retired
        self.counts = dict.fromkeys(self._cards, split)
        self.retired = {uuid: len(slots) for uuid, slots in self._retired.items()}

    def resized(self, cards: Iterable[Card], split: int) -> "SlotDevices":
        """Return the slots of other cards, or other slots of the cards; what is cut is retired."""
        now = {card.uuid: card for card in cards}
        retired = {
            uuid: {*range(self.split if uuid in self._cards else 0), *self._retired.get(uuid, ())}
            - set(range(split if uuid in now else 0))
            for uuid in {**self._cards, **self._retired}
        }
        return SlotDevices(now.values(), split, retired)

    def size(self, card: Card, health: bytes) -> int:
        """Return the bytes that the card's slots take in a list."""
        start = len(card.uuid.encode()) + 1
        digits = (len(str(slot)) for slot in range(self.split))
        return sum(wire.device_size(start + length, health, card.numa) for length in digits)

    def encode(self, card: Card, health: bytes) -> Iterator[bytes]:
        """Yield the card's slots as they stand in a list, in pieces to be joined."""
        for slot in self.ids(card):
            yield wire.device(slot, health, card.numa)

    def retired_size(self, uuid: str, health: bytes) -> int:
        return sum(map(len, self.encode_retired(uuid, health)))

    def encode_retired(self, uuid: str, health: bytes) -> Iterator[bytes]:
        """Yield a card's retired slots; nobody will place anything on them."""
        for slot in sorted(self._retired.get(uuid, ())):
            yield wire.device(f"{uuid}-{slot}", health)

    def ids(self, card: Card) -> Iterator[str]:
        return self.slots(card.uuid)

    def slots(self, uuid: str) -> Iterator[str]:
        return (f"{uuid}-{slot}" for slot in range(self.split))

    def card_of(self, device_id: str) -> str | None:
        owner = self.owner(device_id)
        return owner[0] if owner else None

    def owner(self, device_id: str) -> tuple[str, bool] | None:
        """Return the UUID of a slot's card, and whether it is retired; None: no such slot."""
        uuid, _, slot = device_id.rpartition("-")
        # Only as we write it: not 007, and no digits of other scripts.
        if len(slot) > 5 or not (slot.isascii() and slot.isdigit()) or str(int(slot)) != slot:
            return None
        if int(slot) in self._retired.get(uuid, ()):
            return uuid, True
        return (uuid, False) if uuid in self._cards and int(slot) < self.split else None

    def keep_retired(self, held: Collection[str] | None) -> "SlotDevices":
        """Return the same slots, with only those retired that are held; if nobody knows, none.

        A slot can't become another one: its ID names its card.
        """
        retired = {
            uuid: {slot for slot in slots if f"{uuid}-{slot}" in (held or ())}
            for uuid, slots in self._retired.items()
        }
        return SlotDevices(self._cards.values(), self.split, retired)


class CountedUnits:
    """Units that stand in the Node's status: each card has so many, and no single one has a name.

    So there is no list of them, whatever their number, and nothing to keep for those that hold
    some: the kubelet and the scheduler count what pods ask for.
    """

    retired: Mapping[str, int] = MappingProxyType({})

    def __init__(self, counts: Mapping[Card, int]) -> None:
        self.counts = {card.uuid: count for card, count in counts.items()}
        self.key = "counted", self.counts

    def size(self, card: Card, health: bytes) -> int:
        return 0

    def encode(self, card: Card, health: bytes) -> Iterator[bytes]:
        return iter(())

    def retired_size(self, uuid: str, health: bytes) -> int:
        return 0

    def encode_retired(self, uuid: str, health: bytes) -> Iterator[bytes]:
        return iter(())

    def ids(self, card: Card) -> Iterator[str]:
        return iter(())

    def card_of(self, device_id: str) -> str | None:
        return None

    def owner(self, device_id: str) -> tuple[str, bool] | None:
        return None

    def keep_retired(self, held: Collection[str] | None) -> "CountedUnits":
        return self


Devices = SlotDevices | UnitDevices | CountedUnits
