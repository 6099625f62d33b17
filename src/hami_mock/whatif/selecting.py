"""Which nodes a pod may be on: taints, selectors, affinity and spread, as kube-scheduler does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hami_mock.settings.pools import Taint
from hami_mock.whatif.arrays import Truth, Whole, np
from hami_mock.whatif.cluster_model import Cluster
from hami_mock.whatif.demand import FIELD, Match, PodKind, Spread, Toleration

NODE_NAME = "node(s) didn't match the requested node name"
TAINT = "node(s) had untolerated taint(s)"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
SPREAD = "node(s) didn't match pod topology spread constraints"
NO_KEY = f"{SPREAD} (missing required label)"
_HARD = ("NoSchedule", "NoExecute")


class Places:
    """What of a pod's wishes only nodes decide, for each kind of pod once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[int, dict[str, Truth]] = {}
        self._kept: list[PodKind] = []

    def refused(self, kind: PodKind) -> Mapping[str, Truth]:
        """Return the nodes that refuse a pod, by the reason that comes first."""
        if id(kind) not in self._known:
            self._kept.append(kind)  # so that no other gets its identity
            self._known[id(kind)] = self._refused(kind)
        return self._known[id(kind)]

    def _refused(self, kind: PodKind) -> dict[str, Truth]:
        found: dict[str, Truth] = {}
        left = np.ones(self._cluster.size, dtype=bool)

        def refuse(reason: str, nodes: Truth) -> None:
            nonlocal left
            if (now := nodes & left).any():
                found[reason] = now
                left = left & ~now

        if kind.node_name:
            refuse(NODE_NAME, np.arange(len(left)) != self._cluster.node_named(kind.node_name))
        refuse(TAINT, np.isin(self._cluster.pool, [*self._tainted(kind.tolerations)]))
        if kind.selector or kind.terms:
            refuse(AFFINITY, ~self.matches(kind))
        return found

    def _tainted(self, tolerations: Sequence[Toleration]) -> Iterator[int]:
        """Yield the pools with a taint that a pod doesn't bear."""
        for number, model in enumerate(self._cluster.models):
            hard = [taint for taint in model.pool.taints if taint.effect in _HARD]
            if not all(any(_bears(each, taint) for each in tolerations) for taint in hard):
                yield number

    def matches(self, kind: PodKind) -> Truth:
        """Return the nodes with the labels that a pod's selector and affinity ask for."""
        nodes = range(self._cluster.size)
        return np.fromiter((self._is_match(kind, node) for node in nodes), bool, len(nodes))

    def _is_match(self, kind: PodKind, node: int) -> bool:
        labels = self._cluster.labels(node)
        if any(labels.get(key) != value for key, value in kind.selector.items()):
            return False
        known = {**labels, FIELD: self._cluster.name(node)}
        # A term without conditions selects no node.
        return not kind.terms or any(term and holds(term, known) for term in kind.terms)


def holds(term: Iterable[Match], labels: Mapping[str, str]) -> bool:
    return all(each.holds(labels) for each in term)


def _bears(toleration: Toleration, taint: Taint) -> bool:
    return (
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and toleration.value in (None, taint.value)
    )


class Evenness:
    """One hard spread constraint: how many pods that match are in each domain."""

    def __init__(self, cluster: Cluster, places: Places, kind: PodKind, spread: Spread) -> None:
        self._spread, self._namespace = spread, kind.namespace
        values = [cluster.labels(node).get(spread.key) for node in range(cluster.size)]
        known = {value: place for place, value in enumerate(dict.fromkeys(values))}
        self.domain: Whole = np.array([known[value] for value in values])
        self.has_key = np.array([value is not None for value in values])
        self.counts = np.zeros(len(known), dtype=np.int64)
        self._own = int(self.counts_for(kind))
        eligible = self.has_key & (places.matches(kind) if kind.selector or kind.terms else True)
        self._eligible = np.unique(self.domain[eligible])
        self._counted = eligible

    def counts_for(self, kind: PodKind) -> bool:
        """Tell whether a pod of a kind is one of those that are to be spread."""
        return kind.namespace == self._namespace and holds(self._spread.matches, kind.labels)

    def add(self, node: int, pods: int) -> None:
        if self._counted[node]:
            self.counts[self.domain[node]] += pods

    def refused(self) -> dict[str, Truth]:
        least = self.counts[self._eligible].min() if len(self._eligible) else 0
        skew = self.counts[self.domain] + self._own - least
        uneven = self.has_key & (skew > self._spread.skew)
        return {NO_KEY: ~self.has_key, SPREAD: uneven}
