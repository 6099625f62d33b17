"""Which nodes have cards for a pod, by HAMi's rules: all at once, and each one exactly.

Where a pod asks for cards once, what is looked at here for all nodes is exact. Where it asks
several times, it only leaves out nodes, and each candidate is tried.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from hami_mock.whatif import card_fit
from hami_mock.whatif.arrays import Truth, Whole, np
from hami_mock.whatif.card_fit import Card, Pairs, Taken, Wishes
from hami_mock.whatif.card_model import CardKind, Cards
from hami_mock.whatif.cluster_model import Cluster
from hami_mock.whatif.demand import PodKind
from hami_mock.whatif.requests import (
    CARD_POLICY,
    ContainerRequests,
    Request,
    Share,
    is_numa_bound,
    is_wanted,
    requests,
    wanted_ids,
)
from hami_mock.whatif.rules import CardPolicy

_ALL = 100
Shares = Mapping[str, Sequence[Taken]]
"""What a pod takes of the cards of a node, by the vendor's word."""


@dataclass
class Needs:
    """A request, and what it takes of each card of its vendor.

    - wanted: the cards that are of a kind, and have an ID, that the pod takes
    - alone, none: the cards of which it takes all cores, or none
    """

    request: Request
    cards: Cards
    wishes: Wishes
    wanted: Truth
    memory: Whole
    cores: Whole
    slots: Whole

    def __post_init__(self) -> None:
        cards, places = self.cards, self.wishes.places
        alone = (cards.all_cores == _ALL) & (self.cores == _ALL)
        none = (cards.all_cores > 0) & (self.cores == 0)
        self.alone = alone if alone.any() else None
        self.none = none if none.any() else None
        self.listed = None if places is None else np.isin(np.arange(len(cards.node)), [*places])
        self.is_cut = bool(cards.is_cut.any())
        self.word = self.request.vendor.word
        self.weights = np.where(cards.is_cut, self.request.cards, 1)

    def rules(self) -> Iterator[tuple[str, Truth]]:
        """Yield the cards that can't be had, by reason, in the scheduler's order."""
        cards, is_mutex = self.cards, self.wishes.policy is CardPolicy.MUTEX
        yield card_fit.TYPE, ~self.wanted
        if self.listed is not None:
            yield card_fit.UUID, ~self.listed
        yield card_fit.SLOTS, cards.slots < self.slots
        if is_mutex:
            yield card_fit.EXCLUSIVE, cards.slots < cards.all_slots
        yield card_fit.MEMORY, cards.memory < self.memory
        yield card_fit.CORES, cards.cores < self.cores
        if self.alone is not None and not is_mutex:
            yield card_fit.EXCLUSIVE, self.alone & (cards.slots < cards.all_slots)
        if self.none is not None:
            yield card_fit.FULL, self.none & (cards.cores == 0)
        if self.is_cut:
            yield card_fit.INSTANCES, cards.is_cut & ~self._has_place()

    def _has_place(self) -> Truth:
        found = np.zeros(len(self.cards.node), dtype=bool)
        for number, kind in enumerate(self.cards.kinds):
            own = self.cards.kind == number
            share = self.wishes.shares[number]
            for each in card_fit.instances(kind):
                if share and each.profile.memory >= share.memory:
                    found |= own & ((self.cards.occupied & each.bits) == 0)
        return found

    def fits(self) -> Truth:
        """Return the cards that can be had."""
        each = self.rules()
        _, refused = next(each)
        for _, cards in each:
            refused |= cards
        return ~refused

    def enough(self, size: int) -> Truth:
        """Return the nodes with so many such cards; one that is cut may count several times."""
        counts = np.add.reduceat(self.weights * self.fits(), self.cards.first)
        found = np.zeros(size, dtype=bool)
        found[self.cards.nodes] = counts >= self.request.cards
        return found


