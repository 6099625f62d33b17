"""Pods that wait for others to end, and which of them are worth another try."""

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from hami_mock.whatif.arrays import Truth, np
from hami_mock.whatif.demand import Arrival, PodKind
from hami_mock.whatif.openings import Openings
from hami_mock.whatif.placing import Placing


class Waiting(NamedTuple):
    """A pod in the order in which it is tried; `only` is the one node that it is for."""

    time: float
    rank: int
    number: int
    arrival: Arrival
    only: int | None

    @property
    def turn(self) -> tuple[int, float, int]:
        """The order of those that wait: the most important first."""
        return self.rank, self.time, self.number


Alike = tuple[int, int | None]
"""Pods of one kind, by its place among the kinds, and for one node."""


class WaitingRoom:
    """Those that wait, and those like which nobody finds a place until somebody ends.

    When pods end, only their nodes have more room than before. So a kind that found no place is
    tried again where one of these nodes may take it, and until the first of its pods is refused.
    """

    def __init__(self, placing: Placing, kinds: Collection[PodKind]) -> None:
        self._openings = Openings(placing, [*kinds])
        self._place = {id(kind): place for place, kind in enumerate(kinds)}
        self._stays = np.array([placing.stays_refused(kind) for kind in kinds], dtype=bool)
        self._is_here = np.zeros(len(self._stays), dtype=bool)
        self._queues: dict[int, dict[int | None, deque[Waiting]]] = {}
        self._hopeless: set[Alike] = set()

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __len__(self) -> int:
        return sum(len(queue) for own in self._queues.values() for queue in own.values())

    def __iter__(self) -> Iterator[Waiting]:
        """Yield those that wait as they arrived."""
        every = (pod for own in self._queues.values() for queue in own.values() for pod in queue)
        yield from sorted(every, key=lambda each: each.number)

    def is_hopeless(self, pod: Waiting) -> bool:
        """Tell whether others like it have been refused, and nobody has ended since."""
        return self._alike(pod) in self._hopeless

    def add(self, pod: Waiting) -> None:
        """Let a pod wait that has just been refused."""
        place, only = alike = self._alike(pod)
        self._queues.setdefault(place, {}).setdefault(only, deque()).append(pod)
        self._is_here[place] = True
        if self._stays[place]:
            self._hopeless.add(alike)

    def retry(self, freed: Collection[int], attempt: Callable[[Waiting], bool]) -> None:
        """Try those again that may find room now; `freed` are the nodes that somebody has left."""
        opened = self._openings.at(freed)
        chosen = [*self._worth_a_try(opened, freed)]
        self._hopeless.difference_update(chosen)
        turns = [(self._queues[place][only][0].turn, 0, place, only) for place, only in chosen]
        heapq.heapify(turns)
        refused: set[Alike] = set()
        while turns:
            _, at, place, only = heapq.heappop(turns)
            queue, stays = self._queues[place][only], self._stays[place]
            is_vain = (place, only) in refused or (stays and not opened[place])
            if not is_vain and attempt(queue[at]):
                del queue[at]
                refused.clear()
                opened = self._openings.at(freed)
            elif stays:
                self._hopeless.add((place, only))
                continue
            else:
                # It may fit as soon as somebody else is placed, and those behind it too.
                refused.add((place, only))
                at += 1
            if at < len(queue):
                heapq.heappush(turns, (queue[at].turn, at, place, only))
        for place, only in chosen:
            self._leave_if_empty(place, only)

    def _worth_a_try(self, opened: Truth, freed: Collection[int]) -> Iterator[Alike]:
        places = np.flatnonzero(self._is_here & (opened | ~self._stays))
        for place in places.tolist():
            for only in self._queues[place]:
                if only is None or only in freed or not self._stays[place]:
                    yield place, only

    def _alike(self, pod: Waiting) -> Alike:
        return self._place[id(pod.arrival.kind)], pod.only

    def _leave_if_empty(self, place: int, only: int | None) -> None:
        if not self._queues[place][only]:
            del self._queues[place][only]
        if not self._queues[place]:
            del self._queues[place]
            self._is_here[place] = False
