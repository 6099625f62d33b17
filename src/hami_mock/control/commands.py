"""What the agent does for each request: checks its arguments, and calls the operation."""

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from hami_mock.control.acting import Acting
from hami_mock.control.protocol import FOLLOW, MOST_REQUEST_BYTES, TOP, WATCH, Request
from hami_mock.errors import HamiMockError, StartError, UsageError
from hami_mock.kit.text import cut
from hami_mock.kit.values import LINE, SEED, SPAN, SWITCH, Fields, Kind, Mistakes, whole
from hami_mock.node.events import Event, EventLog
from hami_mock.node.fault import FaultKind, Verb
from hami_mock.node.fault_kinds import VERBS
from hami_mock.node.state import NodeState

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
"""How often a watched status is looked at: pods come and go, and nobody tells."""
_REST_SECONDS = 0.1
_TOP_SECONDS = 1.0
"""How often a terminal shows the node anew, its clock with it."""

Kinds = Mapping[str, Kind[Any]]


class Controlled(Protocol):
    """What can be seen and changed: an agent, or in tests something simpler.

    What changes it raises UsageError if it is asked for what can't be.
    """

    @property
    def state(self) -> NodeState: ...

    async def status(self) -> Mapping[str, Any]:
        """Return all that `ctl status` shows."""

    async def snapshot(self) -> Mapping[str, Any]:
        """Return what `hami-mock top` shows, as the page does."""

    async def set_options(self, values: Mapping[str, str], *, reset: bool) -> list[str]:
        """Set options, after having dropped those set before if `reset`; return what changed."""

    async def set_load(self, targets: Sequence[str], load: str | None) -> list[str]:
        """Set the load of containers, or with None take it back; return what changed."""

    async def reload(self) -> list[str]:
        """Read the configuration again; return what changed."""

    async def play(self, text: str, name: str, seed: int | None) -> Mapping[str, Any]:
        """Play a scenario from its start, in place of one that plays; return what it is now."""

    async def stop_scenario(self) -> Mapping[str, Any]:
        """Stop the scenario that plays; return what it was."""