class HamiFit:
    """The cards of a cluster, and the pods on them."""

    def __init__(self, cluster: Cluster, policy: CardPolicy, *, has_webhook: bool = True) -> None:
        self._cluster, self._policy, self._has_webhook = cluster, policy, has_webhook
        self._vendors = cluster.vendors
        self._asked: dict[int, tuple[ContainerRequests, ...]] = {}
        self._needs: dict[int, list[list[Needs]]] = {}
        self._shared: dict[tuple[Request, Wishes], Needs] = {}
        self._ids: dict[str, dict[str, int]] = {}
        self._pairs: dict[tuple[str, int], Pairs] = {
            (word, pool): {card.number: card.pairs for card in own}
            for word, cards in cluster.cards.items()
            for pool, own in cards.pairs.items()
        }

    def asked(self, kind: PodKind) -> tuple[ContainerRequests, ...]:
        if (found := self._asked.get(id(kind))) is None:
            found = self._asked[id(kind)] = requests(
                kind, self._vendors, has_webhook=self._has_webhook
            )
        return found

    def fits(self, kind: PodKind) -> Truth:
        """Return the nodes with cards for each of a pod's containers, looked at alone."""
        fits = np.ones(self._cluster.size, dtype=bool)
        for needs in self.needs(kind):
            fits &= needs.enough(self._cluster.size)
        return fits

    def refused(self, kind: PodKind, nodes: Truth) -> dict[str, Truth]:
        """Return those of some nodes without cards for a pod, by each reason of their cards."""
        found: dict[str, Truth] = {}

        def add(reason: str, more: Truth) -> None:
            found[reason] = found[reason] | more if reason in found else more

        left = nodes.copy()
        for needs in self.needs(kind):
            own = left & ~needs.enough(self._cluster.size)
            left &= ~own
            for reason, some in self._reasons(needs):
                add(reason, some & own)
        for node in np.flatnonzero(left).tolist():
            _, reasons = self.try_on(kind, node)
            for reason in reasons:
                add(reason, np.arange(self._cluster.size) == node)
        return found

    def _reasons(self, needs: Needs) -> Iterator[tuple[str, Truth]]:
        cards = needs.cards
        there = np.zeros(self._cluster.size, dtype=np.int64)
        there[cards.nodes] = cards.ends - cards.first
        # A card that is cut may be had several times.
        cut = self._any(cards, cards.is_cut)
        lacking = (there < needs.request.cards) & ~cut
        yield card_fit.NO_DEVICE, lacking
        left = np.ones(len(cards.node), dtype=bool)
        for reason, refused in needs.rules():
            now = left & refused
            left &= ~now
            yield reason, self._any(cards, now) & ~lacking
        yield card_fit.TOO_FEW, self._any(cards, left) & ~lacking

    def _any(self, cards: Cards, some: Truth) -> Truth:
        found = np.zeros(self._cluster.size, dtype=bool)
        found[cards.nodes] = np.logical_or.reduceat(some, cards.first)
        return found

    def try_on(self, kind: PodKind, node: int) -> tuple[Shares | None, Counter[str]]:
        """Choose cards for all containers of a pod on a node; None: it can't, and why."""
        containers = self.asked(kind)
        words = {needs.word for needs in self.needs(kind)}
        base = {word: card_fit.cards_on(self._cluster.cards[word], node) for word in words}
        taken: dict[str, dict[int, Taken]] = {}
        peaks: dict[str, dict[int, Taken]] = {}
        running = _copied(base) if containers[0].is_init else base
        for container, needed in zip(containers, self.needed(kind), strict=True):
            # Init containers run one after the other, each as if it were alone.
            own = _copied(base) if container.is_init else running
            into: dict[str, dict[int, Taken]] = {} if container.is_init else taken
            for needs in needed:
                word = needs.word
                pairs = self._pairs.get((word, int(self._cluster.pool[node])), {})
                found = card_fit.fit(own[word], needs.request.cards, needs.wishes, pairs)
                if not found.taken:
                    return None, found.reasons
                for each in found.taken:
                    of = into.setdefault(word, {})
                    of[each.at] = _sum(of[each.at], each) if each.at in of else each
            if container.is_init:
                _raise(peaks, into, slots=1)
        if peaks:
            _raise(peaks, taken)
        else:
            peaks = taken
        return {word: tuple(own.values()) for word, own in peaks.items()}, Counter()

    def is_simple(self, kind: PodKind) -> bool:
        """Tell whether a pod that finds no place will find none while only others come."""
        asked = self.asked(kind)
        return not asked or (len(asked) == 1 and len(asked[0].requests) == 1)

    def take(self, shares: Shares, sign: int = -1) -> tuple[int, int, int]:
        """Take shares of cards, or with 1 give them back; return slots, cores and MiB of all."""
        slots = cores = memory = 0
        for word, own in shares.items():
            cards = self._cluster.cards[word]
            for each in own:
                cards.slots[each.at] += sign * each.slots
                cards.cores[each.at] += sign * each.cores
                cards.memory[each.at] += sign * each.memory
                cards.occupied[each.at] ^= each.bits
                cards.compute[each.at] -= sign * each.compute
                slots, cores, memory = slots + each.slots, cores + each.cores, memory + each.memory
        return slots, cores, memory

    def needs(self, kind: PodKind) -> Iterator[Needs]:
        """Yield what a pod's containers need of cards, each looked at alone."""
        return chain.from_iterable(self.needed(kind))

    def needed(self, kind: PodKind) -> list[list[Needs]]:
        """Return what each container needs; pods that ask alike share the arrays."""
        if (found := self._needs.get(id(kind))) is None:
            found = [
                [self._share(request, self._wishes(kind, request)) for request in each.requests]
                for each in self.asked(kind)
            ]
            self._needs[id(kind)] = found
        return found

    def _share(self, request: Request, wishes: Wishes) -> Needs:
        if (request, wishes) not in self._shared:
            self._shared[request, wishes] = self._make(request, wishes)
        return self._shared[request, wishes]

    def _make(self, request: Request, wishes: Wishes) -> Needs:
        cards = self._cluster.cards[request.vendor.word]
        wanted = [share is not None for share in wishes.shares]
        parts = [
            cards.by_kind([share[place] if share else 0 for share in wishes.shares])
            for place in range(3)
        ]
        return Needs(request, cards, wishes, cards.by_kind(wanted) > 0, *parts)

    def _wishes(self, kind: PodKind, request: Request) -> Wishes:
        cards, asking = self._cluster.cards[request.vendor.word], request.vendor.scheduling.asking
        said, own = kind.annotations, asking.selectors
        policy = self._policy
        if (wish := said.get(CARD_POLICY, "")) in list(CardPolicy):
            policy = CardPolicy(wish)
        return Wishes(
            policy,
            tuple(_share_of(request, said, kind) for kind in cards.kinds),
            self._places(cards, *wanted_ids(own, said)),
            is_numa_bound(own, said),
            asking.by_pairs,
        )

    def _places(
        self, cards: Cards, wanted: frozenset[str], unwanted: frozenset[str]
    ) -> frozenset[int] | None:
        if not wanted and not unwanted:
            return None
        word = cards.vendor.word
        if word not in self._ids:
            self._ids[word] = {uuid: at for at, uuid in enumerate(self._cluster.card_ids(cards))}
        ids = self._ids[word]
        some = wanted & ids.keys() if wanted else ids.keys()
        return frozenset(ids[uuid] for uuid in some - unwanted)


