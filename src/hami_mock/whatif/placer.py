"""Place the pods of a workload on a fleet, one after the other.

Pods come in the order of their time, and of those at the same time the more important first. A pod
that finds no place waits; when others end, those that wait are tried again, the most important
first.
"""

import heapq
import time
from collections.abc import Callable, Collection, Iterable, Iterator

from hami_mock.settings.pools import Pool
from hami_mock.whatif.accounting import Account
from hami_mock.whatif.arrays import np
from hami_mock.whatif.cluster_model import cluster_of
from hami_mock.whatif.demand import PodKind, Workload
from hami_mock.whatif.fullest import FullestMoment
from hami_mock.whatif.outcome import Amounts, Moment, Outcome, Placement, Refusal
from hami_mock.whatif.placing import Choice, Placing
from hami_mock.whatif.requests import asks_text
from hami_mock.whatif.rules import Rules
from hami_mock.whatif.waiting import Waiting, WaitingRoom

_MOMENTS = 400
"""About so many points of a timeline are kept."""


def place(
    pools: Iterable[Pool], workload: Workload, rules: Rules, *, has_ends: bool = True
) -> Outcome:
    """Return what becomes of a workload on an empty fleet.

    `has_ends` False: pods stay for ever, also those that say how long they last.
    """
    begin = time.perf_counter()
    fleet = tuple(pools)
    kinds = [*dict.fromkeys(arrival.kind for arrival in workload.arrivals)]
    run = _Run(Placing(cluster_of(fleet), kinds, rules), kinds, has_ends=has_ends)
    run.play(workload)
    run.compare(lambda kinds: Placing(cluster_of(fleet), kinds, rules))
    return run.outcome(time.perf_counter() - begin)


def in_order(workload: Workload, placing: Placing) -> list[Waiting]:
    """Return the pods in the order in which they are tried, a DaemonSet's for each node."""
    found: list[Waiting] = []
    for arrival in workload.arrivals:
        for only in _nodes_for(arrival.kind, placing):
            suffix = "" if only is None else f"-{placing.cluster.name(only)}"
            one = arrival._replace(name=f"{arrival.name}{suffix}")
            found.append(Waiting(one.time, -one.kind.priority, len(found), one, only))
    found.sort(key=lambda each: each[:3])
    return found


def _nodes_for(kind: PodKind, placing: Placing) -> Iterator[int | None]:
    if kind.on_each_node:
        yield from placing.nodes_for_each(kind)
    else:
        yield None


