from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.whatif.cluster_model import cluster_of
from hami_mock.whatif.demand import Arrival, Container, PodKind, Workload
from hami_mock.whatif.fragmentation import (
    PARTS,
    Left,
    Takers,
    Wish,
    heat,
    left_by_pool,
    over_time,
    step_names,
    wishes_of,
)
from hami_mock.whatif.outcome import CardUse
from hami_mock.whatif.placer import place
from hami_mock.whatif.requests import Request
from hami_mock.whatif.rules import Rules
from tests.makers import BY_WORD
from tests.unit.whatif.fleets import arrivals, card, fleet, pod
from tests.unit.whatif.outcomes import CARD, GPU, LARGE, PLACEMENTS, SMALL, WISHES, outcome, used

CARDS = st.builds(used, st.integers(0, 81920), st.integers(0, 100), st.integers(0, 10))


def left(*cards: CardUse, wishes: tuple[Wish, ...] = WISHES) -> Left:
    return left_by_pool(cards, wishes)["a100"]


def fits(wish: Wish, card: CardUse) -> bool:
    return Takers([wish]).lost(card) == 0


def test_an_empty_card_is_free_and_not_fragmented() -> None:
    found = left(CARD)
    assert [*found.free] == [81920, 100, 10, 0]
    assert found.share("memory") == found.share("cores") == 0


def test_free_memory_counts_by_the_share_of_the_pods_that_cannot_have_it() -> None:
    # 40 GiB are free: three of four pods want 20 of them, the fourth wants 60.
    found = left(used(40960, 25))
    assert [*found.fragmented] == [40960 / 4, 75 / 4, 9 / 4, 0]
    assert not any(found.useless)
    assert found.share("memory") == 0.25


@pytest.mark.parametrize(
    "card",
    [used(20480, 100), used(20480, 25, 10), used(71680, 25)],
    ids=["cores", "slots", "memory"],
)
def test_what_nobody_can_have_is_useless_whatever_it_is_that_is_used_up(card: CardUse) -> None:
    found = left(card)
    assert found.useless == found.free
    assert found.share("memory") == 1


def test_cards_of_a_kind_that_no_pod_wants_are_neither_fragmented_nor_useless() -> None:
    found = left(used(card=CARD._replace(vendor="Ascend910B")))
    assert found.share("memory") is None
    assert not any(found.useless)


def test_a_full_card_has_no_share() -> None:
    assert left(used(81920, 100, 10)).share("memory") is None


def test_pools_are_apart_and_their_cards_together() -> None:
    cards = [CARD, CARD._replace(card=1), CARD._replace(pool="t4", node="t4-0", memory=15360)]
    found = left_by_pool(cards, WISHES)
    assert {pool: each.free[0] for pool, each in found.items()} == {"a100": 163840, "t4": 15360}
    # No pod that wants 20 GiB fits on a card of 15, even if that is empty.
    assert found["t4"].share("memory") is None


@given(st.lists(CARDS, min_size=1, max_size=8))
def test_no_share_is_below_nothing_or_above_all(cards: list[CardUse]) -> None:
    found = left(*cards)
    for n, part in enumerate(PARTS):
        assert found.useless[n] <= found.fragmented[n] + 1e-6
        assert found.fragmented[n] <= found.wanted[n] + 1e-6
        assert found.wanted[n] <= found.free[n]
        share = found.share(part)
        assert share is None or 0 <= share <= 1 + 1e-9


