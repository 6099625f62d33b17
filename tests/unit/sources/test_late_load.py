"""The load model is loaded late, and nobody can tell."""

import subprocess
import sys
from collections.abc import Callable

import anyio
import pytest

from hami_mock.sources.late_load import LateLoad
from tests.unit.sources.test_load import CONTEXT, GPU, MAIN, Rig
from tests.unit.sources.test_load_at_rest import STEPS

WATTS = 39


class LateRig(Rig):
    def __init__(self, **flags: object) -> None:
        super().__init__(**flags)
        self.late = LateLoad(self.state, lambda: self.settings, self.settings_changes)

    @property
    def is_loaded(self) -> bool:
        return "source" in vars(self.late)

    def started_earlier(self, seconds: float) -> None:
        start = self.late._start
        self.late._start = start._replace(at=start.at - seconds)

    def run(self, script: Callable[[], object]) -> None:
        """Run it, do something, and let it do what it will."""

        async def main() -> None:
            with anyio.fail_after(20):
                async with anyio.create_task_group() as tasks:
                    await tasks.start(self.late.run)
                    await anyio.wait_all_tasks_blocked()
                    script()
                    await anyio.wait_all_tasks_blocked()
                    tasks.cancel_scope.cancel()

        anyio.run(main)


def test_an_agent_that_nobody_looks_at_does_without() -> None:
    rig = LateRig()
    rig.run(lambda: rig.state.holders.name(()))
    assert not rig.is_loaded


def test_the_agent_alone_doesnt_load_it() -> None:
    script = "import sys, hami_mock.agent; print([n for n in sys.modules if 'load_plan' in n])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_who_looks_sees_what_has_been_since_the_start() -> None:
    rig = LateRig(time_factor=10)
    rig.started_earlier(100)

    def look() -> None:
        assert rig.reading().energy == pytest.approx(WATTS * 1000 * 1000, rel=0.01)

    rig.run(look)
    assert rig.is_loaded


def test_who_looks_at_once_sees_something() -> None:
    rig = LateRig()
    rig.run(rig.reading)
    assert rig.is_loaded


def test_a_holder_is_shown() -> None:
    rig = LateRig()
    rig.run(lambda: rig.hold({MAIN: {rig.first: {GPU: 1}}}))
    assert rig.load().memory == CONTEXT


@pytest.mark.parametrize("step", ["hot", "broken memory", "lose", "fast"])
def test_what_changes_counts_from_then_on(step: str) -> None:
    rig = LateRig()
    rig.started_earlier(100)
    rig.run(lambda: STEPS[step](rig))
    assert rig.is_loaded
    second = rig.reading(rig.second)
    assert second.energy == pytest.approx(WATTS * 100 * 1000, rel=0.01)
    STEPS["return"](rig)
    rig.late.source.advance(0.0)
    first = rig.reading()
    assert first.energy == second.energy
    assert (first.temperature, first.ecc_errors) == (second.temperature, 0)
    assert rig.late.source.status()["time"] < rig.late.source._clock() + 5