class _Run:
    def __init__(self, placing: Placing, kinds: Collection[PodKind], *, has_ends: bool) -> None:
        self._placing, self._has_ends = placing, has_ends
        self._account = Account(placing)
        self._running: list[tuple[float, int, Waiting, Choice]] = []
        self._waiting = WaitingRoom(placing, kinds)
        self._placements: dict[int, Placement] = {}
        self._timeline: list[Moment] = []
        self._refused: dict[tuple[int, int | None], list[dict[str, int]]] = {}
        self._taken = np.zeros(len(Amounts._fields), dtype=np.int64)
        self._wanting = Amounts()  # no array: there is no end to what pods may want
        self._now, self._arrived = 0.0, 0
        self._fullest = FullestMoment(placing.cluster, self._account.there())

    def play(self, workload: Workload) -> None:
        queue = in_order(workload, self._placing)
        step = -(-len(queue) // _MOMENTS)
        for arrived, pod in enumerate(queue, 1):
            self._end_until(pod.time)
            self._now, self._arrived = pod.time, arrived
            if self._waiting.is_hopeless(pod) or not self._try(pod):
                self._waiting.add(pod)
                self._wanting = self._wanting.plus(self._account.asked(pod.arrival.kind))
            if arrived % step == 0 or arrived == len(queue):
                self._note()
        # Nobody else comes; but who waits may still get the place of somebody who ends.
        ends = 0
        while self._waiting and self._running:
            self._end_until(self._running[0][0])
            ends += 1
            if ends % step == 0 or not (self._waiting and self._running):
                self._note()

    def _try(self, pod: Waiting) -> bool:
        arrival, kind = pod.arrival, pod.arrival.kind
        choice = self._placing.choose(kind, pod.only)
        if choice is None:
            return False
        self._placing.put(kind, choice)
        self._taken += self._account.taken(kind, choice.shares)
        self._fullest.grew()
        cluster = self._placing.cluster
        self._placements[pod.number] = Placement(
            arrival.name,
            arrival.owner,
            pod.number,
            cluster.pool_of(choice.node).name,
            cluster.name(choice.node),
            self._account.shares(choice.shares),
            arrival.time,
            self._now - arrival.time,
            self._arrived,
        )
        if self._has_ends and arrival.lasts is not None:
            heapq.heappush(self._running, (self._now + arrival.lasts, pod.number, pod, choice))
        return True

    def _try_again(self, pod: Waiting) -> bool:
        is_placed = self._try(pod)
        if is_placed:
            self._wanting = self._wanting.minus(self._account.asked(pod.arrival.kind))
        return is_placed

    def _end_until(self, now: float) -> None:
        """Let all pods end whose time has come, and try those that wait after each."""
        while self._running and self._running[0][0] <= now:
            self._fullest.look(self._now, self._arrived, self._taken)
            self._now = self._running[0][0]
            freed = set()
            while self._running and self._running[0][0] == self._now:
                _, _, pod, choice = heapq.heappop(self._running)
                self._end(pod, choice)
                freed.add(choice.node)
            if self._waiting:
                self._waiting.retry(freed, self._try_again)

    def _end(self, pod: Waiting, choice: Choice) -> None:
        kind = pod.arrival.kind
        self._placing.take_away(kind, choice)
        self._taken -= self._account.taken(kind, choice.shares)
        self._placements[pod.number] = self._placements[pod.number]._replace(ended=self._now)

    def _note(self) -> None:
        placed, waiting = len(self._placements), len(self._waiting)
        taken = Amounts(*self._taken.tolist())
        self._timeline.append(
            Moment(
                self._now,
                self._arrived,
                placed,
                waiting,
                self._wanting.plus(taken),
                taken,
                self._account.stranded(),
            )
        )

    def outcome(self, seconds: float) -> Outcome:
        """Return what came of it; the pools are shown as they were at the fullest moment."""
        rules = self._placing.rules
        refusals = tuple(map(self._refusal, self._waiting))
        fullest = self._fullest.restore(self._taken)
        return Outcome(
            policy=rules.policy,
            scheduler=rules.scheduler,
            placements=tuple(self._placements[number] for number in sorted(self._placements)),
            refusals=refusals,
            pools=self._account.pools(),
            cards=tuple(self._account.cards()),
            timeline=tuple(self._timeline),
            seconds=seconds,
            fullest=fullest,
        )

    def compare(self, empty: Callable[[Iterable[PodKind]], Placing]) -> None:
        """Find out why pods are refused, and which nodes would take them if they were empty.

        Where none would, whoever else is on the nodes has no part in it, and empty ones are asked.
        """
        kinds = dict.fromkeys(pod.arrival.kind for pod in self._waiting)
        unused = empty(kinds) if kinds else self._placing
        for pod in self._waiting:
            kind, alike = pod.arrival.kind, (id(pod.arrival.kind), pod.only)
            if alike not in self._refused:
                every, near = unused.only(pod.only), unused.fits(kind, pod.only)
                by = self._placing if near.any() else unused
                self._refused[alike] = by.refusals_among(kind, (every, near))

    def _refusal(self, pod: Waiting) -> Refusal:
        arrival, kind = pod.arrival, pod.arrival.kind
        reasons, near = self._refused[id(kind), pod.only]
        return Refusal(
            arrival.name,
            arrival.owner,
            pod.number,
            asks_text(self._placing.nodes.asked(kind).all),
            reasons,
            arrival.time,
            near,
        )
