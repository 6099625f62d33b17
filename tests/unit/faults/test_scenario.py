from pathlib import Path

import pytest

from hami_mock.faults.actions import Action, Share
from hami_mock.faults.scenario import Loop, Rhythm, Scenario, Step
from hami_mock.faults.scenario_reader import parse, read
from hami_mock.node.fault import Call
from tests.unit.builders import laid_out, problems_of
from tests.unit.faults.scripts import FILE, of_steps, scenario


def only(made: Scenario) -> Step:
    (step,) = made.steps
    assert isinstance(step, Step)
    return step


def wrong(text: str) -> list[str]:
    """The mistakes in a file, without its name."""
    problems = problems_of(lambda: parse(text, FILE))
    assert all(problem.startswith(f"{FILE}: ") for problem in problems)
    return [problem.removeprefix(f"{FILE}: ") for problem in problems]


def test_a_scenario_is_called_like_its_file_and_plays_once() -> None:
    made = scenario("steps: [{fail: nvidia/0, for: 1m}]")
    assert (made.name, made.seed, made.rounds) == ("storm", 0, 1)
    assert (made.length, made.is_cut, made.total) == (60, False, 60)


def test_the_top_says_name_seed_rounds_and_length() -> None:
    made = scenario("{name: x, seed: 7, repeat: 3, length: 10m, steps: [{drop: all}]}")
    assert (made.name, made.seed, made.rounds, made.length) == ("x", 7, 3, 600)
    assert (made.is_cut, made.total) == (True, 1800)


def test_a_step_says_when_what_and_for_how_long() -> None:
    step = only(
        scenario("""
            steps:
              - {at: 30s, jitter: 5s, every: 1m, times: 10, for: 2m,
                 fail: [nvidia/0, "GPU-*"], xid: [79, 48], reason: dust, choose: 50%}
        """)
    )
    assert step.rhythm == Rhythm(30, 60, 10, 5)
    assert step.action == Action("fail", ("nvidia/0", "GPU-*"), {"reason": "dust"}, Share(50))
    assert (step.drawn["xid"], step.lasts, step.place) == ((79, 48), 120, "steps[0]")


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("{fail: nvidia/9}", "fail: there is no card 'nvidia/9' on this node: it has nvidia/0, "),
        ("{lose: [nvidia/0, 'nope*']}", "lose: there is no card 'nope*' on this node"),
        ("{down: nvidia.com/tpu}", "down: there is no resource 'nvidia.com/tpu' on this node"),
        ("{clear: x/y}", "clear: there is no card or resource 'x/y' on this node"),
        (
            "{fail: mlu/0, xid: [79, 48]}",
            "xid: 79, 48 is not allowed: only NVIDIA cards have Xids, not mlu/0: ",
        ),
        (
            "{fail: all, xid: 13, choose: 1}",
            "xid: 13 is not allowed: only NVIDIA cards have Xids, not ",
        ),
    ],
)
def test_what_can_never_happen_on_the_node_is_a_mistake(step: str, problem: str) -> None:
    text = (
        f"length: 10m\nsteps: [{{fail: nvidia, xid: 79}}, {{loop: 2, every: 1m, steps: [{step}]}}]"
    )
    assert parse(text, "x.yaml").steps
    (line,) = problems_of(lambda: parse(text, "x.yaml", laid_out()))
    assert line.startswith(f"x.yaml: steps[1].steps[0].{problem}")


def test_a_call_can_be_delayed() -> None:
    step = only(scenario("steps: [{delay: nvidia, call: allocate, seconds: 2s, for: 5m}]"))
    assert step.action == Action("delay", ("nvidia",), {"call": Call.ALLOCATE, "seconds": 2})


def test_a_loop_has_steps_of_its_own_and_lasts_as_long_as_they_do() -> None:
    made = scenario("steps: [{loop: 5, at: 1m, steps: [{at: 10s, lose: all, for: 5s}]}]")
    (loop,) = made.steps
    assert isinstance(loop, Loop)
    assert loop.rhythm == Rhythm(60, 15, 5)
    assert [step.rhythm.at for step in loop.steps] == [10]
    assert made.length == 60 + 5 * 15


@pytest.mark.parametrize(
    ("until", "count"), [("59s", 2), ("60s", 2), ("60.001s", 3), ("1m30s", 3), ("1.5m", 3)]
)
def test_until_leaves_out_what_would_begin_then_or_later(until: str, count: int) -> None:
    assert only(of_steps({"drop": "all", "every": "30s", "until": until})).rhythm.count == count


