import time

import anyio
import pytest
from hypothesis import given

from hami_mock.faults.actions import Action, perform
from hami_mock.faults.player import Player
from hami_mock.faults.scenario import Scenario
from hami_mock.faults.timeline import What, moments
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import Event, EventLog
from hami_mock.node.fault_kinds import fault_kinds
from hami_mock.node.state import NodeState
from tests.unit.builders import laid_out
from tests.unit.faults.scripts import FakeTime, of_steps, play, player_of, scenarios

NODE = laid_out()
"""Two cards of each vendor."""


def events(state: NodeState) -> list[tuple[Kind, str]]:
    return [(event.kind, event.subject) for event in state.events.after(0)]


def health(state: NodeState) -> list[str]:
    return sorted(state.cards[uuid].name for uuid in state.unhealthy)


def stamped_events(made: Scenario, limit: float = float("inf")) -> list[Event]:
    """All that happens in a play, with its times."""
    clock = FakeTime(limit, start=0.0)
    state = NodeState(NODE, EventLog(clock.clock))
    play(made, state, clock)
    return state.events.after(0)


def test_a_fault_comes_and_goes_at_its_time() -> None:
    played = stamped_events(of_steps({"at": 30, "fail": "nvidia/0", "for": 60, "reason": "dust"}))
    assert [(event.time, event.kind, event.subject, event.message) for event in played] == [
        (0, Kind.SCENARIO_STARTED, "storm", "playing for 1m30s, with seed 0"),
        (30, Kind.CARD_FAILED, "nvidia/0", "unhealthy: dust"),
        (90, Kind.CARD_RECOVERED, "nvidia/0", "no longer unhealthy: dust"),
        (90, Kind.SCENARIO_ENDED, "storm", "played to the end after 1m30s"),
    ]


def test_ten_minutes_play_in_no_time_and_do_not_drift() -> None:
    state, clock = NodeState(NODE), FakeTime()
    began = time.monotonic()
    made = of_steps({"every": 1, "times": 600, "fail": "nvidia/0", "for": 0.5})
    play(made, state, clock)
    assert time.monotonic() - began < 5
    begins = [1000 + second for second in range(600)]
    assert sorted(set(clock.waits)) == sorted([*begins, *(begin + 0.5 for begin in begins)])


def test_what_it_did_not_begin_it_does_not_end() -> None:
    state = NodeState(NODE)
    perform(Action("fail", ("nvidia/0",)), state)
    play(of_steps({"fail": "nvidia", "for": 60}), state)
    assert health(state) == ["nvidia/0"]


@pytest.mark.parametrize("length", ["1m", "forever"])
def test_what_has_no_time_to_end_ends_with_the_play(length: str) -> None:
    state = NodeState(NODE)
    play(of_steps({"fail": "all"}, {"down": "mlu"}, length=length), state)
    assert len(state.cards) == state.events.counts[Kind.CARD_FAILED]
    assert state.events.counts[Kind.FAULT_BEGAN] == 1
    assert state.faults == ()


def test_when_cancelled_all_is_undone_at_once() -> None:
    made = of_steps({"every": 10, "fail": "nvidia", "for": "1h"}, {"lose": "mlu", "for": "1h"})

    async def run() -> None:
        state = NodeState(NODE)
        player = player_of(made, state, FakeTime(limit=35))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(player.run)
            await anyio.wait_all_tasks_blocked()
            assert len(state.faults) == 4 * 2 + 2
            assert player.status["done"] is False
            change = state.changes.next()
            tasks.cancel_scope.cancel()
        assert state.faults == ()
        assert change.is_set()
        assert events(state)[-1] == (Kind.SCENARIO_ENDED, "storm")
        assert state.events.after(0)[-1].message == "stopped after 35s"
        assert player.status["done"] is True

    anyio.run(run)


def test_what_stays_does_not_pile_up() -> None:
    made = of_steps({"every": 1, "times": 50, "fail": "nvidia", "xid": [48, 79]}, length=60)
    state = NodeState(NODE)
    player = player_of(made, state)
    for moment in moments(made):
        player.play(moment)
        assert len(state.faults) <= 2 * 2
        if moment.what is What.DO:
            assert health(state) == ["nvidia/0", "nvidia/1"]
    assert state.faults == ()


def test_a_part_that_was_mended_before_leaves_the_rest_to_be_undone() -> None:
    made = of_steps({"down": "nvidia", "for": 60}, {"at": 30, "up": "nvidia.com/gpu"})
    state = NodeState(NODE)
    player = player_of(made, state)
    touched = [player.play(moment) for moment in moments(made)]
    assert len(touched[0]) == 4
    assert touched[1] == ("nvidia.com/gpu",)
    assert sorted(touched[2]) == sorted(set(touched[0]) - {"nvidia.com/gpu"})
    assert state.faults == ()


