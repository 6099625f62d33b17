"""Which of the nodes with room comes first: HAMi's scores, and kube-scheduler's."""

from hami_mock.whatif.arrays import NDArray, Truth, Whole, np
from hami_mock.whatif.cluster_model import Cluster
from hami_mock.whatif.demand import PodKind
from hami_mock.whatif.node_fit import NodeFit
from hami_mock.whatif.rules import NodePolicy

_HIGHEST = 100
_F = np.float32


class HamiScores:
    """How full each node's cards are: slots, cores and memory, each in parts of all it has."""

    def __init__(self, cluster: Cluster) -> None:
        every, left = np.zeros((2, 3, cluster.size), dtype=np.int64)
        for cards in cluster.cards.values():
            for row, amounts in enumerate((cards.all_slots, cards.all_cores, cards.all_memory)):
                every[row][cards.nodes] += np.add.reduceat(amounts, cards.first)
            for row, amounts in enumerate((cards.slots, cards.cores, cards.memory)):
                left[row][cards.nodes] += np.add.reduceat(amounts, cards.first)
        # As lists: one number at a time they are quicker than arrays.
        self._all: list[list[int]] = every.T.tolist()
        self._used: list[list[int]] = (every - left).T.tolist()
        self.scores = np.zeros(cluster.size, dtype=np.float32)
        for node in range(cluster.size):
            self.take(node, 0, 0, 0)

    def take(self, node: int, slots: int, cores: int, memory: int) -> None:
        """Take so much of a node's cards, and make its score anew, with the scheduler's precision.

        A node without some of the three has no score.
        """
        used, every = self._used[node], self._all[node]
        used[0] += slots
        used[1] += cores
        used[2] += memory
        if all(every):
            a, b, c = (_F(part) / _F(whole) for part, whole in zip(used, every, strict=True))
            self.scores[node] = a + b + c


def kube_scores(
    nodes: NodeFit, kind: PodKind, policy: NodePolicy, resources: tuple[str, ...]
) -> Whole:
    """Return how kube-scheduler scores nodes with a pod on them, 0 to 100.

    MostAllocated is binpack, LeastAllocated is spread: of each resource that the pod asks for, in
    whole percent, and of these the mean, rounded down.
    """
    asked = nodes.asked(kind)
    total = np.zeros(nodes.cluster.size, dtype=np.int64)
    weights = np.zeros(nodes.cluster.size, dtype=np.int64)
    for name in resources:
        all_of_it = nodes.cluster.all.get(name)
        if all_of_it is None or not (name in asked.counted or asked.room.get(name)):
            continue
        if name in asked.counted:
            used = nodes.counted[name] + asked.counted[name]
        else:
            used = all_of_it - nodes.left[name] + asked.room[name]
        there = all_of_it > 0
        part = np.minimum(used, all_of_it) if policy is NodePolicy.BINPACK else all_of_it - used
        total += np.where(there, np.maximum(part, 0) * _HIGHEST // np.maximum(all_of_it, 1), 0)
        weights += there
    return total // np.maximum(weights, 1)


def best(scores: NDArray[np.generic], fits: Truth) -> list[int]:
    """Return the nodes with the highest score among those that fit, in order."""
    candidates = np.flatnonzero(fits)
    if not len(candidates):
        return []
    own = scores[candidates]
    found: list[int] = candidates[own == own.max()].tolist()
    return found
