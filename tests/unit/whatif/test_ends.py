"""Pods that end: who waits is tried again, and the report shows the fleet when it was fullest."""

import heapq
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hami_mock.settings.pools import Pool
from hami_mock.whatif.cluster_model import cluster_of
from hami_mock.whatif.demand import Arrival, Container, Match, PodKind, Spread, Workload
from hami_mock.whatif.outcome import Fullest, Outcome
from hami_mock.whatif.placer import in_order, place
from hami_mock.whatif.placing import Choice, Placing
from hami_mock.whatif.rules import Rules
from hami_mock.whatif.waiting import Waiting
from tests.unit.whatif.fleets import CORES, COUNT, GIB, MEMORY, card, fleet, node_share, pod

T4 = "nvidia: {cards: 2, model: T4}"  # 15360 MiB each
_ZONE = "topology.kubernetes.io/zone"
_CARDS = st.fixed_dictionaries(
    {COUNT: st.integers(1, 3)},
    optional={
        MEMORY: st.sampled_from([3000, 7000, 15_000, 15_000]),
        CORES: st.sampled_from([0, 30, 100]),
    },
)
_NODES = st.fixed_dictionaries(
    {"cpu": st.sampled_from([0, 500, 3000]), "memory": st.sampled_from([0, 6 * GIB])}
)
_CONTAINERS = st.builds(
    lambda cards, node: Container({**cards, **node}),
    st.one_of(st.just({}), _CARDS, _CARDS),
    _NODES,
)
_KINDS = st.builds(
    lambda containers, is_spread, selector, priority, on_each: PodKind(
        tuple(containers),
        labels={"app": "web"},
        spreads=(Spread(_ZONE, 1, (Match("app", "In", ("web",)),)),) if is_spread else (),
        selector=selector,
        priority=priority,
        on_each_node=on_each,
    ),
    st.one_of(_CONTAINERS.map(lambda one: [one]), st.lists(_CONTAINERS, min_size=1, max_size=2)),
    st.integers(0, 5).map(lambda n: n == 0),
    st.sampled_from([{}, {}, {_ZONE: "x"}]),
    st.sampled_from([0, 0, 5]),
    st.integers(0, 9).map(lambda n: n == 0),
)
_TIMES = st.tuples(st.integers(0, 6), st.sampled_from([*range(1, 9), 0, None]))


@st.composite
def _workloads(draw: st.DrawFn) -> Workload:
    kinds = draw(st.lists(_KINDS, min_size=2, max_size=5))
    drawn = draw(st.lists(st.tuples(st.sampled_from(kinds), _TIMES), min_size=12, max_size=40))
    return Workload(
        tuple(
            Arrival(f"p{n}", "x", kind, float(at), None if lasts is None else float(lasts))
            for n, (kind, (at, lasts)) in enumerate(drawn)
        )
    )


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pool, ...]:
    found: tuple[Pool, ...] = fleet(
        tmp_path_factory.mktemp("fleet"),
        f"name: a, nodes: 2, cpu: 4, memory: 16Gi, zone: [x, y], {T4}",
        "name: m, nodes: 1, cpu: 4, memory: 16Gi, max-pods: 4, zone: [y], "
        "nvidia: {cards: 1, model: A100-PCIE-40GB, mode: mig}",
        "name: c, nodes: 1, cpu: 4, memory: 8Gi, nvidia: {cards: 0}",
    )
    return found


class _SlowWay:
    """Whenever somebody ends, all that wait are tried again, on all nodes."""

    def __init__(self, pools: tuple[Pool, ...], workload: Workload, rules: Rules) -> None:
        self._placing = Placing(cluster_of(pools), [a.kind for a in workload.arrivals], rules)
        self._running: list[tuple[float, int, Waiting, Choice]] = []
        self._waiting: list[Waiting] = []
        self.placed: dict[int, tuple[str, float]] = {}
        for each in in_order(workload, self._placing):
            self._end_until(each.time)
            if not self._takes(each, each.time):
                self._waiting.append(each)
        while self._running and self._waiting:
            self._end_until(self._running[0][0])

    def _end_until(self, time: float) -> None:
        while self._running and self._running[0][0] <= time:
            now = self._running[0][0]
            while self._running and self._running[0][0] == now:
                _, _, each, choice = heapq.heappop(self._running)
                self._placing.take_away(each.arrival.kind, choice)
            waiting = sorted(self._waiting, key=lambda each: (each.rank, each.time, each.number))
            self._waiting = [each for each in waiting if not self._takes(each, now)]

    def _takes(self, each: Waiting, now: float) -> bool:
        choice = self._placing.choose(each.arrival.kind, each.only)
        if choice is None:
            return False
        self._placing.put(each.arrival.kind, choice)
        self.placed[each.number] = self._placing.cluster.name(choice.node), now
        if each.arrival.lasts is not None:
            end = now + each.arrival.lasts
            heapq.heappush(self._running, (end, each.number, each, choice))
        return True


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(_workloads(), st.sampled_from(["binpack", "spread"]), st.sampled_from(["hami", "kube"]))
def test_who_waits_gets_the_same_place_as_if_all_were_tried_everywhere(
    pools: tuple[Pool, ...], workload: Workload, policy: str, scheduler: str
) -> None:
    rules = Rules.of(policy, scheduler)
    outcome = place(pools, workload, rules)
    found = {each.number: (each.node, each.arrived + each.waited) for each in outcome.placements}
    assert found == _SlowWay(pools, workload, rules).placed


