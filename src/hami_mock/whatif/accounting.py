"""What is there, taken and stranded, by pool and in all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from hami_mock.whatif.arrays import Truth, Whole, np
from hami_mock.whatif.card_fit import instances
from hami_mock.whatif.card_model import CardKind, Cards
from hami_mock.whatif.cluster_model import PODS
from hami_mock.whatif.demand import CPU, RAM, PodKind
from hami_mock.whatif.hami_fit import Needs, Shares
from hami_mock.whatif.outcome import Amounts, CardShare, CardUse, PoolUse, Stranded
from hami_mock.whatif.placing import Placing
from hami_mock.whatif.requests import Share

_SHARED = (("cpu", CPU), ("ram", RAM), ("pods", PODS))
_LITTLE = 100
"""What has less than a hundredth left has nothing left."""


@dataclass
class Parts:
    """Cards, or all that a node has of a vendor where the scheduler sees no cards."""

    node: Whole
    cards: Whole
    all: Mapping[str, Whole]
    left: Mapping[str, Whole]

    @property
    def is_used(self) -> Truth:
        found: Truth = self.left["slots"] < self.all["slots"]
        return found

    def has(self, name: str) -> Truth:
        """Tell where some is left."""
        found: Truth = self.left[name] * _LITTLE > self.all[name]
        return found


class Account:
    """The books of a cluster with pods on it."""

    def __init__(self, placing: Placing) -> None:
        self._placing, self._cluster = placing, placing.cluster
        self._asked: dict[int, Amounts] = {}

    def asked(self, kind: PodKind) -> Amounts:
        """Return what a pod asks for; a part of a card is one of the mean of those it may be of."""
        if (found := self._asked.get(id(kind))) is None:
            found = self._asked[id(kind)] = self._asked_of(kind)
        return found

    def _asked_of(self, kind: PodKind) -> Amounts:
        room = self._placing.nodes.asked(kind).all
        cards = self._cards_asked(kind) if self._placing.is_hami else self._counted(room)
        return cards._replace(cpu=room.get(CPU, 0), ram=room.get(RAM, 0), pods=1)

    def _counted(self, room: Mapping[str, int]) -> Amounts:
        """Return what a scheduler counts of cards that sees only what nodes have of each."""
        found = Amounts()
        for cards in self._cluster.cards.values():
            names = cards.vendor.resources
            count, memory, cores = (
                room.get(name, 0) for name in (names.count, names.memory, names.cores)
            )
            found = found.plus(Amounts(count, memory * names.memory_unit, cores))
        return found

    def _cards_asked(self, kind: PodKind) -> Amounts:
        hami = self._placing.hami
        running, before = Amounts(), Amounts()
        for container, needed in zip(hami.asked(kind), hami.needed(kind), strict=True):
            own = reduce(Amounts.plus, map(_mean, needed), Amounts())
            if container.is_init:
                before = Amounts(*map(max, zip(before, own, strict=True)))
            else:
                running = running.plus(own)
        return Amounts(*map(max, zip(before, running, strict=True)))

    def taken(self, kind: PodKind, shares: Shares) -> Amounts:
        asked = self.asked(kind)
        if not self._placing.is_hami:
            return asked
        each = [one for own in shares.values() for one in own]
        return asked._replace(
            slots=sum(one.slots for one in each),
            memory=sum(one.memory for one in each),
            cores=sum(one.cores for one in each),
            mig=sum(one.compute for one in each),
        )

    def shares(self, shares: Shares) -> tuple[CardShare, ...]:
        return tuple(
            CardShare(
                word, each.number, each.memory, each.cores, each.profile, each.slots, each.compute
            )
            for word, own in shares.items()
            for each in own
        )

    def stranded(self, pool: int | None = None) -> Stranded:
        total = Stranded()
        for parts in self._parts():
            own = np.ones(len(parts.node), dtype=bool)
            if pool is not None:
                own = self._cluster.pool[parts.node] == pool
            total = total.plus(self._stranded(parts, own))
        return total

    def _stranded(self, parts: Parts, own: Truth) -> Stranded:
        memory, cores, slots = (parts.has(name) & own for name in ("memory", "cores", "slots"))
        left = {name: np.where(own, amounts, 0) for name, amounts in parts.left.items()}
        full = np.zeros(self._cluster.size, dtype=bool)
        for name in (CPU, RAM, PODS):
            full |= self._cluster.left[name] * _LITTLE <= self._cluster.all[name]
        on_full = full[parts.node]
        return Stranded(
            int(left["memory"][~cores].sum()),
            int(left["memory"][~slots].sum()),
            int(left["cores"][~memory].sum()),
            int(left["cores"][~slots].sum()),
            int(left["memory"][on_full].sum()),
            int(parts.cards[own & ~parts.is_used & on_full].sum()),
        )

    def _parts(self) -> Iterator[Parts]:
        for cards in self._cluster.cards.values():
            if self._placing.is_hami:
                yield _parts_of(cards)
            else:
                yield self._node_parts(cards)

    def _node_parts(self, cards: Cards) -> Parts:
        names, nodes = cards.vendor.resources, cards.nodes
        called = {"memory": names.memory, "cores": names.cores, "slots": names.count}
        none = np.zeros(self._cluster.size, dtype=np.int64)
        units = {"memory": names.memory_unit}
        every, left = (
            {key: some.get(name, none)[nodes] * units.get(key, 1) for key, name in called.items()}
            for some in (self._cluster.all, self._cluster.left)
        )
        return Parts(nodes, cards.ends - cards.first, every, left)

    def there(self) -> Amounts:
        """Return all that the fleet has."""
        return reduce(Amounts.plus, (pool.there for pool in self.pools()), Amounts())

    def pools(self) -> tuple[PoolUse, ...]:
        return tuple(self._pool(number) for number in range(len(self._cluster.models)))

    def _pool(self, pool: int) -> PoolUse:
        cluster = self._cluster
        own = cluster.pool == pool
        mig, mig_taken = self._mig(pool)
        there, taken = (
            Amounts(mig=compute, **{key: int(some[name][own].sum()) for key, name in _SHARED})
            for some, compute in ((cluster.all, mig), (cluster.left, mig - mig_taken))
        )
        cards = touched = 0
        for parts in self._parts():
            mine = own[parts.node]
            there = there.plus(_sums(parts.all, mine))
            taken = taken.plus(_sums(parts.left, mine))
            cards += int(parts.cards[mine].sum())
            touched += int(parts.cards[mine & parts.is_used].sum())
        taken = there.minus(taken)
        used = int((cluster.left[PODS] < cluster.all[PODS])[own].sum())
        name, size = cluster.models[pool].pool.name, int(own.sum())
        return PoolUse(name, size, used, cards, touched, there, taken, self.stranded(pool))

    def _mig(self, pool: int) -> tuple[int, int]:
        """Return the compute slices of a pool's cards that are cut, and those that are taken."""
        every = taken = 0
        for cards in self._cluster.cards.values() if self._placing.is_hami else ():
            own = self._cluster.pool[cards.node] == pool
            every += int(_slices(cards)[own].sum())
            taken += int(cards.compute[own].sum())
        return every, taken

    def cards(self) -> Iterator[CardUse]:
        """Yield the cards, where the scheduler sees them."""
        name, pool_of = self._cluster.name, self._cluster.pool_of
        for word, cards in self._cluster.cards.items() if self._placing.is_hami else ():
            left = (cards.memory, cards.cores, cards.slots, _slices(cards), cards.compute)
            columns = (cards.node, cards.number, cards.kind, *left)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            for node, number, at, memory, cores, slots, compute, used in rows:
                kind = cards.kinds[at]
                yield CardUse(
                    pool_of(node).name, name(node), word, kind.type, kind.mode, number,
                    kind.memory, kind.memory - memory, kind.cores, kind.cores - cores,
                    kind.slots, kind.slots - slots, compute, used,
                )  # fmt: skip


