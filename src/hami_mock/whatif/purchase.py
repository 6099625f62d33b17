"""How many more nodes of a pool it takes until the pods fit, and what each purchase gains. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hami_mock.settings.pools import MOST_NODES, Pool
from hami_mock.whatif.outcome import Outcome

Place = Callable[[Sequence[Pool]], Outcome]
"""Places the workload on a fleet."""
Tell = Callable[[str], None]

_CURVE_POINTS = 8
"""Into how many steps the way to what is needed is cut, for the curve."""


class Point(NamedTuple):
    """So many nodes bought, so many pods that fit."""

    bought: int
    fitted: int


@dataclass(frozen=True)
class Purchase:
    """More nodes of a pool. `wanted` is how many pods should fit, `points` what was tried.

    `best` is the smallest number of nodes tried after which no more pods fit, and `fitted` how many
    do then: as many as wanted, or all that nodes of this pool can ever help.
    """

    pool: str
    wanted: int
    points: tuple[Point, ...]
    best: Point

    @property
    def is_enough(self) -> bool:
        return self.best.fitted >= self.wanted

    @property
    def gained(self) -> int:
        return self.best.fitted - self.points[0].fitted


def enlarged(pools: Sequence[Pool], more: Mapping[str, int]) -> tuple[Pool, ...]:
    """Return the pools with more nodes (or fewer), by the pool's name."""
    return tuple(replace(pool, nodes=pool.nodes + more.get(pool.name, 0)) for pool in pools)


@dataclass(frozen=True)
class Market:
    """Where purchases are tried: a fleet, what fits on it now, and how to place the workload."""

    pools: Sequence[Pool]
    now: Outcome
    place: Place
    tell: Tell = lambda _: None

    def purchase(self, pool: str, wanted: int) -> Purchase:
        """Find the smallest number of nodes of a pool with which so many pods fit.

        If that many never do, as many as can: with a node for each refused pod, none of them waits
        for another.
        """
        search = _Search(self, pool)
        had = len(self.now.placements)
        own = next(each.nodes for each in self.pools if each.name == pool)
        most = min(len(self.now.refusals), MOST_NODES - own)
        if had >= wanted or most <= 0:
            return search.told(wanted, 0)
        reach = search.grow(wanted, most)
        goal = min(wanted, search.fitted(reach))
        if goal <= had:
            return search.told(wanted, 0)
        low = max(bought for bought, fitted in search.tried.items() if fitted < goal)
        best = search.smallest(goal, low, reach)
        search.fill(best)
        return search.told(wanted, best)


class _Search:
    """What was tried of a pool: each number of nodes once."""

    def __init__(self, market: Market, pool: str) -> None:
        self._market, self._pool = market, pool
        self.tried = {0: len(market.now.placements)}

    def fitted(self, bought: int) -> int:
        if bought not in self.tried:
            self._market.tell(f"trying {bought} more nodes of {self._pool}")
            outcome = self._market.place(enlarged(self._market.pools, {self._pool: bought}))
            # A DaemonSet's pods that come with the new nodes are none of those that should fit.
            self.tried[bought] = self._market.now.arrived - len(outcome.refusals)
        return self.tried[bought]

    def grow(self, wanted: int, most: int) -> int:
        """Return a number of nodes that is enough, or the largest that can matter."""
        bought = 1
        while bought < most and self.fitted(bought) < wanted:
            bought *= 2
        return min(bought, most)

    def smallest(self, goal: int, low: int, high: int) -> int:
        """Return the smallest number in between that is enough; `low` isn't, and `high` is."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.fitted(middle) >= goal else (middle, high)
        return high

    def fill(self, best: int) -> None:
        """Try what is missing of a curve up to what is needed."""
        for step in range(1, _CURVE_POINTS):
            self.fitted(best * step // _CURVE_POINTS)

    def told(self, wanted: int, best: int) -> Purchase:
        points = tuple(Point(*each) for each in sorted(self.tried.items()) if each[0] <= best)
        return Purchase(self._pool, wanted, points, Point(best, self.tried[best]))


def cheapest(purchases: Iterable[Purchase]) -> Purchase | None:
    """Return the purchase that helps most pods, with the fewest nodes; None: none helps."""
    able = [each for each in purchases if each.gained > 0]
    return min(able, key=lambda each: (-each.best.fitted, each.best.bought), default=None)
