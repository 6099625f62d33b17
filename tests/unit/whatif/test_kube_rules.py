"""The placer refuses and prefers as kube-scheduler does."""

from pathlib import Path

import pytest

from hami_mock.whatif.demand import (
    CPU,
    FIELD,
    Container,
    Match,
    PodKind,
    Spread,
    Toleration,
    totals,
)
from tests.unit.whatif.fleets import (
    COUNT,
    MEMORY,
    card,
    fleet,
    node_share,
    placed,
    pod,
    reasons,
    where,
)

_T4 = "nvidia: {cards: 2, model: T4}"
_NONE = "nvidia: {cards: 0}"


def test_it_counts_per_node_and_sees_no_cards(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, {_T4}")
    # No card has so much left for the second, but the node has.
    kinds = [pod(card(memory=9000))] * 3
    assert where(placed(pools, *kinds, scheduler="kube")) == {
        "p0": "a-0", "p1": "a-0", "p2": "a-0",
    }  # fmt: skip
    assert where(placed(pools, *kinds)) == {"p0": "a-0/0", "p1": "a-0/1"}


def test_its_totals_are_the_nodes(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 2, {_T4}")
    outcome = placed(pools, pod(node_share(1000, **{COUNT: 2, MEMORY: 4000})), scheduler="kube")
    (pool,) = outcome.pools
    assert (pool.there.slots, pool.taken.slots) == (40, 2)
    assert (pool.there.memory, pool.taken.memory) == (4 * 15360, 4000)
    assert (pool.nodes_touched, pool.taken.cpu, pool.taken.pods) == (1, 1000, 1)
    assert outcome.cards == ()


def test_what_it_counts_over_time_is_what_nodes_have(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, {_T4}")
    # Of what a node has it takes no memory, for percentages are another resource.
    kinds = [pod(card(percent=50)), pod(card(memory=4000, cores=30)), pod(card(100, cores=7))]
    outcome = placed(pools, *kinds, scheduler="kube")
    assert outcome.timeline[-1].taken == outcome.taken
    assert (outcome.taken.slots, outcome.taken.memory, outcome.taken.cores) == (2, 4000, 30)
    asked = outcome.timeline[-1].asked
    assert (asked.slots, asked.memory, asked.cores) == (102, 4000, 37)


def test_a_term_without_conditions_selects_no_node(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, {_NONE}")
    other = (Match("hami-mock.io/pool", "In", ("a",)),)
    outcome = placed(pools, pod(node_share(1), terms=((),)), pod(node_share(1), terms=((), other)))
    assert where(outcome) == {"p1": "a-0"}


@pytest.mark.parametrize(("policy", "node"), [("binpack", "a-0"), ("spread", "b-0")])
def test_it_prefers_the_fullest_or_the_emptiest(tmp_path: Path, policy: str, node: str) -> None:
    pools = fleet(
        tmp_path, f"name: a, nodes: 1, cpu: 4, {_NONE}", f"name: b, nodes: 1, cpu: 8, {_NONE}"
    )
    outcome = placed(pools, pod(node_share(1000, 1)), policy=policy, scheduler="kube")
    assert where(outcome) == {"p0": node}


def test_taints_keep_pods_away(tmp_path: Path) -> None:
    text = f'name: a, nodes: 2, taints: ["gpu=yes:NoSchedule"], {_T4}'
    pools = fleet(tmp_path, text)
    bears = [Toleration("gpu", "yes"), Toleration("gpu"), Toleration()]
    wrong = [Toleration("gpu", "no"), Toleration("gpu", "yes", "NoExecute"), Toleration("g")]
    kinds = [pod(tolerations=(each,)) for each in (*bears, *wrong)]
    outcome = placed(pools, *kinds)
    assert [each.number for each in outcome.placements] == [0, 1, 2]
    assert reasons(outcome) == [{"node(s) had untolerated taint(s)": 2}] * 3


def test_selectors_and_affinity_choose_nodes(tmp_path: Path) -> None:
    pools = fleet(
        tmp_path,
        f"name: a, nodes: 2, zone: [x, y], labels: {{size: '3'}}, {_NONE}",
        f"name: b, nodes: 1, {_NONE}",
    )
    zone = "topology.kubernetes.io/zone"
    kinds = [
        pod(node_share(1), selector={zone: "y"}),
        pod(node_share(1), terms=((Match("size", "Lt", ("3",)),), (Match(zone, "DoesNotExist"),))),
        pod(node_share(1), terms=((Match(FIELD, "In", ("a-1",)),),)),
        pod(node_share(1), terms=((Match("size", "Gt", ("2",)), Match(zone, "NotIn", ("x",))),)),
        pod(node_share(1), node_name="b-0"),
        pod(node_share(1), selector={zone: "z"}),
    ]
    outcome = placed(pools, *kinds)
    assert list(where(outcome).values()) == ["a-1", "b-0", "a-1", "a-1", "b-0"]
    assert reasons(outcome) == [{"node(s) didn't match Pod's node affinity/selector": 3}]


def test_pods_are_spread_as_evenly_as_they_want(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 4, zone: [x, y], max-pods: 2, {_NONE}")
    spread = Spread("topology.kubernetes.io/zone", 1, (Match("app", "In", ("web",)),))
    kind = pod(node_share(1), labels={"app": "web"}, spreads=(spread,))
    other = pod(node_share(1), selector={"topology.kubernetes.io/zone": "x"})
    outcome = placed(pools, other, other, other, kind, kind, kind, kind)
    zones = [int(each.node[-1]) % 2 for each in outcome.placements[3:]]
    assert sorted(zones) == [0, 1, 1]
    # One node has room for another pod, but there would be too many in its zone.
    full = "node(s) didn't match pod topology spread constraints"
    assert reasons(outcome) == [{"Too many pods": 3, full: 1}]


def test_too_many_pods(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, max-pods: 1, {_NONE}")
    outcome = placed(pools, pod(node_share(1)), pod(node_share(1)))
    assert reasons(outcome) == [{"Too many pods": 1}]


def test_what_no_node_has_is_lacking(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 2, {_T4}")
    outcome = placed(pools, pod(node_share(**{"example.com/tpu": 1})))
    assert reasons(outcome) == [{"Insufficient example.com/tpu": 2}]


def test_the_more_important_come_first(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, max-pods: 1, {_NONE}")
    outcome = placed(pools, pod(node_share(1)), pod(node_share(1), priority=10))
    assert where(outcome) == {"p1": "a-0"}


def test_a_daemon_is_on_each_node_that_takes_it(tmp_path: Path) -> None:
    pools = fleet(
        tmp_path,
        f'name: a, nodes: 2, taints: ["gpu=yes:NoSchedule"], {_NONE}',
        f"name: b, nodes: 2, cpu: 1, {_NONE}",
    )
    big = pod(node_share(2000), on_each_node=True)
    outcome = placed(pools, pod(node_share(1), on_each_node=True), big)
    assert where(outcome) == {"p0-b-0": "b-0", "p0-b-1": "b-1"}
    assert reasons(outcome) == [{"Insufficient cpu": 1}] * 2


def test_what_counts_for_a_pod_is_what_it_needs_at_once() -> None:
    kind = PodKind(
        (
            Container({CPU: 100}),
            Container({CPU: 50}),
            Container({CPU: 400}, is_init=True),
            Container({CPU: 30}, is_init=True, is_sidecar=True),
            Container({CPU: 10}, is_init=True),
        ),
        overhead={CPU: 5},
    )
    assert totals(kind) == {CPU: 405}
    assert totals(PodKind(kind.containers[:2] + kind.containers[3:])) == {CPU: 180}