@given(CARDS, st.sampled_from([SMALL, LARGE]))
def test_what_fits_on_a_card_fits_on_an_emptier_one(card: CardUse, request: Request) -> None:
    if fits(Wish(request), card):
        assert fits(Wish(request), used(card.memory_used // 2, card.cores_used // 2, 0))


def test_all_cores_want_a_card_that_nobody_uses() -> None:
    whole = Wish(Request(GPU, 1, memory=1024, cores=100))
    assert fits(whole, CARD)
    assert not fits(whole, used(0, 0, 1))


@pytest.mark.parametrize(("word", "is_wanted"), [("H100,L40S", False), ("A100-SXM4", True)])
def test_a_type_that_the_pod_does_not_want_is_none_of_its_cards(word: str, is_wanted: bool) -> None:
    wish = Wish(SMALL, (("nvidia.com/use-gputype", word),))
    assert fits(wish, CARD) is is_wanted
    assert fits(wish, CARD._replace(type="NVIDIA L40S")) is not is_wanted


def test_where_all_cores_are_taken_nobody_fits_who_asks_for_none() -> None:
    wish = Wish(Request(GPU, 1, memory=1024, cores=0))
    assert fits(wish, used(1024, 99))
    assert not fits(wish, used(1024, 100))


@pytest.mark.parametrize("mode", ["hami-core", "mig"])
def test_types_and_modes_are_those_of_the_placer(tmp_path: Path, mode: str) -> None:
    """A product's name isn't its model's; who fits on the empty cards wants them."""
    pools = fleet(
        tmp_path,
        "name: a, nodes: 1, nvidia: {cards: 1, model: H100-SXM5-80GB, mode: mig}",
        "name: b, nodes: 1, nvidia: {cards: 1, model: H100-SXM5-80GB}",
    )
    said = {"nvidia.com/use-gputype": "H100 80GB", "nvidia.com/vgpu-mode": mode}
    workload = arrivals(pod(card(memory=4000), annotations=said))
    outcome = place(pools, workload, Rules())
    (placement,) = outcome.placements
    found = left_by_pool(outcome.cards, wishes_of(workload, cluster_of(pools).vendors))
    wanting = [pool for pool, one in found.items() if one.share("memory") is not None]
    assert wanting == [placement.pool] == [{"mig": "a", "hami-core": "b"}[mode]]


def test_an_instance_takes_as_much_of_the_slices_as_of_the_memory() -> None:
    card = CARD._replace(mig=7)
    half = Wish(Request(GPU, 1, memory=40960, cores=0))
    assert fits(half, card._replace(mig_used=4))
    assert not fits(half, card._replace(mig_used=5))


def test_pods_that_want_the_same_are_one_wish() -> None:
    asks = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 20480, "nvidia.com/gpucores": 25}
    kinds = [PodKind((Container(asks), Container({"cpu": 100}))) for _ in range(2)]
    types = PodKind((Container(asks),), annotations={"nvidia.com/use-gputype": "A100"})
    arrivals = tuple(Arrival(f"p{n}", "job/a", kind) for n, kind in enumerate([*kinds, types]))
    found = wishes_of(Workload(arrivals), list(BY_WORD.values()))
    assert [(wish.pods, wish.request.memory, wish.selector) for wish in found] == [
        (2, 20480, ()),
        (1, 20480, (("nvidia.com/use-gputype", "A100"),)),
    ]


def test_the_heat_map_counts_each_card_where_it_is() -> None:
    cells = heat([CARD, used(81920, 0), used(0, 100), used(81920 // 2, 25), used(81900, 100)])
    assert sum(map(sum, cells)) == 5
    assert cells[10][10] == cells[0][10] == cells[10][0] == cells[5][8] == 1
    # 20 MiB of 80 GiB are as good as nothing.
    assert cells[0][0] == 1
    assert len(step_names()) == len(cells)


def test_cards_in_instances_have_no_cores_of_their_own_and_are_not_on_the_map() -> None:
    assert sum(map(sum, heat([CARD._replace(mig=7)]))) == 0


def test_over_time_the_end_is_the_end() -> None:
    # Two cards; four pods fill the first one, a quarter at a time.
    found = over_time(outcome(), WISHES)
    cards = [used(20480 * n, 25 * n, n) for n in range(1, 5)]
    shares = [left(card, CARD).share("memory") for card in cards]
    assert [each.arrived for each in found] == [1, 2, 3, 4]
    assert [each.share for each in found] == pytest.approx(shares)


def test_over_time_pods_end_too() -> None:
    first, second, *_ = PLACEMENTS
    some = (
        first._replace(arrived=1.0, ended=20.0),
        # It begins when the first ends, and has waited for it.
        second._replace(arrived=5.0, waited=15.0, after=7, ended=30.0),
        # Nobody ever saw it.
        first._replace(arrived=2.0, ended=2.0),
    )
    found = over_time(outcome(some), WISHES)
    filled, empty = left(used(20480, 25), CARD).share("memory"), 0.0
    assert found == [
        (1, filled, 1.0),
        (1, empty, 20.0),
        (7, filled, 20.0),
        (7, empty, 30.0),
    ]


def test_over_time_instances_count(tmp_path: Path) -> None:
    text = "name: a, nodes: 1, nvidia: {cards: 1, model: A100-SXM4-40GB, mode: mig}"
    pools = fleet(tmp_path, text)
    workload = arrivals(*[pod(card(memory=n)) for n in (4000, 19_000, 19_000)])
    wishes = wishes_of(workload, cluster_of(pools).vendors)
    found = place(pools, workload, Rules())
    (last,) = left_by_pool(found.cards, wishes).values()
    assert over_time(found, wishes)[-1].share == last.share("memory") == pytest.approx(2 / 3)


def test_a_scheduler_that_sees_no_cards_knows_no_fragmentation() -> None:
    assert over_time(replace(outcome(), cards=()), WISHES) == []
