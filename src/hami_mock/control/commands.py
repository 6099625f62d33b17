"""What the agent does for each request: checks its arguments, and calls the operation."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from anyio.abc import TaskGroup

from hami_mock.control.acting import act
from hami_mock.control.checks import check_arguments
from hami_mock.control.protocol import FOLLOW, Request
from hami_mock.errors import HamiMockError, StartError, UsageError
from hami_mock.faults.actions import VERBS
from hami_mock.node.events import Event
from hami_mock.node.state import NodeState

_log = logging.getLogger(__name__)


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


Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class _Operation:
    """What a command calls, and the arguments that it must and may have."""

    call: Callable[[Arguments], Awaitable[Any]]
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


class Commands:
    """The commands of one agent. The ends of faults that last for a while wait in `tasks`."""

    def __init__(self, controlled: Controlled, tasks: TaskGroup) -> None:
        self._controlled = controlled
        self._tasks = tasks
        since = frozenset({"since"})
        self._operations = {
            "status": _Operation(self._status),
            "events": _Operation(self._events, optional=since),
            FOLLOW: _Operation(self._events, optional=since),
            "set": _Operation(self._set, frozenset({"values", "reset"})),
            "reload": _Operation(self._reload),
            "play": _Operation(self._play, frozenset({"text", "name"}), frozenset({"seed"})),
            "stop": _Operation(self._stop),
            **{name: self._acting(name) for name in VERBS},
        }

    async def run(self, request: Request) -> Any:
        """Do what is asked, and return what came of it. Raises UsageError or StartError."""
        operation = self.check(request)
        try:
            return await operation.call(request.arguments)
        except HamiMockError:
            raise
        except Exception as error:
            # Whatever it is, the agent and its devices shall live on.
            _log.exception("control: %s", request.command)
            raise StartError(
                f"internal error, please report it: {type(error).__name__}: {error} (the agent's "
                "log says where)"
            ) from error

    async def follow(self, request: Request, send: Callable[[Any], Awaitable[None]]) -> None:
        """Send the events that there are and then each new one, until cancelled."""
        number = request.arguments.get("since", 0)
        while True:
            for event in await self._controlled.state.events.wait_after(number):
                await send(_event(event))
                number = event.number

    def check(self, request: Request) -> _Operation:
        """Return what the request asks for. Raises UsageError if it can't be asked for so."""
        operation = self._operations.get(request.command)
        if operation is None:
            raise UsageError(
                f"the agent knows no command {request.command!r}, but {', '.join(self._operations)}"
            )
        check_arguments(request.arguments, operation.required, operation.optional)
        return operation

    def _acting(self, name: str) -> _Operation:
        verb = VERBS[name]

        async def call(arguments: Arguments) -> Any:
            return act(name, arguments, self._controlled.state, self._tasks)

        optional = {*verb.parameters, *(("for",) if verb.lasts else ())}
        return _Operation(call, frozenset({"targets"}), frozenset(optional))

    async def _status(self, arguments: Arguments) -> Any:
        return await self._controlled.status()

    async def _events(self, arguments: Arguments) -> Any:
        events = self._controlled.state.events.after(arguments.get("since", 0))
        return [_event(event) for event in events]

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
