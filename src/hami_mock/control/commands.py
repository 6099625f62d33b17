"""What the agent does for each request: checks its arguments, and calls the operation."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from hami_mock.control import checks
from hami_mock.control.acting import act
from hami_mock.control.checks import Arguments
from hami_mock.control.protocol import FOLLOW, WATCH, Request
from hami_mock.errors import HamiMockError, StartError, UsageError
from hami_mock.kit.values import SEED, SWITCH
from hami_mock.node.events import Event
from hami_mock.node.fault import Verb
from hami_mock.node.fault_kinds import VERBS
from hami_mock.node.state import NodeState

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
"""How often a watched status is looked at: pods come and go, and nobody tells."""
_REST_SECONDS = 0.1


class Controlled(Protocol):
    """What can be seen and changed: an agent, or in tests something simpler."""

    @property
    def state(self) -> NodeState:
        """The state that faults begin and end in, with its events."""

    async def status(self) -> Mapping[str, Any]:
        """Return all that `ctl status` shows."""

    async def set_options(self, values: Mapping[str, str], *, reset: bool) -> list[str]:
        """Set options, after having dropped those set before if `reset`; return what changed.

        Raises UsageError if a value isn't allowed.
        """

    async def reload(self) -> list[str]:
        """Read the configuration again; return what changed. Raises UsageError if it is wrong."""

    async def play(self, text: str, name: str, seed: int | None) -> Mapping[str, Any]:
        """Play a scenario from its start, in place of one that plays; return what it is now.

        Raises UsageError if the scenario is wrong.
        """

    async def stop_scenario(self) -> Mapping[str, Any]:
        """Stop the scenario that plays; return what it was. Raises UsageError if none plays."""


@dataclass(frozen=True)
class _Operation:
    """What a command calls, and the arguments that it must and may have."""

    call: Callable[[Arguments], Any]
    required: checks.Kinds = field(default_factory=dict)
    optional: checks.Kinds = field(default_factory=dict)


class Commands:
    """The commands of one agent. The ends of faults that last for a while wait in `tasks`."""

    def __init__(self, controlled: Controlled, tasks: TaskGroup) -> None:
        self._controlled = controlled
        self._tasks = tasks
        since: checks.Kinds = {"since": checks.NUMBER, "after": checks.MOMENT}
        self._operations = {
            "status": _Operation(self._status),
            "events": _Operation(self._events, optional=since),
            "set": _Operation(self._set, {"values": checks.VALUES, "reset": SWITCH}),
            "reload": _Operation(self._reload),
            "play": _Operation(
                self._play, {"text": checks.TEXT, "name": checks.TEXT}, {"seed": SEED}
            ),
            "stop": _Operation(self._stop),
            **{name: self._acting(verb) for name, verb in VERBS.items()},
            FOLLOW: _Operation(self._follow, optional=since),
            WATCH: _Operation(self._watch),
        }

    async def run(self, request: Request) -> Any:
        """Do what is asked, and return what came of it. Raises UsageError or StartError."""
        operation, arguments = self._checked(request)
        try:
            return await operation.call(arguments)
        except HamiMockError:
            raise
        except Exception as error:
            # Whatever it is, the agent and its devices shall live on.
            _log.exception("control: %s", request.command)
            raise StartError(
                f"internal error, please report it: {type(error).__name__}: {error} (the agent's "
                "log says where)"
            ) from error

    def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        """Return the answers to a command that has many. Raises UsageError if it is wrong."""
        operation, arguments = self._checked(request)
        stream: AsyncGenerator[Any, None] = operation.call(arguments)
        return stream

    def _checked(self, request: Request) -> tuple[_Operation, Arguments]:
        operation = self._operations.get(request.command)
        if operation is None:
            raise UsageError(
                f"there is no command {request.command!r}: use one of {', '.join(self._operations)}"
            )
        given = request.arguments
        return operation, checks.read_arguments(given, operation.required, operation.optional)

    def _acting(self, verb: Verb) -> _Operation:
        async def call(arguments: Arguments) -> Any:
            return act(verb.verb, arguments, self._controlled.state, self._tasks)

        return _Operation(call, *checks.arguments_of(verb))

    async def _status(self, arguments: Arguments) -> Any:
        return await self._controlled.status()

    async def _events(self, arguments: Arguments) -> Any:
        events = self._controlled.state.events.after(arguments.get("since", 0))
        return [_event(event) for event in events if event.time >= arguments.get("after", 0)]

    async def _follow(self, arguments: Arguments) -> AsyncGenerator[Any, None]:
        """Yield the events that there are, and then each new one."""
        number = arguments.get("since", 0)
        while True:
            for event in await self._controlled.state.events.wait_after(number):
                if event.time >= arguments.get("after", 0):
                    yield _event(event)
                number = event.number

    async def _watch(self, arguments: Arguments) -> AsyncGenerator[Any, None]:
        """Yield the status, and then again after each change."""
        before: Any = None
        while True:
            change = self._controlled.state.changes.next()
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

    async def _set(self, arguments: Arguments) -> Any:
        lines = await self._controlled.set_options(arguments["values"], reset=arguments["reset"])
        return {"summary": lines or ["nothing changed"]}

    async def _reload(self, arguments: Arguments) -> Any:
        return {"summary": await self._controlled.reload() or ["nothing changed"]}

    async def _play(self, arguments: Arguments) -> Any:
        text, name, seed = arguments["text"], arguments["name"], arguments.get("seed")
        return await self._controlled.play(text, name, seed)

    async def _stop(self, arguments: Arguments) -> Any:
        return await self._controlled.stop_scenario()


def _event(event: Event) -> dict[str, Any]:
    return {**asdict(event), "warning": event.is_warning}
