"""The placer refuses and prefers as HAMi's scheduler does."""

from pathlib import Path

import pytest

from hami_mock.whatif.demand import Container
from hami_mock.whatif.rules import Rules
from tests.unit.whatif.fleets import (
    CORES,
    COUNT,
    MEMORY,
    PERCENT,
    arrivals,
    card,
    fleet,
    node_share,
    placed,
    pod,
    reasons,
    where,
)

T4 = "nvidia: {cards: 2, model: T4}"  # 15360 MiB each
A100 = "nvidia: {cards: 4, model: A100-SXM4-80GB}"


def test_binpack_fills_the_first_card_of_the_first_node(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 2, {T4}")
    outcome = placed(pools, *[pod(card(memory=5000, cores=10))] * 4)
    assert where(outcome) == {"p0": "a-0/0", "p1": "a-0/0", "p2": "a-0/0", "p3": "a-0/1"}


def test_spread_takes_the_emptiest_card_of_the_emptiest_node(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 2, {T4}")
    outcome = placed(pools, *[pod(card(memory=5000, cores=10))] * 4, policy="spread")
    assert where(outcome) == {"p0": "a-0/0", "p1": "a-1/0", "p2": "a-0/1", "p3": "a-1/1"}


def test_hami_itself_fills_nodes_and_spreads_over_their_cards(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 2, {T4}")
    outcome = placed(pools, *[pod(card(memory=5000, cores=10))] * 3, policy="hami")
    assert where(outcome) == {"p0": "a-0/0", "p1": "a-0/1", "p2": "a-0/0"}


def test_a_pod_can_say_which_policies_it_wants(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 2, {T4}")
    said = {"hami.io/node-scheduler-policy": "spread", "hami.io/gpu-scheduler-policy": "mutex"}
    kind = pod(card(memory=100, cores=1), annotations=said)
    outcome = placed(pools, *[kind] * 5)
    assert where(outcome) == {"p0": "a-0/0", "p1": "a-1/0", "p2": "a-0/1", "p3": "a-1/1"}
    assert reasons(outcome) == [{"ExclusiveDeviceAllocateConflict": 2}]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (card(memory=10_000, cores=1), card(memory=10_000, cores=1), "CardInsufficientMemory"),
        (card(memory=1000, cores=60), card(memory=1000, cores=60), "CardInsufficientCore"),
        # All cores are the whole card, and nobody may have a part of it.
        (card(memory=9, cores=0), card(memory=9, cores=100), "ExclusiveDeviceAllocateConflict"),
        (card(memory=1000, cores=100), card(memory=1000, cores=0), "CardComputeUnitsExhausted"),
        # Who says nothing has all memory, and all cores.
        (card(memory=1000, cores=1), card(), "CardInsufficientMemory"),
    ],
)  # fmt: skip
def test_a_card_is_refused(
    tmp_path: Path, first: Container, second: Container, reason: str
) -> None:
    pools = fleet(tmp_path, "name: a, nodes: 1, nvidia: {cards: 1, model: T4}")
    outcome = placed(pools, pod(first), pod(second))
    assert [each.pod for each in outcome.placements] == ["p0"]
    assert reasons(outcome) == [{reason: 1}]


@pytest.mark.parametrize("asks", [{MEMORY: 9000}, {CORES: 60}, {PERCENT: 60}], ids=str)
def test_who_asks_for_a_part_of_no_card_gets_one_from_the_webhook(
    asks: dict[str, int], tmp_path: Path
) -> None:
    pools = fleet(tmp_path, "name: a, nodes: 1, nvidia: {cards: 1, model: T4}")
    outcome = placed(pools, *[pod(Container(asks))] * 2)
    assert where(outcome) == {"p0": "a-0/0"}
    assert len(outcome.refusals) == 1
    alone = placed(pools, *[pod(Container(asks))] * 2, scheduler="kube")
    assert alone.taken.slots == 0


def test_other_vendors_cards_are_asked_for_by_the_pod_alone(tmp_path: Path) -> None:
    pools = fleet(tmp_path, "name: a, nodes: 1, hygon: {cards: 1}", vendors="hygon")
    outcome = placed(pools, pod(Container({"hygon.com/dcumem": 2000})))
    assert where(outcome) == {"p0": "a-0"}


def test_slots_run_out(tmp_path: Path) -> None:
    pools = fleet(tmp_path, "name: a, nodes: 1, nvidia: {cards: 1, model: T4, split: 3}")
    outcome = placed(pools, *[pod(card(memory=10, cores=1))] * 4)
    assert reasons(outcome) == [{"CardTimeSlicingExhausted": 1}]
    (pool,) = outcome.pools
    assert (pool.taken.slots, pool.there.slots, pool.stranded.memory_without_slots) == (3, 3, 15330)


def test_a_container_has_each_of_its_cards_once(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, {T4}")
    outcome = placed(pools, pod(card(3, memory=10)), pod(card(2, memory=10, cores=1)))
    assert where(outcome) == {"p1": "a-0/0/1"}
    assert reasons(outcome) == [{"NodeInsufficientDevice": 1}]


def test_too_few_cards_are_free(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, {T4}")
    outcome = placed(pools, pod(card(cores=50, memory=10_000)), pod(card(2, memory=10_000)))
    assert reasons(outcome) == [
        {"AllocatedCardsInsufficientRequest": 1, "CardInsufficientMemory": 1}
    ]


def test_a_percentage_is_of_each_card(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, {T4}")
    outcome = placed(pools, pod(card(2, percent=50, cores=50)))
    (placement,) = outcome.placements
    assert [(each.memory, each.cores) for each in placement.cards] == [(7680, 50), (7680, 50)]


def test_types_and_ids_are_chosen_by_annotations(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: t, nodes: 1, {T4}", f"name: a, nodes: 1, {A100}")
    on_a100 = pod(card(), annotations={"nvidia.com/use-gputype": "a100"})
    on_t4 = pod(card(), annotations={"nvidia.com/nouse-gputype": "A100"})
    nowhere = pod(card(), annotations={"nvidia.com/use-gpuuuid": "GPU-none"})
    outcome = placed(pools, on_a100, on_t4, nowhere)
    assert where(outcome) == {"p0": "a-0/0", "p1": "t-0/0"}
    assert reasons(outcome) == [{"CardUuidMismatch": 2}]


def test_a_card_is_found_by_its_id(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: t, nodes: 2, {T4}")
    from hami_mock.fleet.nodes import node_of

    uuid = node_of(pools[0], 1).cards[1].uuid
    outcome = placed(pools, pod(card(), annotations={"nvidia.com/use-gpuuuid": f"x, {uuid}"}))
    assert where(outcome) == {"p0": "t-1/1"}


def test_numa_bound_cards_are_on_one_numa_node(tmp_path: Path) -> None:
    pools = fleet(
        tmp_path, "name: a, nodes: 1, nvidia-groups: [{cards: 4, model: T4, numa: [0, 1, 0, 1]}]"
    )
    bound = pod(card(2, memory=10, cores=1), annotations={"nvidia.com/numa-bind": "true"})
    apart = pod(card(3, memory=10, cores=1), annotations={"nvidia.com/numa-bind": "true"})
    outcome = placed(pools, bound, apart)
    assert where(outcome) == {"p0": "a-0/0/2"}
    assert reasons(outcome) == [{"AllocatedCardsInsufficientRequest": 1, "NumaNotFit": 1}]


def test_topology_keeps_linked_cards_together(tmp_path: Path) -> None:
    group = "{cards: 4, model: A100-SXM4-80GB, nvlink: [[0, 3], [1, 2]]}"
    text = f"name: a, nodes: 1, nvidia-groups: [{group}]"
    pools = fleet(tmp_path, text, policy="topology")
    outcome = placed(pools, pod(card(2, cores=1, memory=10)), policy="topology")
    assert where(outcome) == {"p0": "a-0/0/3"}


def test_two_containers_share_what_a_card_has(tmp_path: Path) -> None:
    pools = fleet(tmp_path, "name: a, nodes: 1, nvidia: {cards: 1, model: T4}")
    half = card(memory=8000, cores=10)
    outcome = placed(pools, pod(half, half), pod(half, card(memory=7000, cores=10)))
    assert where(outcome) == {"p1": "a-0/0"}
    (placement,) = outcome.placements
    assert placement.cards[0][2:] == (15_000, 20, "", 2, 0)
    # After the pod that came second nothing is left.
    assert reasons(outcome) == [{"CardInsufficientMemory": 1}]


def test_init_containers_run_before_the_others(tmp_path: Path) -> None:
    pools = fleet(tmp_path, "name: a, nodes: 1, nvidia: {cards: 1, model: T4}")
    first = Container({COUNT: 1, MEMORY: 9000}, is_init=True)
    outcome = placed(pools, pod(first, card(memory=8000, cores=10)))
    (placement,) = outcome.placements
    assert placement.cards[0][2:] == (9000, 10, "", 1, 0)


def test_instances_have_the_places_that_the_scheduler_gives_them(tmp_path: Path) -> None:
    text = "name: a, nodes: 1, nvidia: {cards: 1, model: A100-SXM4-40GB, mode: mig}"
    pools = fleet(tmp_path, text)
    kinds = [pod(card(memory=n)) for n in (4000, 19_000, 19_000, 9000, 9000)]
    outcome = placed(pools, *kinds)
    profiles = [placement.cards[0].profile for placement in outcome.placements]
    assert profiles == ["1g.5gb", "3g.20gb", "2g.10gb"]
    assert reasons(outcome) == [{"CardInsufficientMemory": 1}, {"CardInsufficientMemory": 1}]
    (use,) = outcome.cards
    assert (use.mig, use.mig_used) == (7, 6)
    assert sum(share.mig for placement in outcome.placements for share in placement.cards) == 6


def test_a_pod_without_cards_needs_room_alone(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 2, cpu: 4, {T4}")
    outcome = placed(pools, *[pod(node_share(3000))] * 3)
    assert where(outcome) == {"p0": "a-0", "p1": "a-1"}
    assert reasons(outcome) == [{"Insufficient cpu": 2}]


def test_cards_on_nodes_without_cpu_are_stranded(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, cpu: 4, {T4}")
    outcome = placed(pools, pod(node_share(4000, **{COUNT: 1})))
    stranded = outcome.pools[0].stranded
    assert (stranded.cards_without_node, stranded.memory_without_node) == (1, 15360)


@pytest.mark.parametrize(
    "full", [node_share(4000), node_share(0, 16), node_share(100)], ids=["CPU", "memory", "pods"]
)
def test_what_is_free_on_a_full_node_is_stranded_also_on_cards_in_use(
    full: Container, tmp_path: Path
) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, cpu: 4, memory: 16Gi, max-pods: 3, {T4}")
    sharing = pod(card(memory=5000, cores=10))
    before = placed(pools, sharing, sharing).pools[0].stranded
    after = placed(pools, sharing, sharing, pod(full)).pools[0].stranded
    assert before.memory_without_node == 0
    assert (after.memory_without_node, after.cards_without_node) == (20_720, 1)


def test_the_same_again_is_the_same(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 3, {A100}", f"name: t, nodes: 3, {T4}")
    kinds = [pod(card(n % 3 + 1, memory=1000 * n, cores=10 * (n % 7))) for n in range(1, 12)] * 3
    first, second = (placed(pools, *kinds) for _ in range(2))
    assert first.placements == second.placements
    assert first.refusals == second.refusals


def test_rules_have_names() -> None:
    assert Rules.of("binpack").scheduler == "hami"
    with pytest.raises(ValueError, match="worst"):
        Rules.of("worst")
    assert len(arrivals(pod()).arrivals) == 1


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (card(memory=9, cores=60), card(memory=9, cores=60), "CardInsufficientCore"),
        (card(memory=9, cores=0), card(memory=9, cores=100), "ExclusiveDeviceAllocateConflict"),
        (card(memory=9, cores=100), card(memory=9, cores=0), "CardComputeUnitsExhausted"),
    ],
)
def test_containers_of_a_pod_refuse_each_other_cards(
    tmp_path: Path, first: Container, second: Container, reason: str
) -> None:
    pools = fleet(tmp_path, "name: a, nodes: 1, nvidia: {cards: 1, model: T4}")
    assert reasons(placed(pools, pod(first, second))) == [{reason: 1}]


def test_instances_that_fill_a_card_have_no_more_cores_than_it(tmp_path: Path) -> None:
    text = "name: a, nodes: 1, nvidia: {cards: 1, model: A100-SXM4-40GB, mode: mig}"
    outcome = placed(fleet(tmp_path, text), *[pod(card(memory=4000))] * 7)
    assert [share.profile for each in outcome.placements for share in each.cards] == ["1g.5gb"] * 7
    # Each has a seventh, rounded up.
    assert sum(share.cores for each in outcome.placements for share in each.cards) == 100
    (use,) = outcome.cards
    assert (use.cores_used, use.mig_used) == (100, 7)