def _share_of(request: Request, annotations: Mapping[str, str], kind: CardKind) -> Share | None:
    """Return what a pod takes of a card; None: it doesn't want such cards."""
    if not is_wanted(request.vendor.scheduling.asking.selectors, annotations, kind.type, kind.mode):
        return None
    return request.share_of(kind.memory, kind.cores, kind.slots)


def _copied(cards: Mapping[str, Sequence[Card]]) -> dict[str, list[Card]]:
    return {word: [replace(card) for card in own] for word, own in cards.items()}


def _sum(one: Taken, other: Taken) -> Taken:
    return Taken(
        one.at,
        one.number,
        one.memory + other.memory,
        one.cores + other.cores,
        one.slots + other.slots,
        one.bits | other.bits,
        one.compute + other.compute,
        ",".join(filter(None, (one.profile, other.profile))),
    )


def _raise(
    peaks: dict[str, dict[int, Taken]],
    more: Mapping[str, Mapping[int, Taken]],
    slots: int | None = None,
) -> None:
    """Let a pod have of each card what the most demanding of its phases needs."""
    for word, own in more.items():
        known = peaks.setdefault(word, {})
        for at, each in own.items():
            now = each if slots is None else each._replace(slots=slots)
            before = known.get(at, now)
            known[at] = Taken(
                at,
                now.number,
                max(now.memory, before.memory),
                max(now.cores, before.cores),
                max(now.slots, before.slots),
                now.bits | before.bits,
                max(now.compute, before.compute),
                now.profile or before.profile,
            )
