"""A cluster with pods on it: where the next one would go, and what it takes there."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.whatif.arrays import Truth, np
from hami_mock.whatif.cluster_model import Cluster
from hami_mock.whatif.demand import CPU, RAM, PodKind
from hami_mock.whatif.hami_fit import HamiFit, Shares
from hami_mock.whatif.node_fit import NodeFit
from hami_mock.whatif.requests import NODE_POLICY
from hami_mock.whatif.rules import NodePolicy, Rules, Scheduler
from hami_mock.whatif.scoring import HamiScores, best, kube_scores

_SHARED = (CPU, RAM)


class Choice(NamedTuple):
    """A node for a pod, and what it takes of the node's cards."""

    node: int
    shares: Shares


class Placing:
    """All nodes, by the rules of one scheduler."""

    def __init__(self, cluster: Cluster, kinds: Iterable[PodKind], rules: Rules) -> None:
        self.cluster, self.rules = cluster, rules
        self.is_hami = rules.scheduler is Scheduler.HAMI
        names = [name for vendor in cluster.vendors for name in _names(vendor)]
        self.nodes = NodeFit(cluster, kinds, names if self.is_hami else ())
        self.hami = HamiFit(cluster, rules.cards, has_webhook=self.is_hami)
        self._full = HamiScores(cluster)
        counts = (vendor.resources.count for vendor in cluster.vendors)
        self.scored = (*_SHARED, *dict.fromkeys(counts))

    def choose(self, kind: PodKind, only: int | None = None) -> Choice | None:
        """Return where a pod goes; None: nowhere. `only` is the one node that it is for."""
        fits = self.fits(kind, only)
        if not self._asks_cards(kind):
            nodes = self.best(kind, fits)
            return Choice(nodes[0], {}) if nodes else None
        policy = kind.annotations.get(NODE_POLICY, self.rules.nodes)
        sign = -1 if policy == NodePolicy.SPREAD else 1
        scores = sign * self._full.scores
        while nodes := best(scores, fits):
            shares, _ = self.hami.try_on(kind, nodes[0])
            if shares is not None:
                return Choice(nodes[0], shares)
            fits[nodes[0]] = False
        return None

    def best(self, kind: PodKind, fits: Truth | None = None) -> list[int]:
        """Return the nodes that kube-scheduler chooses from, at random, by what it sees."""
        fits = self.nodes.fits(kind) if fits is None else fits
        if self.is_hami:
            # HAMi has no say here, and the scheduler's own default is to spread.
            return best(kube_scores(self.nodes, kind, NodePolicy.SPREAD, _SHARED), fits)
        return best(kube_scores(self.nodes, kind, self.rules.nodes, self.scored), fits)

    def stays_refused(self, kind: PodKind) -> bool:
        """Tell whether a pod that finds no place will find none while only others come."""
        return not kind.spreads and (not self.is_hami or self.hami.is_simple(kind))

    def refusals(self, kind: PodKind, only: int | None = None) -> dict[str, int]:
        """Return how many nodes refuse a pod, by reason."""
        return self.refusals_among(kind, [self.only(only)])[0]

    def refusals_among(self, kind: PodKind, among: Iterable[Truth]) -> list[dict[str, int]]:
        """Return the same for each of some choices of nodes."""
        refused = self.nodes.refused(kind)
        if self._asks_cards(kind):
            left = np.ones(self.cluster.size, dtype=bool)
            for nodes in refused.values():
                left &= ~nodes
            refused |= self.hami.refused(kind, left)
        ordered = sorted(refused.items())
        counts = (((reason, int(nodes[some].sum())) for reason, nodes in ordered) for some in among)
        return [{reason: count for reason, count in each if count} for each in counts]

    def put(self, kind: PodKind, choice: Choice) -> None:
        self._move(kind, choice, 1)

    def take_away(self, kind: PodKind, choice: Choice) -> None:
        self._move(kind, choice, -1)

    def nodes_for_each(self, kind: PodKind) -> Iterator[int]:
        """Yield the nodes that a DaemonSet has a pod for."""
        refused = self.nodes.places.refused(kind).values()
        left = ~np.logical_or.reduce([*refused, np.zeros(self.cluster.size, dtype=bool)])
        yield from np.flatnonzero(left).tolist()

    def fits(self, kind: PodKind, only: int | None = None) -> Truth:
        """Return the nodes that may have room for a pod."""
        fits = self.nodes.fits(kind)
        if self._asks_cards(kind):
            fits &= self.hami.fits(kind)
        return fits if only is None else fits & self.only(only)

    def only(self, node: int | None) -> Truth:
        """Return all nodes; of a pod that is for one node, this one."""
        return (
            np.full(self.cluster.size, fill_value=True)
            if node is None
            else (np.arange(self.cluster.size) == node)
        )

    def _asks_cards(self, kind: PodKind) -> bool:
        return self.is_hami and bool(self.hami.asked(kind))

    def _move(self, kind: PodKind, choice: Choice, pods: int) -> None:
        self.nodes.put(kind, choice.node, pods)
        if choice.shares:
            slots, cores, memory = self.hami.take(choice.shares, -pods)
            self._full.take(choice.node, pods * slots, pods * cores, pods * memory)


def _names(vendor: HamiVendor) -> list[str]:
    names = vendor.resources
    return [each for each in (names.count, names.memory, names.cores, names.percentage) if each]