def test_of_times_and_until_the_first_one_counts() -> None:
    step = {"drop": "all", "every": 1, "until": 10}
    assert only(of_steps({**step, "times": 3})).rhythm.count == 3
    assert only(of_steps({**step, "times": 30})).rhythm.count == 10


@pytest.mark.parametrize(
    "text",
    [
        "steps: [{every: 1m, drop: all}]",
        "steps: [{loop: forever, every: 1m, steps: [{drop: all}]}]",
        "{length: forever, steps: [{fail: all}]}",
        "{repeat: forever, length: 1m, steps: [{fail: all}]}",
    ],
)
def test_a_scenario_may_have_no_end(text: str) -> None:
    assert scenario(text).total is None


def test_a_step_put_before_others_does_not_change_what_their_draws_depend_on() -> None:
    old = [{"fail": "nvidia", "for": 1}, {"loop": 2, "steps": [{"lose": "mlu", "for": 1}]}]
    before, after = of_steps(*old), of_steps({"drop": "all"}, *old)
    assert [part.key for part in after.steps][1:] == [part.key for part in before.steps]
    loops = [made.steps[-1] for made in (before, after)]
    assert [part.key for loop in loops if isinstance(loop, Loop) for part in loop.steps] == [
        "loop#0/lose mlu#0"
    ] * 2


def test_steps_that_say_the_same_have_draws_of_their_own() -> None:
    same = {"fail": "nvidia", "choose": 1, "for": 1}
    assert len({part.key for part in of_steps(same, same).steps}) == 2


def test_all_mistakes_are_told_at_once() -> None:
    assert wrong("""
        nmae: storm
        seed: -1
        repeat: never
        steps:
          - {fail: nvidia/0, xid: x, for: 1m}
          - {recover: all, for: 1m}
          - {at: soon, drop: all}
    """) == [
        "nmae: there is no such key; did you mean name?",
        "steps[0].xid: 'x' is not allowed: it must be a whole number from 1 to 99999, or a list of "
        "these",
        "steps[1].for: recover doesn't last: there is nothing to undo",
        "steps[2].at: 'soon' is not allowed: it must be a time such as 30s, 2m, 1h30m or 500ms, "
        "at most 7d",
        "seed: -1 is not allowed: it must be a whole number from 0 to 2147483647",
        "repeat: 'never' is not allowed: it must be a whole number from 1 to 1000000, or forever",
    ]


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("{fial: all}", "steps[0].fial: there is no such key; did you mean fail?"),
        ("{at: 1s}", "steps[0]: the step does nothing: give it one of fail, recover, lose,"),
        ("{fail: all, lose: all}", "steps[0]: fail and lose don't go together"),
        ("{lose: all, xid: 79}", "steps[0].xid: lose doesn't take it"),
        ("{fail: all, steps: []}", "steps[0].steps: belongs to a loop"),
        ("{fail: }", "steps[0].fail: None is not allowed: it must be a card such as"),
        ("{fail: []}", "steps[0].fail: [] is not allowed: it must be a card such as"),
        ("{fail: [1]}", "steps[0].fail: [1] is not allowed: it must be a card such as"),
        ("{fail: all, choose: 0}", "steps[0].choose: 0 is not allowed: it must be a number such"),
        ("{fail: all, choose: 0%}", "steps[0].choose: '0%' is not allowed"),
        ("{fail: all, choose: 101%}", "steps[0].choose: '101%' is not allowed"),
        ("{fail: all, choose: half%}", "steps[0].choose: 'half%' is not allowed"),
        ("{fail: all, choose: yes}", "steps[0].choose: True is not allowed"),
        ("{clear: all, choose: 1}", "steps[0].choose: clear always acts on all of its targets"),
        ("{fail: all, for: 0s}", "steps[0].for: '0s' is not allowed: it must be a time such as"),
        ("{fail: all, for: 8d}", "steps[0].for: '8d' is not allowed"),
        ("{fail: all, reason: ''}", "steps[0].reason: '' is not allowed: it must be a line"),
        ("{delay: all, seconds: 1s}", "steps[0].call: is missing: it must be one of allocate"),
        ("{delay: all, call: allocate}", "steps[0].seconds: is missing: it must be a time"),
        ("{delay: all, call: x, seconds: 1}", "steps[0].call: 'x' is not allowed: it must be one"),
        ("{drop: all, times: 2}", "steps[0].times: needs `every`"),
        ("{drop: all, until: 2m}", "steps[0].until: needs `every`"),
        ("{drop: all, every: 1ms}", "steps[0].every: '1ms' is not allowed"),
        ("{drop: all, every: 1, at: 2m, until: 1m}", "steps[0].until: must be later than at, wh"),
        ("{drop: all, every: 1s, times: 0}", "steps[0].times: 0 is not allowed"),
        ("fail", "steps[0]: 'fail' is not allowed: it must be a mapping such as"),
        ("{loop: 2}", "steps[0].steps: None is not allowed: it must be a list of steps"),
        ("{loop: 2, steps: []}", "steps[0].steps: [] is not allowed: it must be a list of steps"),
        (
            "{loop: 2, every: 1, times: 2, steps: [{drop: all}]}",
            "steps[0].times: give the number to the l",
        ),
        ("{loop: 2, every: 1, choose: 2, steps: [{drop: all}]}", "steps[0].choose: belongs in the"),
        ("{loop: 2, steps: [{drop: all}]}", "steps[0].loop: its turns take no time"),
        ("{loop: forever, steps: [{drop: all}]}", "steps[0].loop: its turns take no time"),
        (
            "{loop: 2, every: 1, steps: [{drop: all, every: 1}]}",
            "steps[0].steps[0].every: in a loop, it must end",
        ),
        (
            "{loop: 2, every: 1, steps: [{loop: forever, every: 1, steps: [{drop: all}]}]}",
            "steps[0].steps[0].loop: a loop inside another must end",
        ),
        ("{fail: all}", "steps[0]: it would be undone at once, because the scenario ends there"),
        ("{every: 10ms, for: 7d, fail: all}", "steps[0]: up to 60480001 turns would"),
    ],
)
def test_a_mistake_in_a_step_is_told_with_its_place(step: str, problem: str) -> None:
    (found,) = wrong(f"steps: [{step}]")
    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "a scenario must be a mapping with the key steps, not []"),
        ("", "a scenario must be a mapping with the key steps, not None"),
        ("{}", "steps: None is not allowed: it must be a list of steps"),
        ("{fail: all, steps: [{drop: all}]}", "fail: belongs in a step"),
        ("{steps: [{drop: all}], steps: 1}", "not valid YAML: the key 'steps' appears twice"),
        ("{steps: [{drop: a, drop: b}]}", "not valid YAML: the key 'drop' appears twice"),
        ("{repeat: 2, steps: [{drop: all}]}", "repeat: the steps take no time"),
        ("{repeat: forever, steps: [{drop: all}]}", "repeat: the steps take no time"),
        ("{repeat: 2, steps: [{drop: all, every: 1s}]}", "repeat: the steps never end"),
        ("{repeat: 2, length: forever, steps: [{drop: all}]}", "repeat: the steps never end"),
        (
            "{length: 1m, steps: [{drop: all, at: 1m}]}",
            "steps[0].at: it would never happen: the len",
        ),
        ("{length: 0, steps: [{drop: all}]}", "length: 0 is not allowed: it must be a time"),
        ("{1: 2, steps: [{drop: all}]}", "1: there is no such key"),
    ],
)
def test_a_mistake_of_the_whole_is_told(text: str, problem: str) -> None:
    (found,) = wrong(text)
    assert found.startswith(problem)


