"""A fleet: what verbs do to it, how it grows and shrinks."""

import math

import pytest

from hami_mock.errors import UsageError
from hami_mock.fleet.fleet import Fleet
from hami_mock.node.event_kinds import Kind
from hami_mock.node.fault import Call
from tests.unit.fleet.rig import A100, EMPTY, MLU, fleet_of, pod


def ill(fleet: Fleet) -> dict[str, list[str]]:
    """Return the cards that are unhealthy, by node."""
    found = {}
    for name, member in fleet.members.items():
        state = fleet.state(member)
        if names := [card.name for card in state.node.cards if card.uuid in state.unhealthy]:
            found[name] = names
    return found


def act(
    fleet: Fleet, verb: str, *words: str, seconds: float | None = None, **given: object
) -> None:
    fleet.act(verb, fleet.find(words), given, seconds)


def test_a_verb_acts_on_all_cards_of_a_rack() -> None:
    fleet = fleet_of()
    act(fleet, "fail", "rack=a100-r0", xid=79)
    both = ["nvidia/0", "nvidia/1"]
    assert ill(fleet) == {"a100-0": both, "a100-1": both}
    assert fleet.changed == {"a100-0", "a100-1"}


@pytest.mark.parametrize("word", ["a100-1:nvidia/1", "a100-1:1"])
def test_a_card_is_named_by_its_name_or_its_number(word: str) -> None:
    fleet = fleet_of()
    act(fleet, "fail", word, reason="test")
    assert ill(fleet) == {"a100-1": ["nvidia/1"]}


def test_recover_ends_what_fail_began() -> None:
    fleet = fleet_of()
    act(fleet, "fail", "all")
    act(fleet, "recover", "a100-0", "a100-1:0")
    assert ill(fleet) == {"a100-1": ["nvidia/1"], "a100-2": ["nvidia/0", "nvidia/1"]}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["a100:nvidia/1", "a100:nvidia/7"], "a100-0: there is no card 'nvidia/7' on this node"),
        (["a100:mlu"], "a100-0: there is no card 'mlu' on this node"),
        (["all"], "mlu-0: only NVIDIA cards have Xids, not mlu/0"),
    ],
)
def test_a_wrong_card_leaves_all_nodes_as_they_were(words: list[str], problem: str) -> None:
    fleet = fleet_of(A100, MLU)
    with pytest.raises(UsageError, match=problem):
        act(fleet, "fail", *words, xid=79)
    assert ill(fleet) == {}
    assert not fleet.changed


def test_cards_that_only_some_of_the_nodes_have_are_taken_there() -> None:
    fleet = fleet_of(A100, MLU, EMPTY)
    act(fleet, "fail", "all:mlu/0", "*-1:1", reason="test")
    assert ill(fleet) == {"a100-1": ["nvidia/1"], "mlu-0": ["mlu/0"], "mlu-1": ["mlu/0"]}


@pytest.mark.parametrize("verb", ["fail", "recover", "lose", "return", "down", "up", "clear"])
def test_nodes_without_cards_are_no_reason_to_refuse(verb: str) -> None:
    fleet = fleet_of(A100, EMPTY)
    act(fleet, "stop-node", "empty")
    act(fleet, verb, "all")
    assert fleet.members["empty-0"].is_stopped is (verb != "clear")


def test_only_resources_that_are_given_out_by_a_call_can_be_slow() -> None:
    fleet = fleet_of()
    act(fleet, "delay", "a100-0", call=Call.ALLOCATE, seconds=2.0)
    assert [fault.targets for fault in fleet.members["a100-0"].faults] == [{"nvidia.com/gpu"}]
    with pytest.raises(UsageError, match=r"a100-0: nvidia.com/gpumem stands in the Node's status"):
        act(fleet, "delay", "a100-0:nvidia.com/gpumem", call=Call.ALLOCATE, seconds=2.0)


def test_a_call_that_nobody_makes_is_refused() -> None:
    with pytest.raises(UsageError, match=r"prestart: .* use allocate"):
        act(fleet_of(), "break", "a100-0", call=Call.PRESTART)


@pytest.mark.parametrize("verb", ["drop", "refuse", "status"])
def test_what_needs_a_kubelet_is_refused(verb: str) -> None:
    with pytest.raises(UsageError, match=f"'{verb}' can't be done to a fleet"):
        act(fleet_of(), verb, "all")


