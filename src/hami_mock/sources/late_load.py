"""The load model, loaded when it is needed: many agents are never looked at, and nobody uses them.

Until then only time passes, and that is all the model has to know.
"""

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio.abc import TaskStatus

from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import first_of
from hami_mock.node.cards import Card
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings

if TYPE_CHECKING:
    from hami_mock.sources.load import LoadSource


class Start(NamedTuple):
    """The cards that nobody has held since a time of the monotonic clock, and how fast it runs."""

    cards: Sequence[Card]
    factor: int
    at: float


class LateLoad:
    """Starts the model when somebody holds a device or looks, or when anything changes."""

    def __init__(
        self, state: NodeState, settings: Callable[[], Settings], settings_changes: Broadcast
    ) -> None:
        self._state = state
        self._settings = settings
        self._settings_changes = settings_changes
        self._start = Start(state.node.cards, settings().time_factor, time.monotonic())
        self._needed = anyio.Event()

    @cached_property
    def source(self) -> "LoadSource":
        from hami_mock.sources.load import LoadSource

        self._needed.set()
        changes = self._settings_changes
        return LoadSource(self._state, self._settings, settings_changes=changes, since=self._start)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Let time pass until cancelled. Raises UsageError if the trace can't be used."""
        if not self._settings().load_trace:
            task_status.started()
            task_status = anyio.TASK_STATUS_IGNORED
            await self._until_needed()
        await self.source.run(task_status=task_status)

    async def _until_needed(self) -> None:
        state = self._state
        changes = state.changes.next(), self._settings_changes.next()
        state.before_look = self._look
        await first_of(
            self._needed.wait,
            lambda: state.holders.changes.wait_until(lambda: bool(state.holders.all)),
            *(change.wait for change in changes),
        )

    def _look(self) -> None:
        self.source.look()
