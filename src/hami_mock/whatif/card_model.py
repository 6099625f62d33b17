"""The cards of a fleet that HAMi's scheduler sees, as arrays, and what is left of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hami_mock.hami.mig import MigProfile
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.whatif.arrays import Truth, Whole, np

_LEFT = ("memory", "cores", "slots", "occupied", "compute")


class CardKind(NamedTuple):
    """A card as HAMi's scheduler has it when it is empty."""

    type: str
    mode: str
    memory: int
    cores: int
    slots: int
    profiles: tuple[MigProfile, ...] = ()


class PoolCard(NamedTuple):
    """A card of each node of a pool; `pairs` are its scores with the others, by number."""

    kind: CardKind
    number: int
    numa: int
    pairs: Mapping[int, int]


@dataclass
class Cards:
    """All cards of a vendor, those of a node side by side.

    - kind: of each card, which of `kinds` it is
    - nodes, first: the nodes with cards, and where those of each begin
    - pairs: the cards of a pool's nodes, by the pool's number
    - memory, cores, slots: what is left
    - occupied: the units of memory that instances stand on, as bits; compute: their slices
    """

    vendor: HamiVendor
    kinds: Sequence[CardKind]
    node: Whole
    number: Whole
    kind: Whole
    numa: Whole
    nodes: Whole
    first: Whole
    pairs: Mapping[int, Sequence[PoolCard]]

    def __post_init__(self) -> None:
        self.ends = np.append(self.first[1:], len(self.node))
        self.all_memory = self.by_kind([kind.memory for kind in self.kinds])
        self.all_cores = self.by_kind([kind.cores for kind in self.kinds])
        self.all_slots = self.by_kind([kind.slots for kind in self.kinds])
        self.is_cut: Truth = self.by_kind([bool(kind.profiles) for kind in self.kinds]) > 0
        self.clear()

    def clear(self) -> None:
        """Make all cards empty."""
        self.memory, self.cores = self.all_memory.copy(), self.all_cores.copy()
        self.slots = self.all_slots.copy()
        self.occupied, self.compute = np.zeros_like(self.kind), np.zeros_like(self.kind)

    def saved(self) -> dict[str, Whole]:
        """Return what is left of the cards, for `restore`."""
        return {name: getattr(self, name).copy() for name in _LEFT}

    def restore(self, saved: Mapping[str, Whole]) -> None:
        for name in _LEFT:
            setattr(self, name, saved[name])

    def by_kind(self, amounts: Sequence[int]) -> Whole:
        """Return for each card the amount of its kind."""
        return np.array(amounts, dtype=np.int64)[self.kind]

    def on(self, node: int) -> range:
        """Return which cards a node has."""
        place = int(np.searchsorted(self.nodes, node))
        if place == len(self.nodes) or self.nodes[place] != node:
            return range(0)
        return range(int(self.first[place]), int(self.ends[place]))


def joined(vendor: HamiVendor, parts: Sequence[tuple[int, Whole, Sequence[PoolCard]]]) -> Cards:
    """Make the cards of some pools: of each its number, its nodes, and the cards of each node."""
    kinds: dict[CardKind, int] = {}
    columns: list[list[Whole]] = []
    first: list[Whole] = []
    start = 0
    for _, nodes, cards in parts:
        own = np.array([(c.number, kinds.setdefault(c.kind, len(kinds)), c.numa) for c in cards])
        columns.append([nodes.repeat(len(cards)), *np.tile(own.T, len(nodes))])
        first.append(start + np.arange(len(nodes)) * len(cards))
        start += len(nodes) * len(cards)
    node, number, kind, numa = (np.concatenate(each) for each in zip(*columns, strict=True))
    nodes = np.concatenate([each for _, each, _ in parts])
    pairs = {pool: cards for pool, _, cards in parts}
    return Cards(
        vendor, tuple(kinds), node, number, kind, numa, nodes, np.concatenate(first), pairs
    )
