"""Any small fleet and workload: nothing is placed twice, nothing is too full, refusals are real."""

import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hami_mock.settings.pools import Pool
from hami_mock.whatif.cluster_model import cluster_of
from hami_mock.whatif.demand import CPU, RAM, Arrival, Container, PodKind, Workload
from hami_mock.whatif.fragmentation import Takers, wishes_of
from hami_mock.whatif.outcome import Outcome
from hami_mock.whatif.placer import place
from hami_mock.whatif.rules import Rules
from tests.unit.whatif.fleets import CORES, COUNT, GIB, MEMORY, PERCENT, fleet
from tests.unit.whatif.slow_checker import SlowFleet, can_have, share

_POOLS = st.tuples(
    st.integers(1, 3),
    st.sampled_from([2, 8]),
    st.sampled_from([4, 110]),
    st.integers(0, 4),
    st.sampled_from(["T4", "A100-PCIE-40GB"]),
)
_ASKS = st.fixed_dictionaries(
    {CPU: st.sampled_from([0, 500, 2000]), RAM: st.sampled_from([0, GIB, 6 * GIB])},
    optional={
        COUNT: st.integers(1, 4),
        MEMORY: st.sampled_from([1, 3000, 7000, 15_000, 30_000]),
        PERCENT: st.sampled_from([1, 33, 50, 100]),
        CORES: st.sampled_from([0, 1, 30, 50, 100]),
    },
)
_SOME = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@cache
def _fleet(pools: tuple[tuple[int, int, int, int, str], ...]) -> tuple[Pool, ...]:
    lines = [
        f"name: n{number}, nodes: {nodes}, cpu: {cpu}, memory: 16Gi, max-pods: {most}, "
        f"nvidia: {{cards: {cards}{f', model: {model}' if cards else ''}}}"
        for number, (nodes, cpu, most, cards, model) in enumerate(pools)
    ]
    with tempfile.TemporaryDirectory() as folder:
        found: tuple[Pool, ...] = fleet(Path(folder), *lines)
        return found


@st.composite
def _cases(draw: st.DrawFn) -> tuple[tuple[Pool, ...], Workload]:
    pools = _fleet(tuple(draw(st.lists(_POOLS, min_size=1, max_size=3))))
    asks = draw(st.lists(_ASKS, min_size=1, max_size=5))
    kinds = [PodKind((Container(each),)) for each in asks]
    drawn = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=30))
    return pools, Workload(tuple(Arrival(f"p{n}", "x", kind) for n, kind in enumerate(drawn)))


def _placed_one_by_one(
    outcome: Outcome, workload: Workload, pools: tuple[Pool, ...], sign: int = 0
) -> SlowFleet:
    """Put all pods where they are said to be; each must have the fullest node, or the emptiest."""
    slow = SlowFleet(pools)
    for placement in outcome.placements:
        kind = workload.arrivals[placement.number].kind
        if sign and placement.cards:
            scores = {name: sign * slow.nodes[name].fullness for name in slow.takes(kind)}
            assert scores[placement.node] >= max(scores.values()) - 1e-5
        slow.put(placement, kind)
    return slow


@_SOME
@given(_cases(), st.sampled_from(["binpack", "spread", "topology", "hami"]))
def test_everything_has_room_and_refusals_are_real(
    case: tuple[tuple[Pool, ...], Workload], policy: str
) -> None:
    pools, workload = case
    outcome = place(pools, workload, Rules.of(policy))
    numbers = [each.number for each in outcome.placements]
    numbers += [each.number for each in outcome.refusals]
    assert sorted(numbers) == list(range(len(workload.arrivals)))
    slow = _placed_one_by_one(outcome, workload, pools)
    for refusal in outcome.refusals:
        assert slow.takes(workload.arrivals[refusal.number].kind) == []
        assert refusal.reasons
    taken = sum(share.memory for each in outcome.placements for share in each.cards)
    assert outcome.taken.memory == taken == sum(card.memory_used for card in outcome.cards)
    assert outcome.timeline[-1].taken == outcome.taken
    for moment in outcome.timeline:
        assert all(asked >= taken for asked, taken in zip(moment.asked, moment.taken, strict=True))


@_SOME
@given(_cases(), st.sampled_from([("binpack", 1), ("spread", -1), ("hami", 1)]))
def test_the_fullest_node_comes_first_or_the_emptiest(
    case: tuple[tuple[Pool, ...], Workload], policy: tuple[str, int]
) -> None:
    pools, workload = case
    outcome = place(pools, workload, Rules.of(policy[0]))
    _placed_one_by_one(outcome, workload, pools, policy[1])


@_SOME
@given(_cases(), st.sampled_from(["binpack", "spread"]))
def test_what_is_left_of_a_card_is_worth_something_to_those_who_could_have_it(
    case: tuple[tuple[Pool, ...], Workload], policy: str
) -> None:
    pools, workload = case
    outcome = place(pools, workload, Rules.of(policy))
    slow = _placed_one_by_one(outcome, workload, pools)
    for arrival in workload.arrivals:
        wishes = wishes_of(Workload((arrival,)), cluster_of(pools).vendors)
        for card in outcome.cards if wishes else ():
            asks = arrival.kind.containers[0].asks
            left = slow.nodes[card.node].cards[card.card]
            lost = Takers(wishes).lost(card)
            assert lost == (
                None if share(left, asks)[0] > card.memory else not can_have(left, asks)
            )


