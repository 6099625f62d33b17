"""Where scenarios are played: one at a time, started and stopped while the agent runs."""

import logging
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import UsageError
from hami_mock.node.state import NodeState

if TYPE_CHECKING:
    from hami_mock.faults.player import Played, Player
    from hami_mock.faults.scenario import Scenario

_log = logging.getLogger(__name__)


class Stage:
    """Plays a scenario until it ends, is stopped, or another one takes its place."""

    def __init__(self, state: "NodeState | Played") -> None:
        self._state = state
        self._player: Player | None = None
        self._scope: anyio.CancelScope | None = None
        self._wanted = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            assert self._player is not None
            assert self._scope is not None
            try:
                with self._scope:
                    await self._player.run()
            except Exception:
                # Whatever it is, the agent and its devices shall live on.
                _log.exception("scenario %s: internal error", self._player.scenario.name)
            finally:
                self._idle.set()

    async def play(self, scenario: "Scenario", seed: int | None = None) -> dict[str, Any]:
        from hami_mock.faults.player import Player

        await self._end()
        self._player = Player(scenario, self._state, seed)
        self._scope = anyio.CancelScope()
        self._idle = anyio.Event()
        self._wanted.set()
        return self._player.status

    async def stop(self) -> dict[str, Any]:
        """Stop the scenario that plays and undo what it did. Raises UsageError if none plays."""
        if self._player is None or self._idle.is_set():
            raise UsageError("no scenario is running")
        await self._end()
        return self._player.status

    @property
    def status(self) -> dict[str, Any] | None:
        return self._player.status if self._player else None

    async def _end(self) -> None:
        if self._scope is not None and not self._idle.is_set():
            self._scope.cancel()
            await self._idle.wait()
