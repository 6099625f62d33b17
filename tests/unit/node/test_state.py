import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.node.event_kinds import Kind
from hami_mock.node.fault import Fault, FaultKind
from hami_mock.node.fault_kinds import DEGRADED, DOWN, LOST, UNHEALTHY
from hami_mock.node.state import CardHealth, NodeState
from tests.unit.builders import laid_out


def make_state() -> tuple[NodeState, str, str]:
    node = laid_out(mlu_cards=0, iluvatar_cards=0, ascend_cards=0)
    first, second = (card.uuid for card in node.cards)
    return NodeState(node), first, second


def fault(*targets: str, effect: FaultKind = UNHEALTHY, reason: str = "") -> Fault:
    return Fault(effect, frozenset(targets), reason)


def kinds(state: NodeState) -> list[Kind]:
    return [event.kind for event in state.events.after(0)]


def test_all_cards_are_well_at_first() -> None:
    state, first, second = make_state()
    assert all(state.health(card) == CardHealth() for card in state.node.cards)
    assert state.faults == ()
    assert set(state.cards) == {first, second}


@pytest.mark.parametrize(
    ("effect", "seen", "events"),
    [
        (UNHEALTHY, "unhealthy", [Kind.CARD_FAILED, Kind.CARD_RECOVERED]),
        (LOST, "lost", [Kind.CARD_LOST, Kind.CARD_RETURNED]),
        (DEGRADED, "degraded", [Kind.CARD_DEGRADED, Kind.CARD_RESTORED]),
    ],
)
def test_a_fault_begins_and_ends(effect: FaultKind, seen: str, events: list[Kind]) -> None:
    state, first, _ = make_state()
    struck = fault(first, effect=effect)
    state.begin_faults(struck)
    assert getattr(state, seen) == {first}
    assert state.has(first, effect)
    state.end_faults(struck)
    assert getattr(state, seen) == set()
    assert kinds(state) == events


def test_a_card_is_well_only_when_all_of_its_faults_have_ended() -> None:
    state, first, _ = make_state()
    one, other = fault(first, reason="hot"), fault(first, reason="old")
    state.begin_faults(one, other)
    state.end_faults(one)
    assert state.unhealthy == {first}
    assert state.events.after(2)[0].message == "unhealthy: hot; still unhealthy: old"
    state.end_faults(other)
    assert state.unhealthy == set()
    assert kinds(state)[2:] == [Kind.FAULT_ENDED, Kind.CARD_RECOVERED]


def test_a_fault_that_has_ended_is_passed_over() -> None:
    state, first, _ = make_state()
    struck = fault(first)
    state.begin_faults(struck)
    state.end_faults(struck)
    state.end_faults(struck)
    assert kinds(state) == [Kind.CARD_FAILED, Kind.CARD_RECOVERED]


def test_lift_from_ends_a_fault_for_some_of_its_targets() -> None:
    state, first, second = make_state()
    state.begin_faults(fault(first, second), fault(first, effect=LOST))
    state.end_faults_of({first}, {UNHEALTHY})
    assert state.unhealthy == {second}
    assert state.lost == {first}


def test_a_change_is_told_to_who_waits() -> None:
    async def scenario() -> None:
        state, first, _ = make_state()
        before = state.changes.next()
        assert not before.is_set()
        state.begin_faults(fault(first))
        assert before.is_set()
        assert not state.changes.next().is_set()

    anyio.run(scenario)


def test_wait_until_looks_again_at_each_change() -> None:
    async def scenario() -> None:
        state, first, second = make_state()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(state.wait_until, lambda: state.unhealthy == {first, second})
            await anyio.wait_all_tasks_blocked()
            state.begin_faults(fault(first))
            await anyio.wait_all_tasks_blocked()
            state.begin_faults(fault(second))

    anyio.run(scenario)


def test_faults_of_what_is_gone_go_with_it() -> None:
    state, first, second = make_state()
    state.begin_faults(fault(first, second), fault(second), fault("nvidia.com/gpu", effect=DOWN))
    state.change(laid_out(nvidia_cards=1, mlu_cards=0, iluvatar_cards=0, ascend_cards=0))
    assert [(f.kind, set(f.targets)) for f in state.faults] == [
        (UNHEALTHY, {first}),
        (DOWN, {"nvidia.com/gpu"}),
    ]
    state.change(laid_out(nvidia_cards=2, mlu_cards=0, iluvatar_cards=0, ascend_cards=0))
    assert state.unhealthy == {first}


def test_what_was_read_does_not_change_under_the_reader() -> None:
    state, first, _ = make_state()
    before = state.unhealthy
    state.begin_faults(fault(first))
    assert before == frozenset()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([UNHEALTHY, LOST]),
            st.sets(st.integers(0, 1)),
            st.booleans(),
        )
    )
)
def test_what_cards_are_is_what_their_faults_say(
    steps: list[tuple[FaultKind, set[int], bool]],
) -> None:
    state, *uuids = make_state()
    alive: list[Fault] = []
    for effect, indexes, ends in steps:
        if ends and alive:
            state.end_faults(alive.pop(0))
        else:
            alive.append(fault(*(uuids[i] for i in indexes), effect=effect))
            state.begin_faults(alive[-1])
    for effect, seen in ((UNHEALTHY, state.unhealthy), (LOST, state.lost)):
        assert seen == {t for f in alive if f.kind is effect for t in f.targets}


def test_a_power_limit_stays_with_the_card_unless_it_becomes_another_model() -> None:
    state, first, _ = make_state()
    state.limit_power(state.cards[first], 200)
    state.change(laid_out(nvidia_cards=3, mlu_cards=0, iluvatar_cards=0, ascend_cards=0))
    assert state.power_limits == {first: 200}
    state.change(laid_out(nvidia_model="T4", mlu_cards=0, iluvatar_cards=0, ascend_cards=0))
    assert first in state.cards
    assert state.power_limits == {}
