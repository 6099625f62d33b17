"""How much of what is free is of no use to the pods of a workload. Pure.

Free memory on a card is worth something only to pods that the rest of the card has room for. So a
free MiB is fragmented by the share of the pods that can't have it: those that an empty card of the
kind would take, and this one doesn't. The same holds for cores, slots and slices of MIG. An empty
card isn't fragmented, whatever there are of pods.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import add
from typing import NamedTuple

from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.whatif.arrays import Truth, Whole, np
from hami_mock.whatif.demand import Workload
from hami_mock.whatif.outcome import CardUse, Outcome, Placement
from hami_mock.whatif.requests import Request, is_wanted, requests

PARTS = ("memory", "cores", "slots", "mig")
_MOST_POINTS = 120
_ALL = 100
STEPS = 10
"""Into how many steps a side of the heat map is cut, beside one for what is used up."""


class Point(NamedTuple):
    """The fragmented share of the free memory, when so many pods had arrived."""

    arrived: int
    share: float
    time: float


class Wish(NamedTuple):
    """What containers want of a single card, and how many of them do."""

    request: Request
    selector: tuple[tuple[str, str], ...] = ()
    pods: int = 1

    def wants(self, card: CardUse) -> bool:
        """Say if it takes cards of the kind at all."""
        selectors = self.request.vendor.scheduling.asking.selectors
        is_kind_wanted = is_wanted(selectors, dict(self.selector), card.type, card.mode)
        return self.request.vendor.word == card.vendor and is_kind_wanted


def wishes_of(workload: Workload, vendors: Sequence[HamiVendor]) -> list[Wish]:
    """Return what the containers of a workload want of cards, those that are alike as one."""
    kinds = Counter(arrival.kind for arrival in workload.arrivals)
    found: Counter[Wish] = Counter()
    for kind, pods in kinds.items():
        for container in requests(kind, vendors):
            for request in container.requests:
                selectors = request.vendor.scheduling.asking.selectors
                keys = (selectors.types, selectors.no_types, selectors.mode)
                said = ((key, kind.annotations.get(key, "")) for key in keys)
                found[Wish(request, tuple((key, value) for key, value in said if value))] += pods
    return [wish._replace(pods=pods) for wish, pods in found.items()]


Parts = tuple[float, ...]
_NOTHING: Parts = (0,) * len(PARTS)


class Left(NamedTuple):
    """What is left of some cards: free, fragmented (pods that can't have it, weighted), useless.

    Each has memory, cores, slots and slices of MIG. Useless is what no pod can have. `wanted` is
    what is free on cards that some pod could have if they were empty.
    """

    free: Parts = _NOTHING
    wanted: Parts = _NOTHING
    fragmented: Parts = _NOTHING
    useless: Parts = _NOTHING

    def plus(self, other: "Left") -> "Left":
        return Left(*(tuple(map(add, *pair)) for pair in zip(self, other, strict=True)))

    def share(self, part: str) -> float | None:
        """Return the fragmented share of what is free; None: nothing is, or nobody wants any."""
        place = PARTS.index(part)
        return self.fragmented[place] / self.wanted[place] if self.wanted[place] else None


def left_by_pool(cards: Iterable[CardUse], wishes: Sequence[Wish]) -> dict[str, Left]:
    """Return what is left of each pool's cards."""
    # A node's name and a card's number say nothing here: thousands of cards are a few kinds.
    kinds = Counter(map(_kind, cards))
    takers = Takers(wishes)
    found: dict[str, Left] = {}
    for card, count in kinds.items():
        found[card.pool] = found.get(card.pool, Left()).plus(_left(card, count, takers))
    return found


def _kind(card: CardUse) -> CardUse:
    return card._replace(node="", card=0)


def _emptied(card: CardUse) -> CardUse:
    return _kind(card)._replace(pool="", memory_used=0, cores_used=0, slots_used=0, mig_used=0)


def _left(card: CardUse, count: int, takers: "Takers") -> Left:
    free = tuple(amount * count for amount in free_of(card))
    lost = takers.lost(card)
    if lost is None:
        return Left(free)
    useless = free if lost == 1 else _NOTHING
    return Left(free, free, tuple(lost * amount for amount in free), useless)


class Takers:
    """Who could have a card if it were empty, and which share of them can't have what is left."""

    def __init__(self, wishes: Sequence[Wish]) -> None:
        self._wishes = wishes
        self._shares: dict[CardUse, _Shares] = {}
        self._known: dict[CardUse, float | None] = {}

    def lost(self, card: CardUse) -> float | None:
        """Return that share, by pods; None: nobody would have the card even if it were empty."""
        state = _kind(card)._replace(pool="")
        if state not in self._known:
            empty = _emptied(card)
            if empty not in self._shares:
                self._shares[empty] = _shares_of(empty, self._wishes)
            self._known[state] = self._shares[empty].lost(state)
        return self._known[state]


class _Shares(NamedTuple):
    """What the wishes take of a kind of card, side by side."""

    pods: Whole
    memory: Whole
    cores: Whole
    slots: Whole
    mig: Whole

    def that(self, some: Truth) -> "_Shares":
        return _Shares(*(column[some] for column in self))

    def fit(self, card: CardUse) -> Truth:
        """Tell which of them find room on a card."""
        memory, cores, slots, mig = free_of(card)
        found = (self.memory <= memory) & (self.slots <= slots)
        if card.mig:
            return found & (self.mig <= mig)
        found &= self.cores <= cores
        if card.cores and not cores:
            # Where all cores are taken, nobody gets a part, not even without cores.
            found &= self.cores > 0
        if card.cores == _ALL and card.slots_used:
            found &= self.cores < _ALL
        return found

    def lost(self, card: CardUse) -> float | None:
        """Return the share of the pods that find none; None: there are no pods."""
        every = int(self.pods.sum())
        return (every - int(self.pods[self.fit(card)].sum())) / every if every else None


def _shares_of(empty: CardUse, wishes: Sequence[Wish]) -> _Shares:
    """Return what those wishes take that an empty card would do for."""
    found = []
    for wish in wishes:
        share = wish.request.share_of(empty.memory, empty.cores, empty.slots)
        if share and wish.wants(empty):
            # An instance has about as large a share of the memory as of the slices.
            mig = max(1, share.memory * empty.mig // empty.memory) if empty.mig else 0
            found.append((wish.pods, share.memory, share.cores, share.slots, mig))
    every = _Shares(*np.array(found, dtype=np.int64).reshape(len(found), 5).T)
    return every.that(every.fit(empty))


def free_of(card: CardUse) -> tuple[int, int, int, int]:
    return (
        card.memory - card.memory_used,
        card.cores - card.cores_used,
        card.slots - card.slots_used,
        card.mig - card.mig_used,
    )


def heat(cards: Iterable[CardUse]) -> list[list[int]]:
    """Count the cards by how much is free of their memory (rows) and of their cores (columns).

    The first of each is for nothing at all. Cards that are cut into instances have no such cores.
    """
    rows = [[0] * (STEPS + 1) for _ in range(STEPS + 1)]
    for card in cards:
        if not card.mig and card.memory and card.cores:
            memory, cores, *_ = free_of(card)
            rows[_step(memory, card.memory)][_step(cores, card.cores)] += 1
    return rows


def _step(free: int, whole: int) -> int:
    # Less than a hundredth is nothing, as it is for what is stranded.
    return 0 if free * 100 <= whole else math.ceil(STEPS * free / whole)


def over_time(outcome: Outcome, wishes: Sequence[Wish]) -> list[Point]:
    """Return the fragmented share of the free memory as pods come and end."""
    replay = _Replay(outcome.cards, wishes)
    if not replay.has_cards:
        return []
    events = sorted(_events(outcome.placements))
    step = -(-len(events) // _MOST_POINTS)
    found, after = [], 0
    for count, (time, is_begin, place, number) in enumerate(events, 1):
        replay.move(outcome.placements[number], 1 if is_begin else -1)
        after = max(after, place)
        if count % step == 0 or count == len(events):
            share = replay.share()
            found += [] if share is None else [Point(after, share, time)]
    return found


def _events(placements: Iterable[Placement]) -> Iterator[tuple[float, bool, int, int]]:
    """Yield when pods begin and end: who ends at the same time makes room for others before."""
    for number, each in enumerate(placements):
        begun = each.arrived + each.waited
        if each.ended == begun:
            continue
        yield begun, True, each.after, number
        if each.ended is not None:
            yield each.ended, False, each.after, number


class _Replay:
    """Cards that fill up again, as the pods came and went; those that are alike are counted."""

    def __init__(self, cards: Iterable[CardUse], wishes: Sequence[Wish]) -> None:
        self._takers = Takers(wishes)
        self._cards = {(card.node, card.vendor, card.card): _emptied(card) for card in cards}
        self._kinds = Counter(self._cards.values())

    @property
    def has_cards(self) -> bool:
        return bool(self._cards)

    def move(self, placement: Placement, sign: int) -> None:
        """Put a pod on its cards, or with -1 take it away."""
        for share in placement.cards:
            place = placement.node, share.vendor, share.card
            card = self._cards[place]
            self._kinds[card] -= 1
            if not self._kinds[card]:
                del self._kinds[card]
            self._cards[place] = now = card._replace(
                memory_used=card.memory_used + sign * share.memory,
                cores_used=card.cores_used + sign * share.cores,
                slots_used=card.slots_used + sign * share.slots,
                mig_used=card.mig_used + sign * share.mig,
            )
            self._kinds[now] += 1

    def share(self) -> float | None:
        fragmented = wanted = 0.0
        for card, count in self._kinds.items():
            if (lost := self._takers.lost(card)) is not None:
                free = count * (card.memory - card.memory_used)
                fragmented, wanted = fragmented + lost * free, wanted + free
        return fragmented / wanted if wanted else None


def step_names() -> list[str]:
    return ["0", *(f"{100 * (step + 1) // STEPS}" for step in range(STEPS))]
