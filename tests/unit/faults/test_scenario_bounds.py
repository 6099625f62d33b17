"""How large, long and fast a scenario may be; what is beyond that is refused in a few words."""

from typing import Any

import anyio
import pytest
import yaml

from hami_mock.faults import player
from hami_mock.faults.scenario_reader import parse
from hami_mock.faults.stage import Stage
from hami_mock.node.event_kinds import Kind
from hami_mock.node.state import NodeState
from tests.unit.builders import laid_out, problems_of
from tests.unit.faults.scripts import FILE, of_steps


def problems(text: str, file: str = FILE) -> tuple[str, ...]:
    return problems_of(lambda: parse(text, file))


def document(*steps: dict[str, Any], **top: Any) -> str:
    return yaml.safe_dump({**top, "steps": list(steps)})


def test_targets_are_bounded_even_if_the_text_is_short() -> None:
    text = "steps:\n- {drop: &all [" + ", ".join(["all"] * 100) + "]}\n" + "- {drop: *all}\n" * 100
    assert problems(text) == (
        f"{FILE}: steps[100]: all steps together name more than 10000 targets",
    )


DROP = {"drop": "all"}
ELEVEN = [DROP] * 11
LONG = {"every": "20ms", "times": 5000, **DROP}


@pytest.mark.parametrize(
    ("steps", "top"),
    [
        ([{"every": "10ms", **DROP}] * 11, {}),
        ([{"loop": 1000, "every": "10ms", "steps": ELEVEN}], {}),
        ([{"loop": 9, "every": "10ms", "steps": [{"loop": 1, "steps": ELEVEN}]}], {}),
        ([{"loop": 100, "every": "1s", "steps": [LONG]}], {}),
        (ELEVEN, {"repeat": "forever", "length": "10ms"}),
    ],
)
def test_a_scenario_that_is_too_fast_is_refused(
    steps: list[dict[str, Any]], top: dict[str, Any]
) -> None:
    (line,) = problems(document(*steps, **top))
    assert "turns would happen in a second, but at most 1000 may" in line


def test_a_scenario_that_is_just_slow_enough_is_played() -> None:
    assert of_steps(*({"every": "10ms", "drop": "all"} for _ in range(10))).total is None


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "a\ud800"])
def test_the_name_of_a_file_becomes_a_printable_name(name: str) -> None:
    made = parse("steps: [{drop: all}]", f"{name}.yaml")
    assert made.name == repr(name)[1:-1]
    assert all(line.isprintable() for line in problems("steps: []", f"{name}.yaml"))


def test_what_nobody_foresaw_in_a_play_ends_that_play_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the disk is on fire")

    async def run() -> None:
        state = NodeState(laid_out())
        playing = Stage(state)
        made = of_steps({"lose": "all", "for": "1h"}, {"at": "10ms", "drop": "all"})
        async with anyio.create_task_group() as tasks:
            await tasks.start(playing.run)
            with monkeypatch.context() as patched:
                patched.setattr(player, "names", broken)
                await playing.play(made)
                await state.events.wait_after(1)
                status = playing.status
                assert status is not None
                assert status["ending"] == "failed"
            await playing.play(made)
            await state.wait_until(lambda: len(state.faults) > 0)
            tasks.cancel_scope.cancel()
        assert state.faults == ()
        assert state.events.counts[Kind.SCENARIO_ENDED] == 2

    anyio.run(run)
    assert "the disk is on fire" in caplog.text
