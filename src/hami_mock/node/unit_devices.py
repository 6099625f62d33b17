"""Units as devices: numbers that stay what they are while cards grow, shrink, come and go. Pure."""

import sys
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from hami_mock.kubelet import wire
from hami_mock.kubelet.unit_ids import Numbers, UnitIds
from hami_mock.node.cards import Card


class UnitDevices:
    """Numbered units. A number belongs to a card for as long as the card has it.

    They have no NUMA node: the kubelet's search for the best NUMA placement of tens of thousands
    of devices takes minutes.
    """

    def __init__(
        self,
        ids: UnitIds,
        numbers: Mapping[str, Numbers],
        retired: Mapping[str, Numbers] | None = None,
        reserved: Mapping[str, Numbers] | None = None,
    ) -> None:
        """Make units; `reserved` are retired ones that aren't listed: nobody else may be them."""
        self._ids = ids
        self.numbers = dict(numbers)
        """The numbers of each card's units, by UUID."""
        self._retired = {uuid: runs for uuid, runs in (retired or {}).items() if runs}
        self._reserved = {uuid: runs for uuid, runs in (reserved or {}).items() if runs}
        self._owned = sorted(
            (run.start, run.stop, uuid, of is not self.numbers)
            for of in (self.numbers, self._retired, self._reserved)
            for uuid, runs in of.items()
            for run in runs
        )
        self._starts = [start for start, *_ in self._owned]
        self.heads = ids.heads
        self.key = ids.heads, self.numbers, self._retired
        self.counts = {uuid: sum(map(len, runs)) for uuid, runs in self.numbers.items()}
        self.retired = {uuid: sum(map(len, runs)) for uuid, runs in self._retired.items()}

    @property
    def owned(self) -> dict[str, Numbers]:
        """All numbers that are a card's, by UUID: those of its units, then of retired ones."""
        every = (self.numbers, self._retired, self._reserved)
        return {uuid: tuple(chain(*(of.get(uuid, ()) for of in every))) for uuid in chain(*every)}

    @classmethod
    def make(cls, ids: UnitIds, per_card: Mapping[Card, int]) -> "UnitDevices":
        """Number the units of cards through from the first card to the last."""
        return cls(ids, {}).resized(per_card)

    def resized(self, per_card: Mapping[Card, int]) -> "UnitDevices":
        """Return the units of other cards, or more or fewer of them.

        A unit that stays keeps its number and its card. What is cut off, the newest first, is
        retired; it is the first to come back if the card grows again.
        """
        counts = {card.uuid: count for card, count in per_card.items()}
        numbers: dict[str, Numbers] = dict.fromkeys(counts, ())
        retired: dict[str, Numbers] = {}
        reserved: dict[str, Numbers] = {}
        for uuid in self.owned:
            count = counts.get(uuid, 0)
            listed = (*self.numbers.get(uuid, ()), *self._retired.get(uuid, ()))
            kept, cut = _cut(listed, count)
            back, still = _cut(self._reserved.get(uuid, ()), count - sum(map(len, kept)))
            retired[uuid], reserved[uuid] = _joined(cut), still
            if uuid in counts:
                numbers[uuid] = (*kept, *back)
        every = chain(numbers.values(), retired.values(), reserved.values())
        free = _gaps(run for runs in every for run in runs)
        for uuid, count in counts.items():
            own = list(numbers[uuid])
            missing = count - sum(map(len, own))
            while missing:
                gap = next(free)
                taken, rest = gap[:missing], gap[missing:]
                own.append(taken)
                missing -= len(taken)
                free = chain([rest], free) if rest else free
            numbers[uuid] = _joined(own)
        return UnitDevices(self._ids, numbers, retired, reserved)

    def size(self, card: Card, health: bytes) -> int:
        return self._size(self.numbers[card.uuid], health)

    def encode(self, card: Card, health: bytes) -> Iterator[bytearray]:
        return self._encode(self.numbers[card.uuid], health)

    def retired_size(self, uuid: str, health: bytes) -> int:
        return self._size(self._retired.get(uuid, ()), health)

    def encode_retired(self, uuid: str, health: bytes) -> Iterator[bytearray]:
        return self._encode(self._retired.get(uuid, ()), health)

    def ids(self, card: Card) -> Iterator[str]:
        for number in chain(*self.numbers[card.uuid]):
            yield self._ids.encode(number)

    def card_of(self, device_id: str) -> str | None:
        owner = self.owner(device_id)
        return owner[0] if owner else None

    def owner(self, device_id: str) -> tuple[str, bool] | None:
        number = self._ids.decode(device_id)
        return None if number is None else self._owner(number)

    def _owner(self, number: int) -> tuple[str, bool] | None:
        place = bisect_right(self._starts, number) - 1
        if place < 0:
            return None
        _, stop, uuid, is_retired = self._owned[place]
        return (uuid, is_retired) if number < stop else None

    def keep_retired(self, held: Collection[str] | None) -> "UnitDevices":
        """Return the same units, with only those retired that are held.

        If nobody knows which are, none is listed any more, and none of their numbers is free.
        """
        if held is None:
            gone = {
                uuid: _cut(runs, sum(map(len, self.numbers.get(uuid, ()))))[1]
                for uuid, runs in self.owned.items()
            }
            return UnitDevices(self._ids, self.numbers, reserved=gone)
        retired: dict[str, list[range]] = {}
        numbers = map(self._ids.decode, held if self._retired or self._reserved else ())
        for number in sorted({number for number in numbers if number is not None}):
            owner = self._owner(number)
            if owner and owner[1]:
                retired.setdefault(owner[0], []).append(range(number, number + 1))
        joined = {uuid: _joined(runs) for uuid, runs in retired.items()}
        return UnitDevices(self._ids, self.numbers, joined)

    def _size(self, numbers: Numbers, health: bytes) -> int:
        lengths = self._ids.lengths(numbers)
        return sum(many * wire.device_size(length, health) for length, many in lengths)

    def _encode(self, numbers: Numbers, health: bytes) -> Iterator[bytearray]:
        for columns in self._ids.columns(numbers):
            yield wire.devices(columns, health)


def _cut(runs: Iterable[range], count: int) -> tuple[Numbers, Numbers]:
    """Return the first so many numbers of runs, and the others."""
    kept: list[range] = []
    cut: list[range] = []
    for run in runs:
        kept += [run[:count]] if run[:count] else []
        cut += [run[count:]] if run[count:] else []
        count -= min(count, len(run))
    return tuple(kept), tuple(cut)


def _gaps(taken: Iterable[range]) -> Iterator[range]:
    """Yield the runs of numbers that are in none of these, from 0 on without end."""
    position = 0
    for run in sorted(taken, key=lambda run: run.start):
        if position < run.start:
            yield range(position, run.start)
        position = run.stop
    yield range(position, sys.maxsize)


def _joined(runs: Iterable[range]) -> Numbers:
    """Return the runs in the same order, with those as one that adjoin."""
    joined: list[range] = []
    for run in runs:
        if joined and joined[-1].stop == run.start:
            joined[-1] = range(joined[-1].start, run.stop)
        else:
            joined.append(run)
    return tuple(joined)