def test_who_is_refused_may_fit_as_soon_as_another_is_placed(tmp_path: Path) -> None:
    pools = fleet(
        tmp_path,
        "name: x, nodes: 1, cpu: 16, zone: [x], nvidia: {cards: 0}",
        "name: y, nodes: 1, cpu: 2, zone: [y], nvidia: {cards: 0}",
    )
    web, in_y = {"app": "web"}, {_ZONE: "y"}
    even = (Spread(_ZONE, 1, (Match("app", "In", ("web",)),)),)
    large = pod(node_share(3000), labels=web, spreads=even)
    blocks = pod(node_share(2000), selector=in_y)
    small = pod(node_share(1000), labels=web, selector=in_y)
    rows = _of((large, 0, None), (blocks, 0, 10), (large, 1, 9), (small, 2, 9), (large, 3, 9))
    outcome = place(pools, rows, Rules.of("binpack", "kube"))
    # When p1 ends, p2 would be uneven; p3 makes it even, and p4, which is as p2, comes after it.
    assert [(each.pod, each.arrived + each.waited) for each in outcome.placements] == [
        ("p0", 0.0),
        ("p1", 0.0),
        ("p3", 10.0),
        ("p4", 10.0),
    ]


def _of(*rows: tuple[PodKind, float, float | None]) -> Workload:
    return Workload(
        tuple(Arrival(f"p{n}", "x", kind, at, lasts) for n, (kind, at, lasts) in enumerate(rows))
    )


def _placed(tmp_path: Path, *rows: tuple[PodKind, float, float | None]) -> Outcome:
    pools = fleet(tmp_path, f"name: a, nodes: 1, cpu: 4, {T4}")
    return place(pools, _of(*rows), Rules.of("binpack"))


def test_pools_and_cards_are_shown_as_they_were_when_the_fleet_was_fullest(tmp_path: Path) -> None:
    small, large = pod(card(memory=3000, cores=10)), pod(card(memory=15_000, cores=90))
    outcome = _placed(tmp_path, (small, 0, 50), (large, 10, 50), (small, 100, 5), (small, 200, 5))
    assert outcome.fullest == Fullest(10.0, 2, 2)
    assert outcome.taken.memory == sum(each.memory_used for each in outcome.cards) == 18_000
    assert outcome.taken.pods == 2
    assert [each.ended for each in outcome.placements] == [50.0, 60.0, 105.0, None]


def test_where_nothing_ended_after_it_the_end_is_the_fullest(tmp_path: Path) -> None:
    small = pod(card(memory=3000, cores=10))
    outcome = _placed(tmp_path, (small, 0, 5), (small, 10, None), (small, 20, 5))
    assert outcome.fullest is None
    assert outcome.taken.pods == 2


def test_without_cards_the_nodes_say_what_is_fullest(tmp_path: Path) -> None:
    one, two = pod(node_share(1000)), pod(node_share(3000))
    outcome = _placed(tmp_path, (one, 0, 50), (two, 10, 5), (one, 100, 5))
    assert outcome.fullest == Fullest(10.0, 2, 2)
    assert outcome.taken.cpu == 4000


def test_who_still_waits_at_the_end_is_refused_for_what_it_lacks_then(tmp_path: Path) -> None:
    never = pod(card(memory=20_000, cores=10))
    outcome = _placed(tmp_path, (pod(card(memory=9000)), 0, 5), (never, 1, 5))
    assert [each.reasons for each in outcome.refusals] == [{"CardInsufficientMemory": 1}]
    assert outcome.fullest == Fullest(1.0, 2, 1)


def test_what_is_asked_for_is_what_is_taken_and_what_those_want_who_wait(tmp_path: Path) -> None:
    """A percentage of a card is one of the card that a pod gets, or of the mean of those it may."""
    pools = fleet(
        tmp_path,
        "name: small, nodes: 1, nvidia: {cards: 1, model: T4}",
        "name: large, nodes: 1, nvidia: {cards: 3, model: L40S}",
    )
    large = pod(card(percent=60), annotations={"nvidia.com/use-gputype": "L40S"})
    kinds = [large] * 4 + [pod(card(percent=60))] * 2
    arrivals = (
        Arrival(f"p{n}", "test", kind, 10.0 * n, None if n else 55.0)
        for n, kind in enumerate(kinds)
    )
    told = place(pools, Workload(tuple(arrivals)), Rules.of("binpack")).timeline
    t4, l40s = 15360 * 60 // 100, 46068 * 60 // 100
    mean = (t4 + 3 * l40s) // 4
    assert [(each.taken.memory, each.asked.memory) for each in told] == [
        (l40s, l40s),
        (2 * l40s, 2 * l40s),
        (3 * l40s, 3 * l40s),
        (3 * l40s, 4 * l40s),
        (3 * l40s + t4, 4 * l40s + t4),
        (3 * l40s + t4, 4 * l40s + t4 + mean),
        # The first has ended; the fourth has its place.
        (3 * l40s + t4, 3 * l40s + t4 + mean),
    ]
