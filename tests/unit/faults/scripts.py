"""Scenarios for tests: from text, from hypothesis, and played without waiting."""

import math
from collections.abc import Mapping
from typing import Any

import anyio
import yaml
from hypothesis import strategies as st

from hami_mock.faults.player import Player
from hami_mock.faults.scenario import Scenario
from hami_mock.faults.scenario_reader import parse
from hami_mock.node.fault import FaultKind, On
from hami_mock.node.fault_kinds import VERBS
from hami_mock.node.state import NodeState

FILE = "storm.yaml"


def scenario(text: str) -> Scenario:
    return parse(text, FILE)


def of_steps(*steps: Mapping[str, Any], **top: Any) -> Scenario:
    """A scenario of steps as YAML would give them."""
    return parse(yaml.safe_dump({**top, "steps": list(steps)}), FILE)


class FakeTime:
    """A clock that jumps to whatever is waited for; at its limit, the play is cancelled."""

    def __init__(self, limit: float = math.inf, start: float = 1000.0) -> None:
        self.now = self.start = start
        self.waits: list[float] = []
        self.scope: anyio.CancelScope | None = None
        self._limit = start + limit

    def clock(self) -> float:
        return self.now

    async def sleep_until(self, time: float) -> None:
        self.waits.append(time)
        if time > self._limit or math.isinf(time):
            self.now = self.now if math.isinf(self._limit) else self._limit
            if self.scope:
                self.scope.cancel()
            await anyio.sleep_forever()
        self.now = max(self.now, time)
        await anyio.lowlevel.checkpoint()


def player_of(
    played: Scenario, state: NodeState, time: FakeTime | None = None, seed: int | None = None
) -> Player:
    time = time or FakeTime()
    return Player(played, state, seed, clock=time.clock, sleep_until=time.sleep_until)


def play(played: Scenario, state: NodeState, time: FakeTime | None = None) -> None:
    """Play to the end, or to the limit of the time."""
    clock = time or FakeTime()

    async def run() -> None:
        with anyio.CancelScope() as clock.scope:
            await player_of(played, state, clock).run()

    anyio.run(run)


_TARGETS = {
    On.CARDS: ["nvidia", "nvidia/0", "all", "mlu/*"],
    On.RESOURCES: ["nvidia", "nvidia.com/gpu", "all"],
    On.BOTH: ["nvidia", "nvidia.com/gpu", "all"],
}
_TIMES = st.integers(0, 300)
_SPANS = st.integers(1, 200)


def takes(verb: str, parameter: str) -> bool:
    return parameter in [known.name for known in VERBS[verb].parameters]


@st.composite
def actions(draw: st.DrawFn) -> dict[str, Any]:
    """What a step does, without when."""
    verb = draw(st.sampled_from(sorted(VERBS)))
    step: dict[str, Any] = {verb: draw(st.sampled_from(_TARGETS[VERBS[verb].on]))}
    if takes(verb, "call"):
        step["call"] = draw(st.sampled_from(["allocate", "prestart"]))
    if takes(verb, "seconds"):
        step["seconds"] = draw(_SPANS)
    if takes(verb, "reason") and draw(st.booleans()):
        step["reason"] = draw(st.sampled_from(["dust", "heat"]))
    if verb == "fail" and step["fail"].startswith("nvidia"):
        step["xid"] = draw(st.lists(st.sampled_from([13, 48, 79]), min_size=1))
    if verb != "clear" and draw(st.booleans()):
        step["choose"] = draw(st.sampled_from([1, 2, "30%", "100%"]))
    if isinstance(VERBS[verb], FaultKind):
        step["for"] = draw(_SPANS)
    return step


@st.composite
def steps(draw: st.DrawFn, depth: int = 0) -> dict[str, Any]:
    """A step or a loop that ends."""
    timing: dict[str, Any] = {"at": draw(_TIMES)}
    if draw(st.booleans()):
        timing["jitter"] = draw(_TIMES)
    if depth < 2 and draw(st.integers(0, 3)) == 0:
        inner = draw(st.lists(steps(depth + 1), min_size=1, max_size=3))
        return {**timing, "loop": draw(st.integers(1, 4)), "every": draw(_SPANS), "steps": inner}
    if draw(st.booleans()):
        timing |= {"every": draw(_SPANS), "times": draw(st.integers(1, 5))}
    return {**timing, **draw(actions())}


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A scenario that ends; its steps are kept as they were drawn."""
    top: dict[str, Any] = {"seed": draw(st.integers(0, 3)), "repeat": draw(st.integers(1, 3))}
    if draw(st.booleans()):
        top["length"] = draw(st.integers(301, 900))
    else:
        top["steps"] = [{"drop": "all", "at": "1s"}]  # so that a round takes some time
    own = draw(st.lists(steps(), min_size=1, max_size=5))
    return of_steps(*own, *top.pop("steps", ()), **top)
