"""While nobody holds a card, time passes unseen: afterwards all is as if it had been watched."""

from collections.abc import Callable

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hami_mock.faults.actions import Action, perform
from hami_mock.settings.settings import load
from hami_mock.sources import load as module
from tests.unit.sources.test_load import BEGIN, GPU, MAIN, Rig

Step = Callable[[Rig], object]


def _act(verb: str, **parameters: object) -> Step:
    return lambda rig: perform(Action(verb, ("nvidia/0",), parameters), rig.state)


def _set(**flags: int) -> Step:
    def change(rig: Rig) -> None:
        rig.settings = load({name.replace("_", "-"): str(value) for name, value in flags.items()})
        rig.settings_changes.send()

    return change


STEPS: dict[str, Step] = {
    "hold": lambda rig: rig.hold({MAIN: {rig.first: {GPU: 1}}}),
    "end": lambda rig: rig.hold({}),
    "busy": lambda rig: rig.source.set_rule("default/*", "70"),
    "lose": _act("lose"),
    "return": _act("return"),
    "hot": _act("degrade", reason="thermal"),
    "broken memory": _act("degrade", reason="ecc"),
    "Xid": _act("fail", xid=31),
    "recover": _act("recover"),
    "fast": _set(time_factor=30),
    "slow": _set(time_factor=1),
}


class Watched(Rig):
    """Never rests."""

    def let_pass(self, seconds: int) -> None:
        for _ in range(seconds):
            self.source._resting = None
            self.source.advance(1.0)

    def do(self, step: str) -> None:
        STEPS[step](self)
        self.source._resting = None
        self.source.advance(0.0)


class Resting(Rig):
    """Rests when it can: what happened comes to light when something changes."""

    unseen = 0

    def let_pass(self, seconds: int) -> None:
        for _ in range(seconds):
            if self.source._resting is None:
                self.source.advance(1.0)
            else:
                self.unseen += 1

    def do(self, step: str) -> None:
        if step == "busy":
            self.look()  # as it does by itself
        STEPS[step](self)
        self.look()

    def look(self) -> None:
        self.source.advance(self.unseen)
        self.unseen = 0


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 90), st.sampled_from([*STEPS])), max_size=10))
def test_who_rested_shows_the_same_as_who_watched(happens: list[tuple[int, str]]) -> None:
    watched, resting = Watched(), Resting()
    for rig in (watched, resting):
        rig.source.advance(0.0)
        for seconds, step in happens:
            rig.let_pass(seconds)
            rig.do(step)
        rig.let_pass(40)
    resting.look()
    assert resting.source.time == pytest.approx(watched.source.time, abs=1e-3)
    assert resting.state.loads == watched.state.loads
    assert resting.state.readings.keys() == watched.state.readings.keys()
    for uuid, expected in watched.state.readings.items():
        shown = resting.state.readings[uuid]
        assert shown.energy == pytest.approx(expected.energy, abs=2)
        for name in ("power", "temperature", "sm_clock", "nvlink_bytes"):
            assert getattr(shown, name) == pytest.approx(getattr(expected, name)), name
        for name in ("throttles", "last_xid", "ecc_errors", "busy", "memory_used", "fan"):
            assert getattr(shown, name) == getattr(expected, name), name


def test_an_hour_at_rest_is_one_exact_step() -> None:
    rig = Rig(time_factor=10)
    rig.source.advance(0.0)
    rig.source.advance(3600.0)
    assert rig.reading().energy == 39 * 36_000 * 1000


@pytest.fixture
def without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds are nothing: a source that doesn't rest is never found waiting."""
    monkeypatch.setattr(module, "_SECONDS", 0.0)


async def _running(rig: Rig, script: Callable[[], object]) -> None:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            await tasks.start(rig.source.run)
            await anyio.wait_all_tasks_blocked()
            script()
            tasks.cancel_scope.cancel()


@pytest.mark.usefixtures("without_pause")
def test_nothing_is_done_while_nobody_holds_a_card_or_looks() -> None:
    rig = Rig()

    def script() -> None:
        assert rig.source.time == pytest.approx(BEGIN, abs=0.01)

    anyio.run(_running, rig, script)


def test_who_looks_sees_the_present_and_all_within_a_second_see_the_same() -> None:
    rig = Rig()

    def script() -> None:
        told = rig.state.load_changes.next()
        rig.source._seen -= 3600
        first = rig.state.readings
        energy = rig.reading().energy
        assert energy == pytest.approx(39 * 3600 * 1000, rel=0.001)
        assert rig.state.readings is first
        assert rig.source.status()["time"] == pytest.approx(BEGIN + 3600, abs=1)
        assert not told.is_set(), "who looks doesn't wake all others"

    anyio.run(_running, rig, script)
    assert rig.state.before_look is None


def test_who_looks_sees_no_load_of_a_container_that_has_gone() -> None:
    rig = Rig()
    rig.hold({MAIN: {rig.first: {GPU: 1}}})
    rig.annotate(MAIN, load="80")

    def script() -> None:
        assert rig.reading().busy == 80
        rig.hold({})
        assert rig.reading().busy == 0
        assert rig.state.loads == {}

    anyio.run(_running, rig, script)


def test_what_is_set_at_rest_begins_when_it_was_set() -> None:
    rig = Rig()

    def script() -> None:
        rig.source._seen -= 3600
        rig.source.set_rule("default/*", "ramp:0-100:100s")
        assert rig.state.readings, "somebody looks"
        rig.hold({MAIN: {rig.first: {GPU: 1}}})
        rig.source.advance(0.0)
        assert rig.reading().busy == 0
        rig.source.advance(50.0)
        assert rig.reading().busy == 50

    anyio.run(_running, rig, script)


@pytest.mark.parametrize("step", ["hold", "lose", "fast", "Xid"])
def test_a_change_ends_the_rest(step: str) -> None:
    rig = Rig()

    async def main() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(rig.source.run)
                await anyio.wait_all_tasks_blocked()
                told = rig.state.load_changes.next()
                rig.source._seen -= 100
                STEPS[step](rig)
                await told.wait()
                assert rig.reading(rig.second).energy == pytest.approx(3_900_000, rel=0.01)
                tasks.cancel_scope.cancel()

    anyio.run(main)
