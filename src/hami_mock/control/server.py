"""The agent's side of the control socket.

asyncio's own servers lose a connection that comes in while they are stopped. Here every connection
is a task of one group, which is cancelled: what was let in is closed, whenever that was.
"""

import logging
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from hami_mock.control.commands import Answering
from hami_mock.control.connection import Connection
from hami_mock.control.protocol import FLAG, STREAMS, error_line, read_request, result_line
from hami_mock.errors import HamiMockError, StartError
from hami_mock.kit.concurrency import Backoff, first_of
from hami_mock.kit.folder_watch import FolderWatch, Identity, identity
from hami_mock.kit.own_socket import accept_all, listen_at

_MOST_CONNECTIONS = 32
"""What passes before the next try when this process has no file left to accept with."""
_FIRST_RETRY_SECONDS = 1.0

_log = logging.getLogger(__name__)


class ControlServer:
    """Lets `hami-mock ctl` see and change what it is given."""

    name = "control"

    def __init__(self, path: str, commands: Callable[[TaskGroup], Answering]) -> None:
        """Make one that offers the commands, which may have tasks of their own."""
        self._path = Path(path)
        self._make = commands
        self._folder = FolderWatch(self._path.parent)
        self._connections = 0
        self._reason = ""
        """Why there is no socket; empty if there is one."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. While the socket can't be had, the log says why.

        One that somebody removes is made again; those who are connected stay so.
        """
        backoff = Backoff(_FIRST_RETRY_SECONDS)
        async with anyio.create_task_group() as tasks:
            commands = self._make(tasks)
            listener = self._try_to_listen()
            task_status.started()
            tasks.start_soon(self._folder.run)
            while True:
                if listener is not None:
                    await self._serve(listener, commands, tasks)
                    backoff.reset()
                    _log.warning("control: %s was removed: creating it again", self._path)
                else:
                    with anyio.move_on_after(backoff.next()):
                        await self._until_changed(self._identity())
                listener = self._try_to_listen()

    async def _until_changed(self, found: Identity | None) -> None:
        await self._folder.wait_until(lambda: self._identity() != found)

    def _try_to_listen(self) -> socket.socket | None:
        before = self._reason
        try:
            listener = listen_at(self._path)
        except OSError as error:
            self._reason = str(error.strerror or error)
            if self._reason != before:
                _log.warning(
                    "%s: can't listen on %s: %s; `hami-mock ctl` won't reach this agent",
                    FLAG,
                    self._path,
                    self._reason,
                )
            return None
        self._reason = ""
        if before:
            _log.info("%s: listening on %s now", FLAG, self._path)
        return listener

    def _identity(self) -> Identity | None:
        try:
            return identity(self._path)
        except OSError:
            return None  # A folder on the way to it can't be read, say.

    def status(self) -> dict[str, Any]:
        return {"socket": str(self._path), "connections": self._connections}

    async def _serve(self, listener: socket.socket, commands: Answering, tasks: TaskGroup) -> None:
        """Let clients in until the socket's file isn't ours any more."""

        def take(connection: socket.socket) -> None:
            tasks.start_soon(self._connected, connection, commands)

        accept = partial(accept_all, listener, take, "control")
        with listener:
            own = self._identity()
            if own is None:
                return  # So soon?
            try:
                await first_of(accept, partial(self._until_changed, own))
            finally:
                # Somebody may have put another socket in its place.
                if self._identity() == own:
                    self._path.unlink(missing_ok=True)

    async def _connected(self, accepted: socket.socket, commands: Answering) -> None:
        self._connections += 1
        try:
            with accepted:
                await self._answer(Connection(accepted), commands)
        except* OSError as errors:
            # It took too long, or doesn't want the answer any more.
            _log.debug("control: %s", repr(errors.exceptions[0]))
        except* Exception as errors:
            # Whatever it is, it ends this connection only.
            _log.error("control: a connection ended with an internal error", exc_info=errors)
        finally:
            self._connections -= 1

    async def _answer(self, connection: Connection, commands: Answering) -> None:
        try:
            self._check(connection)
            line = await connection.read_line()
            if not line:
                return
            request = read_request(line)
            if request.command in STREAMS:
                await self._stream(connection, commands.stream(request))
            else:
                await connection.send(result_line(await commands.run(request)))
        except* HamiMockError as errors:
            (error,) = errors.exceptions
            assert isinstance(error, HamiMockError)
            await connection.send(error_line(error))

    def _check(self, connection: Connection) -> None:
        if not connection.is_allowed:
            raise StartError("only root and the agent's own user may control it")
        if self._connections > _MOST_CONNECTIONS:
            raise StartError(
                f"the agent has {_MOST_CONNECTIONS} control connections already: end some of them, "
                "such as `hami-mock ctl events -f`"
            )

    async def _stream(self, connection: Connection, results: AsyncGenerator[Any, None]) -> None:
        """Send results for as long as the client is there."""

        async def send() -> None:
            async with aclosing(results):
                async for result in results:
                    await connection.send(result_line(result))

        await first_of(send, connection.until_closed)