def _mean(needs: Needs) -> Amounts:
    """Return what a request comes to, in the mean of the cards that are wanted."""
    cards = needs.cards
    counts = np.bincount(cards.kind, minlength=len(cards.kinds)).tolist()
    parts = [
        (count, _part(kind, share))
        for count, kind, share in zip(counts, cards.kinds, needs.wishes.shares, strict=True)
        if share
    ]
    every = sum(count for count, _ in parts)
    columns = zip(*([count * amount for amount in part] for count, part in parts), strict=True)
    return Amounts(*(needs.request.cards * sum(column) // every for column in columns))


def _part(kind: CardKind, share: Share) -> Amounts:
    """Return a share of a card, or the smallest instance that is as large."""
    fitting = (each.profile for each in instances(kind) if each.profile.memory >= share.memory)
    if profile := next(fitting, None):
        return Amounts(share.slots, profile.memory, profile.cores, profile.slices)
    return Amounts(share.slots, share.memory, share.cores)


def _sums(amounts: Mapping[str, Whole], own: Truth) -> Amounts:
    return Amounts(**{name: int(each[own].sum()) for name, each in amounts.items()})


def _parts_of(cards: Cards) -> Parts:
    every = {"memory": cards.all_memory, "cores": cards.all_cores, "slots": cards.all_slots}
    left = {"memory": cards.memory, "cores": cards.cores, "slots": cards.slots}
    return Parts(cards.node, np.ones(len(cards.node), dtype=np.int64), every, left)


def _slices(cards: Cards) -> Whole:
    """Return the compute slices of each card; 0 where it isn't cut."""
    most = (max((each.slices for each in kind.profiles), default=0) for kind in cards.kinds)
    return cards.by_kind(list(most))