def test_faults_end_when_their_time_has_come() -> None:
    now = 1000.0
    fleet = fleet_of()
    fleet._clock = lambda: now
    act(fleet, "fail", "a100-0", seconds=30)
    act(fleet, "fail", "a100-1", seconds=60)
    act(fleet, "fail", "a100-2")
    assert fleet.end_overdue() == 1030
    now = 1031
    assert fleet.end_overdue() == 1060
    assert ill(fleet).keys() == {"a100-1", "a100-2"}
    now = 1061
    assert fleet.end_overdue() == math.inf
    assert ill(fleet).keys() == {"a100-2"}


def test_a_fault_that_was_ended_has_no_end_any_more() -> None:
    fleet = fleet_of()
    act(fleet, "fail", "a100-0", seconds=30)
    act(fleet, "recover", "a100-0")
    assert fleet.end_overdue() == math.inf


def test_nodes_are_stopped_and_started_as_a_whole() -> None:
    fleet = fleet_of()
    act(fleet, "stop-node", "a100-0", "a100-1", reason="no power")
    act(fleet, "stop-node", "a100-0")
    stopped = [name for name, member in fleet.members.items() if member.is_stopped]
    assert stopped == ["a100-0", "a100-1"]
    assert len(fleet.members["a100-0"].faults) == 1
    act(fleet, "start-node", "a100-0")
    assert not fleet.members["a100-0"].is_stopped
    assert ill(fleet) == {}
    with pytest.raises(UsageError, match="stop-node: name nodes, not cards of a100-0"):
        act(fleet, "stop-node", "a100-0:0")


def test_clear_ends_everything_of_a_node_and_a_card_keeps_the_rest() -> None:
    fleet = fleet_of()
    act(fleet, "stop-node", "a100-0")
    act(fleet, "fail", "a100-0")
    act(fleet, "clear", "a100-0:0")
    assert ill(fleet) == {"a100-0": ["nvidia/1"]}
    assert fleet.members["a100-0"].is_stopped
    act(fleet, "clear", "a100-0")
    assert fleet.members["a100-0"].faults == ()


def test_a_rack_that_fails_is_one_event() -> None:
    fleet = fleet_of()
    act(fleet, "fail", "rack=a100-r0", reason="no power")
    (event,) = fleet.events.after(0)
    assert event.kind is Kind.FAULT_BEGAN
    assert event.subject == "2 nodes (a100-0 … a100-1)"
    assert event.message == "4 cards now unhealthy: no power"


def test_a_pool_that_grows_gets_the_next_numbers() -> None:
    fleet = fleet_of()
    new, gone = fleet.scale("a100", 5)
    assert (new, gone) == (["a100-3", "a100-4"], [])
    assert fleet.changed == {"a100-3", "a100-4"}
    assert {member.pool.nodes for member in fleet.members.values()} == {5}


def test_a_pool_that_shrinks_lets_go_of_nodes_without_pods_first() -> None:
    fleet = fleet_of()
    for member in fleet.members.values():
        member.is_there = True
    fleet.members["a100-2"].pods = {("default", "p"): pod("p")}
    new, gone = fleet.scale("a100", 1)
    assert (new, gone) == ([], ["a100-0", "a100-1"])
    assert fleet.leaving == {"a100-0": (), "a100-1": ()}
    assert [*fleet.members] == ["a100-2"]
    fleet.scale("a100", 2)
    assert sorted(fleet.members) == ["a100-0", "a100-2"]


def test_pods_of_a_node_that_goes_are_known() -> None:
    fleet = fleet_of()
    fleet.members["a100-0"].is_there = True
    fleet.members["a100-0"].pods = {("default", "p"): pod("p")}
    fleet.scale("a100", 0)
    assert fleet.leaving == {"a100-0": (("default", "p"),)}


def test_a_pool_that_there_is_not_is_said() -> None:
    with pytest.raises(UsageError, match="there is no pool 'a10'; did you mean a100"):
        fleet_of().scale("a10", 1)


def test_a_state_is_made_for_a_look_and_tells_nobody() -> None:
    fleet = fleet_of()
    act(fleet, "fail", "a100-0")
    before = len(fleet.events.after(0))
    state = fleet.state(fleet.members["a100-0"])
    assert state.events.after(0) == []
    assert len(fleet.events.after(0)) == before
