"""Which kinds of pods a node may have room for, all of them at a glance.

It may say yes too often, and never says no of a node that takes a pod: who is told yes is tried.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hami_mock.whatif.arrays import Truth, Whole, np
from hami_mock.whatif.card_model import Cards
from hami_mock.whatif.demand import PodKind
from hami_mock.whatif.hami_fit import Needs
from hami_mock.whatif.placing import Placing


class _Vendor(NamedTuple):
    """What is wanted of a vendor's cards: the kinds of pods, and which of the needs each has."""

    cards: Cards
    kinds: Whole
    need_of: Whole
    needs: Sequence[Needs]


class _Table(NamedTuple):
    """What the needs come to on the cards of a pool's nodes, a row for each card.

    `least` is how many of the cards must do.
    """

    wanted: Truth
    memory: Whole
    cores: Whole
    slots: Whole
    least: Whole


class Openings:
    """The kinds of a workload, by their place in `kinds`."""

    def __init__(self, placing: Placing, kinds: Sequence[PodKind]) -> None:
        self._cluster = placing.cluster
        rooms = [placing.nodes.asked(kind).room for kind in kinds]
        self._names = [*dict.fromkeys(name for room in rooms for name in room)]
        table = [tuple(room.get(name, 0) for name in self._names) for room in rooms]
        known = {room: place for place, room in enumerate(dict.fromkeys(table))}
        self._rooms = np.array([*known], dtype=np.int64).reshape(len(known), len(self._names))
        self._room_of = np.array([known[room] for room in table], dtype=np.int64)
        self._vendors = {
            word: asked
            for word, cards in self._cluster.cards.items()
            if placing.is_hami and (asked := _of_vendor(cards, placing, kinds)).needs
        }
        self._tables: dict[tuple[str, int], _Table] = {}

    def at(self, nodes: Iterable[int]) -> Truth:
        """Return the kinds that one of these nodes may have room for."""
        found = np.zeros(len(self._room_of), dtype=bool)
        for node in nodes:
            found |= self._at(node)
        return found

    def _at(self, node: int) -> Truth:
        left = self._cluster.left
        amounts = [left[name][node] if name in left else 0 for name in self._names]
        has_room: Truth = np.all(self._rooms <= np.array(amounts), axis=1)
        found = has_room[self._room_of]
        for word, asked in self._vendors.items():
            places = asked.cards.on(node)
            if places:
                table = self._table(word, node, places)
                found[asked.kinds] &= _are_enough(table, asked.cards, places)[asked.need_of]
            else:
                found[asked.kinds] = False
        return found

    def _table(self, word: str, node: int, places: range) -> _Table:
        """All nodes of a pool have the same cards."""
        key = word, int(self._cluster.pool[node])
        if key not in self._tables:
            self._tables[key] = _made(self._vendors[word], places)
        return self._tables[key]


def _of_vendor(cards: Cards, placing: Placing, kinds: Sequence[PodKind]) -> _Vendor:
    asking = [
        (row, needs)
        for row, kind in enumerate(kinds)
        for needs in placing.hami.needs(kind)
        if needs.cards is cards
    ]
    known = {id(needs): needs for _, needs in asking}
    place_of = {one: place for place, one in enumerate(known)}
    rows = np.array([row for row, _ in asking], dtype=np.int64)
    need_of = np.array([place_of[id(needs)] for _, needs in asking], dtype=np.int64)
    return _Vendor(cards, rows, need_of, [*known.values()])


def _made(asked: _Vendor, places: range) -> _Table:
    rows = slice(places.start, places.stop)
    # A card that is cut may be had several times.
    is_cut = bool(asked.cards.is_cut[rows].any())
    least = [1 if is_cut else each.request.cards for each in asked.needs]
    return _Table(
        np.stack([each.wanted[rows] for each in asked.needs], axis=1),
        np.stack([each.memory[rows] for each in asked.needs], axis=1),
        np.stack([each.cores[rows] for each in asked.needs], axis=1),
        np.stack([each.slots[rows] for each in asked.needs], axis=1),
        np.array(least, dtype=np.int64),
    )


def _are_enough(table: _Table, cards: Cards, places: range) -> Truth:
    rows = slice(places.start, places.stop)
    fits = table.wanted.copy()
    for needed, left in (
        (table.memory, cards.memory),
        (table.cores, cards.cores),
        (table.slots, cards.slots),
    ):
        fits &= needed <= left[rows, np.newaxis]
    found: Truth = fits.sum(axis=0) >= table.least
    return found
