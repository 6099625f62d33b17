"""When a fleet on which pods end was fullest, and how it was then.

How full it is, HAMi's scheduler says of its cards: the sum of the shares of slots, cores and memory
that are taken. Where that is the same, or there are no cards, those of the nodes' CPU, memory and
pods count.
"""

from hami_mock.whatif.arrays import NDArray, Whole, np
from hami_mock.whatif.cluster_model import Cluster, Saved
from hami_mock.whatif.outcome import Amounts, Fullest

_OF_CARDS = [Amounts._fields.index(name) for name in ("slots", "cores", "memory")]
_OF_NODES = [Amounts._fields.index(name) for name in ("cpu", "ram", "pods")]
Fullness = tuple[float, float]


class FullestMoment:
    """Keeps the state of the fullest moment: looked at before pods end, and once at the end."""

    def __init__(self, cluster: Cluster, there: Amounts) -> None:
        self._cluster = cluster
        self._there: NDArray[np.int64] = np.maximum(there, 1)
        self._has_grown = False
        self._known: tuple[Fullness, Fullest, Saved] | None = None

    def grew(self) -> None:
        """Tell that somebody has been placed."""
        self._has_grown = True

    def look(self, now: float, arrived: int, taken: Whole) -> None:
        """Keep the state of now if nothing has been fuller."""
        if not self._has_grown:
            return
        self._has_grown = False
        fullness = self._fullness(taken)
        if self._known is None or fullness > self._known[0]:
            moment = Fullest(now, arrived, Amounts(*taken.tolist()).pods)
            self._known = fullness, moment, self._cluster.saved()

    def restore(self, taken: Whole) -> Fullest | None:
        """Make the cluster as it was; None: nothing was fuller than the end."""
        if self._known is None or self._fullness(taken) >= self._known[0]:
            return None
        _, moment, saved = self._known
        self._cluster.restore(saved)
        return moment

    def _fullness(self, taken: Whole) -> Fullness:
        shares = taken / self._there
        return float(shares[_OF_CARDS].sum()), float(shares[_OF_NODES].sum())
