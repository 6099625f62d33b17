"""What the Node should say of units in its status, while cards fail under pods."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from hami_mock.kubelet.holder import Container, Holder
from hami_mock.node.amounts import amount
from hami_mock.node.fault import Fault, FaultKind
from hami_mock.node.fault_kinds import DEGRADED, LOST, UNHEALTHY
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from tests.unit.builders import laid_out, resource_named

GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
SMALL = {"nvidia_memory": 1000, "mlu_cards": 0, "iluvatar_cards": 0, "ascend_cards": 0}


@pytest.fixture
def state() -> NodeState:
    return NodeState(laid_out(None, units="status", **SMALL))


def units(state: NodeState, name: str = MEMORY) -> int:
    return amount(resource_named(state.node, name), state)


def break_card(state: NodeState, index: int, kind: FaultKind = UNHEALTHY) -> None:
    state.begin_faults(Fault(kind, frozenset({state.node.cards[index].uuid})))


def place(
    state: NodeState,
    name: str,
    asked: int,
    *cards: int,
    containers: Sequence[str] = ("main",),
    init: Mapping[str, int] | None = None,
    is_over: bool = False,
) -> None:
    """Let a pod run whose containers ask for so much each, with a slot of each of these cards."""
    first = init or {}
    requests = {each: {MEMORY: asked} for each in containers}
    requests |= {each: {MEMORY: count} for each, count in first.items()}
    state.pods["default", name] = Pod(
        "default", name, containers=tuple(containers), init_containers=tuple(first),
        requests=requests, phase="Succeeded" if is_over else "Running",
    )  # fmt: skip
    others = [*(state.holders.all or ())]
    slots = [f"{state.node.cards[index].uuid}-{len(others) + i}" for i, index in enumerate(cards)]
    holders = [Holder(_of(name, container), {GPU: slots}) for container in containers]
    state.holders.name([*others, *holders])


def _of(pod: str, container: str) -> Container:
    return "default", pod, container


def test_healthy_cards_have_all_of_theirs_whoever_uses_them(state: NodeState) -> None:
    assert (units(state), units(state, CORES)) == (2000, 200)
    place(state, "a", 700, 0)
    assert units(state) == 2000


@pytest.mark.parametrize("kind", [UNHEALTHY, LOST])
def test_a_card_that_is_no_use_takes_its_units_along(state: NodeState, kind: FaultKind) -> None:
    break_card(state, 0, kind)
    assert (units(state), units(state, CORES)) == (1000, 100)
    break_card(state, 1, kind)
    assert (units(state), units(state, CORES)) == (0, 0)


def test_a_degraded_card_is_of_use(state: NodeState) -> None:
    break_card(state, 0, DEGRADED)
    assert units(state) == 2000


@pytest.mark.parametrize("kind", [UNHEALTHY, LOST])
def test_what_pods_have_of_it_stays_so_that_the_other_card_is_whole(
    state: NodeState, kind: FaultKind
) -> None:
    place(state, "on-failed", 300, 0)
    place(state, "on-healthy", 400, 1)
    break_card(state, 0, kind)
    # The scheduler subtracts 700: 600 are left, which is what card 1 has left.
    assert units(state) == 1300
    state.pods.pop(("default", "on-failed"))
    assert units(state) == 1000


def test_a_pod_that_is_over_has_nothing_any_more(state: NodeState) -> None:
    place(state, "a", 3000, 0, is_over=True)
    state.holders.name([])
    break_card(state, 0)
    assert units(state) == 1000


def test_of_a_container_on_two_cards_each_has_a_part(state: NodeState) -> None:
    place(state, "a", 300, 0, 1)
    break_card(state, 0)
    assert units(state) == 1150
    break_card(state, 1)
    assert units(state) == 300


def test_containers_of_a_pod_count_one_by_one(state: NodeState) -> None:
    place(state, "a", 300, 0, containers=("one", "two"))
    break_card(state, 0)
    assert units(state) == 1600


def test_it_never_falls_below_what_pods_ask_for_in_all(state: NodeState) -> None:
    """A kubelet that restarts would throw out pods that no longer fit."""
    place(state, "a", 900, 1)
    place(state, "b", 900, 1)
    break_card(state, 0)
    assert units(state) == 1800
    # Nor for a pod of which nobody knows yet where it is.
    state.pods["default", "c"] = Pod(
        "default", "c", containers=("x",), requests={"x": {MEMORY: 100}}
    )
    assert units(state) == 1900


def test_an_init_container_counts_where_it_asks_for_more_than_all_others(state: NodeState) -> None:
    break_card(state, 0)
    break_card(state, 1)
    place(state, "a", 100, containers=("one", "two"), init={"first": 150, "second": 250})
    assert units(state) == 250
    place(state, "b", 100, containers=("one", "two"), init={"first": 150})
    assert units(state) == 450


def test_what_is_held_counts_pods_that_run_as_the_scheduler_does(state: NodeState) -> None:
    memory = resource_named(state.node, MEMORY)
    assert state.count_held(memory) == 0
    place(state, "a", 100, 0, containers=("one", "two"), init={"first": 150})
    place(state, "b", 50, 1)
    place(state, "c", 70, 1, is_over=True)
    assert state.count_held(memory) == 250


def test_of_a_plugins_devices_only_the_kubelet_knows_who_holds_them(state: NodeState) -> None:
    gpu = resource_named(state.node, GPU)
    assert state.count_held(gpu) is None
    place(state, "a", 1, 0, 1)
    assert state.count_held(gpu) == 2


def test_a_pod_that_the_kubelet_has_yet_to_refuse_makes_the_node_no_larger(
    state: NodeState,
) -> None:
    """Whoever names the node in a pod passes by the scheduler, and may ask for anything."""
    place(state, "a", 900, 1)
    asks = {"x": {MEMORY: 5000}}
    forged = Pod("default", "forged", containers=("x",), requests=asks, phase="Pending")
    state.pods["default", "forged"] = forged
    assert units(state) == 2000
    # Of a smaller node than the one that it was admitted to, a pod keeps what it has.
    state.pods["default", "forged"] = replace(forged, started=1.0)
    assert units(state) == 5900
