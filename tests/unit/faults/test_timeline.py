from collections import Counter
from itertools import islice, pairwise, takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.faults.scenario import Loop, Part, Scenario, Step
from hami_mock.faults.timeline import Moment, What, moments
from tests.unit.faults.scripts import of_steps, scenarios, steps

LENGTH = 5000
"""Longer than any scenario that hypothesis makes."""


def times(made: Scenario, what: What = What.DO) -> list[float]:
    return [moment.time for moment in moments(made) if moment.what is what]


def shown(made: Scenario, count: int = 100) -> list[tuple[float, str, str]]:
    """The moments as time, what, and the verb."""
    return [
        (moment.time, moment.what.name, moment.action.verb if moment.action else "")
        for moment in islice(moments(made), count)
    ]


def draws(made: Scenario) -> dict[str, list[Moment]]:
    """What was drawn for each step, by the step's key."""
    found: dict[str, list[Moment]] = {}
    for moment in moments(made):
        if moment.step is not None and moment.what is What.DO:
            found.setdefault(moment.step.key, []).append(moment)
    return found


def test_a_step_comes_at_its_time_and_is_undone_after_a_while() -> None:
    made = of_steps({"at": "30s", "fail": "nvidia/0", "for": "2m"})
    assert shown(made) == [(30, "DO", "fail"), (150, "UNDO", "fail"), (150, "END_ROUND", "")]


def test_a_step_comes_again_and_again() -> None:
    assert times(of_steps({"at": 5, "every": "10s", "times": 4, "drop": "all"})) == [5, 15, 25, 35]


def test_a_step_goes_on_to_the_end_of_the_length() -> None:
    assert times(of_steps({"every": 20, "drop": "all"}, length=60)) == [0, 20, 40]


def test_what_lasts_beyond_the_length_ends_with_it() -> None:
    made = of_steps({"at": 50, "fail": "all", "for": "1h"}, length="1m")
    assert shown(made) == [(50, "DO", "fail"), (60, "END_ROUND", "")]


def test_what_comes_too_late_by_chance_is_left_out() -> None:
    made = of_steps({"every": 10, "jitter": 60, "drop": "all"}, length=60)
    assert 0 < len(times(made)) < 6
    assert max(times(made)) < 60


def test_loops_count_from_the_start_of_their_turns() -> None:
    inner = [{"at": 1, "drop": "all"}, {"at": 3, "clear": "all"}]
    made = of_steps({"loop": 2, "at": 100, "every": 10, "steps": inner})
    assert shown(made) == [
        *((101, "DO", "drop"), (103, "DO", "clear"), (111, "DO", "drop"), (113, "DO", "clear")),
        (113, "END_ROUND", ""),
    ]


def test_turns_of_a_loop_may_overlap() -> None:
    inner = [{"drop": "all"}, {"at": 15, "clear": "all"}]
    made = of_steps({"loop": 3, "every": 10, "steps": inner})
    assert [row[:1] + row[2:] for row in shown(made)][:-1] == [
        *((0, "drop"), (10, "drop"), (15, "clear"), (20, "drop"), (25, "clear"), (35, "clear")),
    ]


def test_all_of_it_comes_again_after_its_end() -> None:
    made = of_steps({"at": 1, "fail": "all", "for": 2}, repeat=2, length=10)
    assert times(made) == [1, 11]
    assert times(made, What.END_ROUND) == [10, 20]


def test_at_the_same_time_what_ends_comes_first_and_then_the_order_of_the_file_counts() -> None:
    made = of_steps(
        {"at": 10, "drop": "all"},
        {"at": 0.1, "every": 0.1, "times": 99, "recover": "all"},
        {"at": 5, "fail": "all", "for": 5},
        {"loop": 1, "at": 10, "steps": [{"lose": "all", "for": 1}]},
        {"at": 10, "clear": "all"},
    )
    assert [(what, verb) for time, what, verb in shown(made, 200) if time == 10] == [
        *(("UNDO", "fail"), ("DO", "drop"), ("DO", "lose"), ("DO", "clear")),
    ]


def test_a_scenario_without_end_is_made_as_far_as_it_is_asked_for() -> None:
    endless = of_steps({"every": 1, "fail": "all", "for": 1}, repeat="forever", length=3)
    assert [row[0] for row in shown(endless, 12)] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]
    for top in ({"every": "10ms"}, {"loop": "forever", "every": 1, "steps": [{"drop": "all"}]}):
        step: dict[str, Any] = top if "loop" in top else {**top, "drop": "all"}
        assert len(shown(of_steps(step), 1000)) == 1000