@_SOME
@given(_cases(), st.lists(st.tuples(st.integers(0, 50), st.integers(1, 40)), min_size=30))
def test_pods_that_end_make_room(
    case: tuple[tuple[Pool, ...], Workload], times: list[tuple[int, int]]
) -> None:
    pools, workload = case
    arrivals = zip(workload.arrivals, times, strict=False)
    timed = Workload(
        tuple(each._replace(time=float(at), lasts=float(lasts)) for each, (at, lasts) in arrivals)
    )
    outcome = place(pools, timed, Rules.of("binpack"))
    slow = SlowFleet(pools)
    empty = SlowFleet(pools)
    events = []
    for order, placement in enumerate(outcome.placements):
        arrival = timed.arrivals[placement.number]
        begin = placement.arrived + placement.waited
        assert placement.waited >= 0
        # What ends makes room for what begins at the same time.
        events.append((begin, 1, order, placement, arrival.kind))
        events.append((begin + (arrival.lasts or 0), 0, order, placement, arrival.kind))
    for _, what, _, placement, kind in sorted(events, key=lambda each: each[:3]):
        slow.put(placement, kind) if what == 1 else slow.take_away(placement, kind)
    for refusal in outcome.refusals:
        # Everybody ends, so only who fits on no empty node has to wait for ever.
        assert empty.takes(timed.arrivals[refusal.number].kind) == []


_NVIDIA = st.fixed_dictionaries(
    {COUNT: st.integers(1, 3)},
    optional={
        MEMORY: st.sampled_from([100, 4000, 4000, 9000]),
        CORES: st.sampled_from([0, 10, 50, 100]),
    },
)
_OTHERS = st.sampled_from(
    [
        {"hygon.com/dcunum": 2, "hygon.com/dcumem": 20_000},
        {"enflame.com/drs-gcu": 4},
        {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 30_000},
        {},
    ]
)
_CONTAINERS = st.builds(
    lambda nvidia, others, is_init, is_sidecar: Container(
        {**nvidia, **others}, is_init, is_init and is_sidecar
    ),
    _NVIDIA,
    _OTHERS,
    st.booleans(),
    st.booleans(),
)
_PODS = st.builds(
    lambda first, others: PodKind((first._replace(is_init=False, is_sidecar=False), *others)),
    _CONTAINERS,
    st.lists(_CONTAINERS, max_size=2),
)


@cache
def _many_vendors() -> tuple[Pool, ...]:
    t4, a100 = (
        "nvidia: {cards: 3, model: T4}",
        "nvidia: {cards: 2, model: A100-SXM4-40GB, mode: mig}",
    )
    others = "hygon: {cards: 2}, enflame: {cards: 1, split: 6}, kunlun: {cards: 1}"
    with tempfile.TemporaryDirectory() as folder:
        found: tuple[Pool, ...] = fleet(
            Path(folder),
            f"name: a, nodes: 2, {t4}, {others}",
            f"name: b, nodes: 2, {a100}, {others}",
            vendors="nvidia, hygon, enflame, kunlun",
        )
        return found


@_SOME
@given(
    st.lists(st.tuples(_PODS, st.integers(0, 9), st.integers(1, 9)), min_size=5, max_size=30),
    st.sampled_from(["binpack", "spread", "topology", "hami"]),
)
def test_no_card_is_ever_over_its_memory_cores_slots_or_slices(
    pods: list[tuple[PodKind, int, int]], policy: str
) -> None:
    arrivals = [Arrival(f"p{n}", "x", kind, at, lasts) for n, (kind, at, lasts) in enumerate(pods)]
    outcome = place(_many_vendors(), Workload(tuple(arrivals)), Rules.of(policy))
    whole = {
        (each.node, each.vendor, each.card): (each.memory, each.cores, each.slots, each.mig)
        for each in outcome.cards
    }
    left = {card: [*amounts] for card, amounts in whole.items()}
    events = [(each.arrived + each.waited, 1, each) for each in outcome.placements]
    events += [(each.ended, 0, each) for each in outcome.placements if each.ended is not None]
    for _, is_begin, placement in sorted(events, key=lambda event: event[:2]):
        for own in placement.cards:
            card = placement.node, own.vendor, own.card
            amounts = (own.memory, own.cores, own.slots, own.mig)
            for row, amount in enumerate(amounts):
                left[card][row] -= amount if is_begin else -amount
            assert min(left[card]) >= 0
            assert all(a <= b for a, b in zip(left[card], whole[card], strict=True))


@pytest.mark.parametrize("scheduler", ["hami", "kube"])
def test_a_pod_that_fits_exactly_fits(tmp_path: Path, scheduler: str) -> None:
    pools = fleet(tmp_path, "name: a, nodes: 1, cpu: 1, memory: 1Gi, nvidia: {cards: 1, model: T4}")
    kind = PodKind((Container({CPU: 1000, RAM: GIB, COUNT: 1, MEMORY: 15360, CORES: 100}),))
    one = Workload((Arrival("p", "x", kind),))
    assert len(place(pools, one, Rules.of("binpack", scheduler)).placements) == 1
