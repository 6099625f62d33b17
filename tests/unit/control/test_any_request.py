"""Whatever is asked of an agent: it answers, or says what is wrong, and its state stays sound."""

import json
import tempfile
from contextlib import aclosing, suppress
from pathlib import Path

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from hami_mock.agent import Agent
from hami_mock.control.commands import Commands
from hami_mock.control.protocol import STREAMS, Request, read_request, result_line
from hami_mock.errors import UsageError
from hami_mock.faults.actions import MOST_FAULTS
from hami_mock.node.fault_kinds import VERBS
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from tests.unit.builders import NODE

NUMBERS = st.integers() | st.sampled_from([10**400, -(10**400)]) | st.floats()
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
WORDS = st.sampled_from(["all", "nvidia", "nvidia/0", "nvidia.com/gpu", "*", "[", "x"])
LIKELY = {
    "targets": st.lists(WORDS | st.text(max_size=5), max_size=3),
    "xid": st.sampled_from([13, 79, "48"]),
    "reason": st.text(max_size=10),
    "call": st.sampled_from(["allocate", "prestart"]),
    "seconds": st.sampled_from([1, "2s"]),
    "for": st.sampled_from([0.01, "1h", "7d"]),
    "since": st.integers(0, 10),
    "after": NUMBERS,
    "values": st.dictionaries(
        st.sampled_from(["nvidia-cards", "mlu-cards", "nvidia-memory", "log-level", "x"]),
        st.sampled_from(["0", "1", "2", "info"]) | st.text(max_size=5),
        max_size=2,
    ),
    "reset": st.sampled_from([True, False, "on", "off"]),
    "text": st.sampled_from(["steps: [{fail: all, for: 1h}]", "steps: []"]) | st.text(),
    "name": st.text(max_size=10),
    "seed": st.integers(),
}
OTHERS = ["status", "events", "set", "reload", "play", "stop", *STREAMS]
WANTED = {
    "set": ["values", "reset"],
    "play": ["text", "name"],
    "events": ["after"],
    "follow": ["since", "after"],
}
BEGIN = [Request(verb, {"targets": ["all"]}) for verb in ("lose", "down")]
"""So that there are faults which may outlive what has them."""


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A request as people make them, or one with something else in the place of its arguments."""
    often = st.sampled_from(["fail", "set", "play", "events"])
    command = draw(often | st.sampled_from([*VERBS, *OTHERS]) | st.text(max_size=5))
    wanted = ["targets"] if command in VERBS else WANTED.get(command, [])
    if draw(st.booleans()):
        return Request(command, {name: draw(LIKELY[name]) for name in wanted})
    names = [*wanted, *draw(st.lists(st.sampled_from(sorted(LIKELY)), max_size=2))]
    return Request(command, {name: draw(LIKELY[name] | VALUES) for name in names})


@given(st.binary() | st.recursive(SCALARS, st.lists).map(json.dumps).map(str.encode))
def test_any_line_is_a_request_or_none(line: bytes) -> None:
    try:
        read = read_request(line)
    except UsageError:
        return
    assert json.loads(read.line) == json.loads(line)


async def answer(commands: Commands, request: Request) -> None:
    """Ask; whatever isn't a mistake in the request fails the test."""
    with suppress(UsageError):
        if request.command not in STREAMS:
            assert json.loads(result_line(await commands.run(request)))
            return
        async with aclosing(commands.stream(request)) as results:
            with anyio.move_on_after(0.001):
                assert json.loads(result_line(await anext(results)))


def check(agent: Agent) -> None:
    state = agent.state
    there = {*state.cards, *state.resources}
    assert all(fault.targets and fault.targets <= there for fault in state.faults)
    assert len(state.faults) <= MOST_FAULTS
    assert {card.uuid for card in state.node.cards} == set(state.cards)


@settings(max_examples=150, deadline=None)
@given(st.lists(requests(), max_size=6))
def test_any_requests_are_answered_and_leave_the_state_sound(asked: list[Request]) -> None:
    async def run(folder: Path) -> None:
        flags = {"socket-dir": str(folder), "node-name": NODE}
        known = load(flags)
        agent = Agent(known, configured_node(known, None), flags)
        async with anyio.create_task_group() as tasks:
            await tasks.start(agent.stage.run)
            commands = Commands(agent, tasks)
            for request in (*BEGIN, *asked):
                # As it comes over the wire.
                await answer(commands, read_request(request.line.rstrip(b"\n")))
                check(agent)
            tasks.cancel_scope.cancel()

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, Path(folder))
