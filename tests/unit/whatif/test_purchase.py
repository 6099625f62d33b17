from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.settings.pools import Pool
from hami_mock.whatif.outcome import Outcome
from hami_mock.whatif.purchase import Market, Point, cheapest, enlarged
from tests.unit.whatif.outcomes import PLACEMENTS, outcome, pools, refusal

Fitting = Callable[[int], int]


def place(pods: int, fitting: Fitting) -> Callable[[Sequence[Pool]], Outcome]:
    """Place as many pods as a pool a100 of so many nodes can take."""

    def placed(some: Sequence[Pool]) -> Outcome:
        fit = min(pods, fitting(next(each.nodes for each in some if each.name == "a100")))
        rest = [refusal(n, {"CardInsufficientMemory": 1}) for n in range(pods - fit)]
        return outcome([PLACEMENTS[0]] * fit, rest)

    return placed


def market(pods: int, fitting: Fitting, nodes: int = 3) -> tuple[Market, list[str]]:
    told: list[str] = []
    some = pools(a100=nodes, cpu=2)
    by = place(pods, fitting)
    return Market(some, by(some), by, told.append), told


@given(st.integers(0, 300), st.integers(1, 9), st.integers(0, 20))
def test_the_smallest_number_of_nodes_is_found(pods: int, each: int, nodes: int) -> None:
    found = market(pods, lambda n: n * each, nodes)[0].purchase("a100", pods)
    assert found.best.bought == max(0, -(-pods // each) - nodes)
    assert found.is_enough
    assert found.best.fitted == pods


def test_it_takes_few_tries_and_says_each() -> None:
    some, told = market(1000, lambda n: n * 2, 10)
    found = some.purchase("a100", 1000)
    assert found.best.bought == 490
    assert len(told) < 30
    assert told[0] == "trying 1 more nodes of a100"
    assert len(told) == len({*told})


def test_fewer_pods_may_be_enough() -> None:
    found = market(100, lambda n: n * 10)[0].purchase("a100", 50)
    assert found.best == Point(2, 50)
    assert found.gained == 20


def test_what_a_pool_can_never_do_is_not_bought_for() -> None:
    # Ten pods fit on no node of the kind.
    found = market(60, lambda n: min(50, n * 10))[0].purchase("a100", 60)
    assert found.best == Point(2, 50)
    assert not found.is_enough


def test_a_pool_that_helps_nobody_isn_t_bought() -> None:
    found = market(60, lambda n: 30)[0].purchase("a100", 60)
    assert found.best == Point(0, 30)
    assert found.gained == 0


def test_where_all_fit_nothing_is_tried() -> None:
    some, told = market(6, lambda n: n * 2)
    assert some.purchase("a100", 6).best == Point(0, 6)
    assert told == []


def test_the_curve_goes_evenly_from_nothing_to_what_is_needed() -> None:
    curve = market(320, lambda n: n * 4, 0)[0].purchase("a100", 320).points
    assert curve[0] == Point(0, 0)
    assert curve[-1] == Point(80, 320)
    assert {point.bought for point in curve} >= {10, 20, 30, 40, 50, 60, 70}
    assert list(curve) == sorted(curve)
    assert all(point.fitted == 4 * point.bought for point in curve)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=40))
def test_the_search_ends_and_what_it_says_was_tried_also_if_more_nodes_take_fewer_pods(
    fitting: list[int],
) -> None:
    some, _ = market(40, lambda n: fitting[n % len(fitting)], 0)
    found = some.purchase("a100", 40)
    assert found.best.fitted == min(40, fitting[found.best.bought % len(fitting)])
    assert found.best in found.points


def test_the_purchase_that_helps_most_pods_with_the_fewest_nodes_is_the_best() -> None:
    small = market(60, lambda n: n * 10)[0].purchase("a100", 60)
    large = market(60, lambda n: n * 15)[0].purchase("a100", 60)
    useless = market(60, lambda n: 30)[0].purchase("a100", 60)
    assert cheapest([useless, small, large]) is large
    assert cheapest([useless]) is None


def test_pools_grow_and_shrink_by_name() -> None:
    found = enlarged(pools(a100=3, cpu=2), {"a100": 2, "cpu": -1})
    assert [(pool.name, pool.nodes) for pool in found] == [("a100", 5), ("cpu", 1)]


@pytest.mark.parametrize("nodes", [99_999, 100_000])
def test_no_pool_grows_beyond_what_a_fleet_may_have(nodes: int) -> None:
    found = market(10, lambda n: 0, nodes)[0].purchase("a100", 10)
    assert found.best.bought == 0