def test_loops_may_not_be_nested_too_deeply() -> None:
    text = "{drop: all}"
    for _ in range(5):
        text = f"{{loop: 2, every: 1, steps: [{text}]}}"
    (found,) = wrong(f"steps: [{text}]")
    assert found.endswith("loops may be nested at most 4 deep")
    # A list that holds itself is deeper than any bound.
    assert len(wrong("steps: &a [{loop: 2, every: 1, steps: *a}]")) == 1


def test_a_small_file_can_not_mean_very_many_steps() -> None:
    lists = ["a0: &a0 [{drop: all}]"]
    for level in range(1, 4):
        loop = f"{{loop: 1, every: 1, steps: *a{level - 1}}}"
        lists.append(f"a{level}: &a{level} [{', '.join([loop] * 11)}]")
    found = wrong("\n".join([*lists, "steps: *a3"]))
    assert found[-1] == "steps: there are more than 1000: use a loop"


def test_a_value_of_any_size_is_told_in_a_short_line() -> None:
    lists = ["a0: &a0 [x]"]
    lists += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    text = "\n".join([*lists, "seed: *a11", "steps: [{drop: all}]"])
    assert max(map(len, wrong(text))) < 1_000_000


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.yaml")
    assert problems_of(lambda: read(missing)) == (
        f"can't read the scenario {missing!r}: No such file or directory",
    )
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert problems_of(lambda: read(str(binary))) == (
        f"can't read the scenario {str(binary)!r}: not UTF-8 text",
    )