def test_what_is_not_there_is_told_and_the_play_goes_on() -> None:
    made = of_steps(
        {"fail": ["nvidia/7", "nvidia/8"], "for": 10},
        {"at": 5, "fail": "mlu/0", "xid": 79, "for": 10},
        {"at": 20, "fail": "mlu/1", "for": 10},
    )
    state = NodeState(NODE)
    play(made, state)
    assert [kind for kind, _ in events(state)] == [
        Kind.SCENARIO_STARTED,
        *[Kind.SCENARIO_STEP_FAILED] * 3,
        *(Kind.CARD_FAILED, Kind.CARD_RECOVERED, Kind.SCENARIO_ENDED),
    ]
    failed = state.events.after(0)[1]
    assert failed.is_warning
    assert failed.message.startswith(
        "steps[0]: there is no card 'nvidia/7' on this node: it has nvidia"
    )


def test_cards_may_go_while_it_plays() -> None:
    made = of_steps({"every": 10, "times": 3, "fail": "nvidia", "for": 15})
    state = NodeState(NODE)
    player = player_of(made, state)
    for moment in moments(made):
        player.play(moment)
        if moment.time == 10 and moment.what is What.DO:
            state.change(laid_out(nvidia_cards=1))
    assert state.faults == ()


def test_the_cards_are_drawn_from_those_that_are_there_then() -> None:
    made = of_steps({"every": 10, "times": 20, "choose": 1, "fail": "nvidia", "for": 5})
    state = NodeState(laid_out(nvidia_cards=8))
    player = player_of(made, state)
    drawn = [player.play(m) for m in moments(made) if m.what is What.DO]
    again = [player.play(m) for m in moments(made) if m.what is What.DO]
    assert drawn == again
    assert len(set(drawn)) > 3
    state.change(laid_out(nvidia_cards=1))
    assert player.play(next(moments(made))) == ("nvidia/0",)


@pytest.mark.parametrize(("share", "count"), [("1%", 1), ("50%", 4), ("56%", 4), ("57%", 5)])
def test_a_share_of_the_cards_is_rounded_and_at_least_one(share: str, count: int) -> None:
    state = NodeState(NODE)
    made = of_steps({"fail": "all", "choose": share, "for": 1})
    player_of(made, state).play(next(moments(made)))
    assert len(state.unhealthy) == count


def test_another_seed_draws_other_cards() -> None:
    made = of_steps({"every": 10, "times": 9, "choose": 1, "fail": "all", "for": 5}, seed=1)
    drawn = []
    for seed in (None, 1, 2):
        player = player_of(made, NodeState(NODE), seed=seed)
        drawn.append([player.play(moment) for moment in moments(made, player.seed)])
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_status_says_how_far_it_is() -> None:
    made = of_steps({"at": 60, "fail": "nvidia/0", "for": 30}, seed=7)

    async def run() -> None:
        clock = FakeTime(limit=20)
        player = player_of(made, NodeState(NODE), clock)
        assert player.status == {
            "name": "storm",
            "seed": 7,
            "elapsed": 0.0,
            "total": 90.0,
            "next_at": None,
            "next": "",
            "done": False,
            "ending": "",
        }
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(player.run)
            await anyio.wait_all_tasks_blocked()
            status = player.status
            assert (status["elapsed"], status["next_at"]) == (20, 60)
            assert status["next"] == "fail nvidia/0, for 30s"
            tasks.cancel_scope.cancel()
        clock.now += 1000
        status = player.status
        assert (status["elapsed"], status["next_at"], status["done"]) == (20, None, True)
        assert status["ending"] == "stopped"

    anyio.run(run)


def test_the_real_clock_will_do() -> None:
    state = NodeState(NODE)
    made = of_steps({"at": "10ms", "fail": "all", "for": "10ms"})
    anyio.run(Player(made, state).run)
    assert state.faults == ()
    assert state.events.counts[Kind.CARD_RECOVERED] == 8


@given(scenarios())
def test_no_fault_is_left_after_the_end(made: Scenario) -> None:
    state = NodeState(NODE)
    play(made, state)
    assert state.faults == ()
    assert not any(state.has(uuid, effect) for uuid in state.cards for effect in fault_kinds())
    assert state.events.counts[Kind.SCENARIO_ENDED] == 1
    assert state.events.counts[Kind.SCENARIO_STEP_FAILED] == 0


@given(scenarios())
def test_the_same_seed_does_the_same_to_the_node(made: Scenario) -> None:
    def run() -> list[tuple[str, ...]]:
        player = player_of(made, NodeState(NODE))
        return [player.play(moment) for moment in moments(made)]

    assert run() == run()
