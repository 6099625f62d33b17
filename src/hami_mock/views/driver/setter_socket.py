"""Answers setters of the driver's library, on a socket in the driver root."""

import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.kit.own_socket import accept_all, is_allowed, listen_at
from hami_mock.views.driver.layout import MAGIC, VERSION
from hami_mock.views.driver.messages import REPLY, REQUEST
from hami_mock.views.driver.setters import RESULTS

_SECONDS = 5.0
"""What a client has for its request, and to take the answer."""
_MOST_AT_ONCE = 16

_log = logging.getLogger(__name__)

Answering = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, int]]]
"""Does what a request asks and returns the fields of the reply."""


class SetterSocket:
    """Serves the socket. `answer` returns when the state file shows what was set."""

    def __init__(self, path: Path, answer: Answering) -> None:
        self._path = path
        self._answer = answer
        self._room = anyio.CapacityLimiter(_MOST_AT_ONCE)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Raises OSError if the socket can't be had."""
        with listen_at(self._path) as listener:
            try:
                async with anyio.create_task_group() as tasks:
                    task_status.started()

                    def take(connection: socket.socket) -> None:
                        tasks.start_soon(self._connected, connection)

                    await accept_all(listener, take, "driver")
            finally:
                self._path.unlink(missing_ok=True)
                with suppress(OSError):  # somebody else's files are in there
                    self._path.parent.rmdir()

    async def _connected(self, connection: socket.socket) -> None:
        with connection:
            connection.setblocking(False)
            try:
                async with self._room:
                    with anyio.fail_after(_SECONDS):
                        await self._serve(connection)
            except (OSError, TimeoutError) as error:
                # It took too long, or doesn't want the answer any more.
                _log.debug("driver: a setter: %r", error)
            except Exception:
                # Whatever it is, it ends this connection only.
                _log.exception("driver: a setter ended with an internal error")

    async def _serve(self, connection: socket.socket) -> None:
        received = b""
        while len(received) < REQUEST.size:
            await anyio.wait_readable(connection)
            more = connection.recv(REQUEST.size - len(received))
            if not more:
                return
            received += more
        reply = await self._reply(connection, REQUEST.unpack(received))
        rest = REPLY.pack({"magic": MAGIC, **reply})
        while rest:
            await anyio.wait_writable(connection)
            rest = rest[connection.send(rest) :]

    async def _reply(
        self, connection: socket.socket, request: Mapping[str, Any]
    ) -> Mapping[str, int]:
        if not is_allowed(connection):
            return {"result": RESULTS["NO_PERMISSION"]}
        if (request["magic"], request["version"]) != (MAGIC, VERSION):
            return {"result": RESULTS["INVALID_ARGUMENT"]}
        return await self._answer(request)
