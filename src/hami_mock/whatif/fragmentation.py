"""How much of what is free is of no use to the pods of a workload. Pure.

Free memory on a card is worth something only to pods that the rest of the card has room for. So a
free MiB is fragmented by the share of the pods that can't have it: those that an empty card of the
kind would take, and this one doesn't. The same holds for cores, slots and slices of MIG. An empty
card isn't fragmented, whatever there are of pods.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import NamedTuple

from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.whatif.demand import Workload
from hami_mock.whatif.outcome import CardUse, Outcome, Placement
from hami_mock.whatif.requests import Request, is_wanted, requests

PARTS = ("memory", "cores", "slots", "mig")
_MOST_POINTS = 60
_MOST_WORK = 200_000
"""Cards times wishes up to which fragmentation is followed over time."""
STEPS = 10
"""Into how many steps a side of the heat map is cut, beside one for what is used up."""


class Wish(NamedTuple):
    """What containers want of a single card, and how many of them do."""

    request: Request
    selector: tuple[tuple[str, str], ...] = ()
    pods: int = 1

    def wants(self, card: CardUse) -> bool:
        """Say if it takes cards of the kind at all, if they are empty."""
        selectors = self.request.vendor.scheduling.asking.selectors
        is_wanted_type = is_wanted(selectors, dict(self.selector), card.model, "")
        return self.request.vendor.word == card.vendor and is_wanted_type


def wishes_of(workload: Workload, vendors: Sequence[HamiVendor]) -> list[Wish]:
    """Return what the containers of a workload want of cards, those that are alike as one."""
    kinds = Counter(arrival.kind for arrival in workload.arrivals)
    found: Counter[Wish] = Counter()
    for kind, pods in kinds.items():
        for container in requests(kind, vendors):
            for request in container.requests:
                selectors = request.vendor.scheduling.asking.selectors
                said = {key: kind.annotations.get(key, "") for key in selectors}
                types = tuple((key, said[key]) for key in selectors[:2] if key and said[key])
                found[Wish(request, types)] += pods
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
    found: dict[str, Left] = {}
    for card, count in kinds.items():
        found[card.pool] = found.get(card.pool, Left()).plus(_left(card, count, wishes))
    return found


def _kind(card: CardUse) -> CardUse:
    return card._replace(node="", card=0)


def _emptied(card: CardUse) -> CardUse:
    return card._replace(memory_used=0, cores_used=0, slots_used=0, mig_used=0)


def _left(card: CardUse, count: int, wishes: Sequence[Wish]) -> Left:
    free = tuple(amount * count for amount in free_of(card))
    able = [wish for wish in wishes if fits(wish, _emptied(card))]
    pods = sum(wish.pods for wish in able)
    if not pods:
        return Left(free)
    lost = sum(wish.pods for wish in able if not fits(wish, card)) / pods
    useless = free if lost == 1 else _NOTHING
    return Left(free, free, tuple(lost * amount for amount in free), useless)


def free_of(card: CardUse) -> tuple[int, int, int, int]:
    return (
        card.memory - card.memory_used,
        card.cores - card.cores_used,
        card.slots - card.slots_used,
        card.mig - card.mig_used,
    )


def fits(wish: Wish, card: CardUse) -> bool:
    """Say if a card has room for what is wanted of one, whatever its node has."""
    share = wish.request.share_of(card.memory, card.cores, card.slots)
    if share is None or not wish.wants(card):
        return False
    memory, cores, slots, mig = free_of(card)
    if share.memory > memory or share.slots > slots:
        return False
    if card.mig:
        # An instance has about as large a share of the memory as of the slices.
        return mig >= max(1, share.memory * card.mig // card.memory)
    return share.cores <= cores and (share.cores < card.cores or not card.slots_used)


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


def over_time(outcome: Outcome, wishes: Sequence[Wish]) -> list[tuple[int, float]]:
    """Return the fragmented share of the free memory after so many pods have arrived.

    Nothing where pods have ended, which nobody wrote down, or where it would take long. Cards that
    are cut into instances aren't in it.
    """
    placed = sorted(outcome.placements, key=lambda each: each.number)
    if outcome.taken.pods != len(placed) or len(outcome.cards) * len(wishes) > _MOST_WORK:
        return []
    replay = _Replay(outcome.cards, wishes)
    step = max(1, len(placed) // _MOST_POINTS)
    found = []
    for count, placement in enumerate(placed, 1):
        replay.put(placement)
        if count % step == 0 or count == len(placed):
            found.append((placement.number + 1, replay.share()))
    return [(arrived, share) for arrived, share in found if share is not None]


class _Replay:
    """Cards that fill up again, one pod after the other; those that are alike are counted."""

    def __init__(self, cards: Iterable[CardUse], wishes: Sequence[Wish]) -> None:
        self._wishes = wishes
        self._cards = {
            (card.node, card.vendor, card.card): _kind(_emptied(card))
            for card in cards
            if not card.mig
        }
        self._kinds = Counter(self._cards.values())
        self._known: dict[CardUse, Left] = {}

    def put(self, placement: Placement) -> None:
        for share in placement.cards:
            place = placement.node, share.vendor, share.card
            if card := self._cards.get(place):
                self._kinds[card] -= 1
                fuller = card._replace(
                    memory_used=card.memory_used + share.memory,
                    cores_used=card.cores_used + share.cores,
                    slots_used=card.slots_used + share.slots,
                )
                self._kinds[fuller] += 1
                self._cards[place] = fuller

    def share(self) -> float | None:
        total = wanted = 0.0
        for card, count in self._kinds.items():
            if count:
                if card not in self._known:
                    self._known[card] = _left(card, 1, self._wishes)
                total += count * self._known[card].fragmented[0]
                wanted += count * self._known[card].wanted[0]
        return total / wanted if wanted else None


def step_names() -> list[str]:
    return ["0", *(f"{100 * (step + 1) // STEPS}" for step in range(STEPS))]


def shares(left: Mapping[str, Left]) -> dict[str, dict[str, float | None]]:
    """Return the fragmented share of each part, by pool."""
    return {pool: {part: one.share(part) for part in PARTS} for pool, one in left.items()}
