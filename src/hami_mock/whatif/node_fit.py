"""Which nodes have room for a pod, by what kube-scheduler looks at."""

from collections.abc import Iterable, Mapping

from hami_mock.whatif.arrays import Truth, Whole, np
from hami_mock.whatif.cluster_model import PODS, Cluster
from hami_mock.whatif.demand import CPU, RAM, Container, PodKind, totals
from hami_mock.whatif.selecting import Evenness, Places

TOO_MANY_PODS = "Too many pods"
# What the scheduler's scores count for a container that doesn't say what it needs.
_UNSAID = {CPU: 100, RAM: 200 * 2**20}


class Asked:
    """What a pod takes of a node's resources, and what it counts for in scores."""

    def __init__(self, kind: PodKind, ignored: frozenset[str]) -> None:
        self.all = totals(kind)
        self.room = {name: n for name, n in self.all.items() if name not in ignored} | {PODS: 1}
        said = (Container({**_UNSAID, **each.asks}, *each[1:]) for each in kind.containers)
        counted = totals(_with(kind, tuple(said)))
        self.counted = {name: counted.get(name, 0) for name in _UNSAID}


def _with(kind: PodKind, containers: tuple[Container, ...]) -> PodKind:
    return PodKind(containers, overhead=kind.overhead)


class NodeFit:
    """The nodes of a cluster, and the pods on them.

    `ignored` are the resources that the scheduler leaves to somebody else.
    """

    def __init__(
        self, cluster: Cluster, kinds: Iterable[PodKind], ignored: Iterable[str] = ()
    ) -> None:
        self.cluster = cluster
        self.left = cluster.left
        self.counted: dict[str, Whole] = {
            name: np.zeros(cluster.size, dtype=np.int64) for name in _UNSAID
        }
        self._none = np.zeros(cluster.size, dtype=np.int64)
        self.places = Places(cluster)
        self._ignored = frozenset(ignored)
        self._asked: dict[int, Asked] = {}
        self._kinds = tuple({id(kind): kind for kind in kinds}.values())
        self._even = {
            id(kind): [Evenness(cluster, self.places, kind, spread) for spread in kind.spreads]
            for kind in self._kinds
        }
        every = [each for own in self._even.values() for each in own]
        self._counting = {
            id(kind): [each for each in every if each.counts_for(kind)] for kind in self._kinds
        }

    def asked(self, kind: PodKind) -> Asked:
        if (found := self._asked.get(id(kind))) is None:
            found = self._asked[id(kind)] = Asked(kind, self._ignored)
        return found

    def fits(self, kind: PodKind) -> Truth:
        """Return the nodes that take a pod."""
        fits = self.left[PODS] > 0
        for name, amount in self.asked(kind).room.items():
            fits &= self.left.get(name, self._none) >= amount
        for refused in (*self.places.refused(kind).values(), *self._uneven(kind).values()):
            fits &= ~refused
        return fits

    def refused(self, kind: PodKind) -> dict[str, Truth]:
        """Return the nodes that don't, by reason; a node may lack several resources."""
        found = dict(self.places.refused(kind))
        left = np.ones(self.cluster.size, dtype=bool)
        for nodes in found.values():
            left &= ~nodes
        short = ~left
        for name, amount in self.asked(kind).room.items():
            lacking = left & (self.left.get(name, self._none) < amount)
            found[TOO_MANY_PODS if name == PODS else f"Insufficient {name}"] = lacking
            short |= lacking
        for reason, nodes in self._uneven(kind).items():
            found[reason] = nodes & ~short
            short |= nodes
        return found

    def _uneven(self, kind: PodKind) -> Mapping[str, Truth]:
        found: dict[str, Truth] = {}
        for each in self._even[id(kind)]:
            for reason, nodes in each.refused().items():
                found[reason] = found[reason] | nodes if reason in found else nodes
        return found

    def put(self, kind: PodKind, node: int, pods: int = 1) -> None:
        """Put a pod on a node, or with -1 take it away."""
        asked = self.asked(kind)
        for name, amount in asked.room.items():
            self.left[name][node] -= pods * amount
        for name, amount in asked.counted.items():
            self.counted[name][node] += pods * amount
        for each in self._counting[id(kind)]:
            each.add(node, pods)