def _text(most: int) -> Kind[str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise ValueError("not text, or too long")
        return value

    return Kind(read, f"text of at most {most} characters")


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_ITEMS:
        raise ValueError("not a list, an empty one, or too long")
    return tuple(map(LINE.read, value))


def _values(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > _MOST_ITEMS:
        raise ValueError("not a mapping, or too large")
    return {LINE.read(name): _VALUE.read(text) for name, text in value.items()}


def _moment(value: object) -> float:
    # Not the other way round: what isn't a number is in no range.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise ValueError("not a number, or out of range")
    return float(value)


_MOST_ITEMS = 1000
_VALUE = _text(100_000)
TEXT = _text(MOST_REQUEST_BYTES)
NAME = _text(4096)
LOAD = _text(10_000)
TARGETS = Kind(_words, "one or more words for cards or resources")
VALUES = Kind(_values, "options and their values, as text")
SINCE: Kinds = {
    "since": whole(0, 2**63),
    "after": Kind(_moment, "a time in seconds since 1970"),
}


@dataclass(frozen=True)
class Operation:
    """What a command calls, and the arguments that it must and may have."""

    call: Callable[..., Any]
    required: Kinds = field(default_factory=dict)
    optional: Kinds = field(default_factory=dict)

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as what they mean.

        Raises UsageError with a line for each one that is missing, wrong or not wanted.
        """
        fields = Fields(given, "", Mistakes())
        fields.allow({*self.required, *self.optional})
        values = {name: fields.need(name, kind, None) for name, kind in self.required.items()}
        for name, kind in self.optional.items():
            if name in fields:
                values[name] = fields.get(name, kind, None)
        if fields.mistakes.lines:
            raise UsageError(fields.mistakes.lines)
        return values


def acting(verb: Verb, call: Callable[..., Any]) -> Operation:
    """Return the operation of a verb, which may be told for how long if it begins faults."""
    required = {p.name: p.kind for p in verb.parameters if p.is_required}
    optional = {p.name: p.kind for p in verb.parameters if not p.is_required}
    if isinstance(verb, FaultKind):
        optional["for"] = SPAN
    return Operation(call, {"targets": TARGETS, **required}, optional)


@contextmanager
def _internal_errors_told(request: Request) -> Iterator[None]:
    """Raise whatever nobody foresaw as StartError: the agent and its devices shall live on."""
    try:
        yield
    except HamiMockError:
        raise
    except Exception as error:
        _log.exception("control: %s", cut(request.command))
        raise StartError(
            f"internal error, please report it: {type(error).__name__}: {error} (the agent's "
            "log says where)"
        ) from error


class Answering:
    """Does what requests ask for, by a table of operations."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._operations = operations

    async def run(self, request: Request) -> Any:
        """Do what is asked, and return what came of it. Raises UsageError or StartError."""
        with _internal_errors_told(request):
            operation, arguments = self._checked(request)
            return await operation.call(**arguments)

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        """Yield the answers to a command that has many. Raises UsageError or StartError."""
        with _internal_errors_told(request):
            operation, arguments = self._checked(request)
            async with aclosing(operation.call(**arguments)) as answers:
                async for answer in answers:
                    yield answer

    def _checked(self, request: Request) -> tuple[Operation, dict[str, Any]]:
        operation = self._operations.get(request.command)
        if operation is None:
            known = ", ".join(self._operations)
            raise UsageError(f"there is no command {cut(request.command)!r}: use one of {known}")
        return operation, operation.read(request.arguments)


def event_operations(events: EventLog) -> dict[str, Operation]:
    """Return the operations that tell events: those so far, and those to come."""

    async def so_far(since: int = 0, after: float = 0.0) -> Any:
        return [_event(e) for e in events.after(since) if e.time >= after]

    async def follow(since: int = 0, after: float = 0.0) -> AsyncGenerator[Any, None]:
        while True:
            for event in await events.wait_after(since):
                if event.time >= after:
                    yield _event(event)
                since = event.number

    return {"events": Operation(so_far, optional=SINCE), FOLLOW: Operation(follow, optional=SINCE)}


class Commands(Answering):
    """The commands of one agent. The ends of faults that last for a while wait in `tasks`."""

    def __init__(self, controlled: Controlled, tasks: TaskGroup) -> None:
        self._controlled = controlled
        self._state = controlled.state
        act = Acting(self._state, tasks).act
        super().__init__(
            {
                "status": Operation(controlled.status),
                **event_operations(self._state.events),
                "set": Operation(self._set, {"values": VALUES, "reset": SWITCH}),
                "load": Operation(self._load, optional={"targets": TARGETS, "load": LOAD}),
                "reload": Operation(self._reload),
                "play": Operation(self._play, {"text": TEXT, "name": NAME}, {"seed": SEED}),
                "stop": Operation(controlled.stop_scenario),
                **{name: acting(verb, partial(act, name)) for name, verb in VERBS.items()},
                WATCH: Operation(self._watch),
                "snapshot": Operation(controlled.snapshot),
                TOP: Operation(self._top),
            }
        )

    async def _watch(self) -> AsyncGenerator[Any, None]:
        """Yield the status, and then again after each change."""
        before: Any = None
        while True:
            change = self._state.changes.next()
            status = await self._controlled.status()
            # How long a scenario has played changes all the time.
            scenario = status["scenario"] and {**status["scenario"], "elapsed": None}
            if before != (now := {**status, "scenario": scenario}):
                yield status
            before = now
            # Many changes at once are shown as one.
            await anyio.sleep(_REST_SECONDS)
            with anyio.move_on_after(_LOOK_SECONDS):
                await change.wait()

    async def _top(self) -> AsyncGenerator[Any, None]:
        """Yield a snapshot once a second, and at once when cards have changed."""
        while True:
            change = self._state.changes.next()
            yield await self._controlled.snapshot()
            await anyio.sleep(_REST_SECONDS)
            with anyio.move_on_after(_TOP_SECONDS - _REST_SECONDS):
                await change.wait()

    async def _set(self, values: Mapping[str, str], reset: bool) -> Any:
        lines = await self._controlled.set_options(values, reset=reset)
        return {"summary": lines or ["nothing changed"]}

    async def _load(self, targets: Sequence[str] = (), load: str | None = None) -> Any:
        if load is not None and not targets:
            raise UsageError("targets: is missing: name cards or pods")
        return {"summary": await self._controlled.set_load(targets, load)}

    async def _reload(self) -> Any:
        return {"summary": await self._controlled.reload() or ["nothing changed"]}

    async def _play(self, text: str, name: str, seed: int | None = None) -> Any:
        return await self._controlled.play(text, name, seed)


def _event(event: Event) -> dict[str, Any]:
    return {**asdict(event), "warning": event.is_warning}