def test_a_length_without_end_leaves_what_began() -> None:
    assert shown(of_steps({"fail": "all"}, length="forever")) == [(0, "DO", "fail")]


def test_a_xid_is_drawn_from_the_list() -> None:
    made = of_steps({"every": 1, "times": 200, "fail": "nvidia", "xid": [79, 48, 31], "for": 1})
    drawn = Counter(
        m.action.parameters["xid"] for m in moments(made) if m.what is What.DO and m.action
    )
    assert set(drawn) == {79, 48, 31}
    assert min(drawn.values()) > 40


def test_another_seed_makes_another_run() -> None:
    made = of_steps({"every": 60, "times": 10, "jitter": 30, "drop": "all"}, seed=7)
    assert list(moments(made)) == list(moments(made, 7))
    assert times(made) != [m.time for m in moments(made, 8) if m.what is What.DO]


def test_draws_are_the_same_on_every_machine() -> None:
    step = {"every": 10, "times": 3, "jitter": 10, "fail": "nvidia", "xid": [1, 2, 3, 4], "for": 1}
    done = [m for m in moments(of_steps(step)) if m.what is What.DO]
    drawn = [(m.time, m.action.parameters["xid"]) for m in done if m.action]
    assert drawn == [(9.882, 3), (14.482, 2), (25.593, 1)]


@given(scenarios(), st.integers(0, 5))
def test_the_same_seed_gives_the_same_moments(made: Scenario, seed: int) -> None:
    assert list(moments(made, seed)) == list(moments(made, seed))


@given(scenarios())
def test_times_never_decrease(made: Scenario) -> None:
    played = list(moments(made))
    assert all(one.time <= other.time for one, other in pairwise(played))
    assert played[-1].time == pytest.approx(made.total)


@given(scenarios())
def test_what_lasts_is_undone_once_after_its_time_or_with_its_round(made: Scenario) -> None:
    assert made.length is not None
    pending: dict[tuple[str, str], float] = {}
    for moment in moments(made):
        key = (moment.step.key if moment.step else "", moment.turn)
        match moment.what:
            case What.DO if moment.lasts is not None:
                assert key not in pending
                pending[key] = moment.time + moment.lasts
            case What.UNDO:
                assert moment.time == pytest.approx(pending.pop(key))
            case What.END_ROUND:
                assert all(over >= moment.time for over in pending.values())
                assert made.is_cut or not pending
                pending.clear()
            case _:
                pass
    assert not pending


@given(st.lists(steps(), min_size=1, max_size=4), st.integers(0, 3))
def test_each_step_comes_as_often_as_it_says_and_no_later_than_its_jitter(
    drawn: list[dict[str, Any]], seed: int
) -> None:
    made = of_steps(*drawn, seed=seed, length=LENGTH)
    found = draws(made)

    def check(part: Part, jitter: float, start: float, turns: int) -> None:
        rhythm = part.rhythm
        assert rhythm.count is not None
        if isinstance(part, Loop):
            for inner in part.steps:
                late = jitter + rhythm.jitter
                check(inner, late, start + rhythm.at, turns * rhythm.count)
            return
        assert isinstance(part, Step)
        moments = found[part.key]
        assert len(moments) == turns * rhythm.count
        first = min(moment.time for moment in moments)
        assert start + rhythm.at <= first <= start + rhythm.at + jitter + rhythm.jitter + 0.001

    for part in made.steps:
        check(part, 0.0, 0.0, 1)


@given(st.lists(steps(), min_size=1, max_size=4), st.integers(0, 4))
def test_another_step_changes_no_draws_of_the_others(
    drawn: list[dict[str, Any]], position: int
) -> None:
    other = {"degrade": "ascend/9", "every": 7, "times": 9, "jitter": 3, "choose": 1, "for": 5}
    before = draws(of_steps(*drawn, length=LENGTH))
    after = draws(of_steps(*drawn[:position], other, *drawn[position:], length=LENGTH))
    for key, played in before.items():
        assert [(m.time, m.action, m.draw) for m in played] == [
            (m.time, m.action, m.draw) for m in after[key]
        ]


def test_an_hour_of_many_moments_is_made_in_no_time() -> None:
    made = of_steps({"every": 1, "jitter": 5, "fail": "all", "for": 30})
    hour = list(takewhile(lambda moment: moment.time < 3600, moments(made)))
    assert len(hour) > 7000
