"""A gRPC server on a unix socket that can be stopped for good.

grpclib's Server.close() cancels handlers but leaves connections open: the kubelet's stream would
hang until the process ends. When grpclib has mended that, tests/integration/test_server.py fails.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from grpclib.protocol import H2Protocol
from grpclib.server import Server

from hami_mock.kit.broadcast import Broadcast
from hami_mock.kubelet.rpc import Codec

if TYPE_CHECKING:
    from grpclib._typing import IServable

_GRACE_SECONDS = 0.5
"""What a call in flight gets to end by itself when the server stops."""


class _Connection(H2Protocol):
    """A connection that its server knows from before it is made until it is lost."""

    server: "_StoppableServer"
    own_transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.own_transport = transport
        super().connection_made(transport)
        if self.server.stopping:
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.server.forget(self)
        super().connection_lost(exc)


class _StoppableServer(Server):
    """A Server that knows its connections and its calls in flight."""

    def __init__(self, handler: "IServable") -> None:
        super().__init__([handler], codec=Codec())
        self.stopping = False
        self._connections: set[_Connection] = set()
        self._lost = Broadcast()

    def _protocol_factory(self) -> H2Protocol:
        plain = super()._protocol_factory()
        connection = _Connection(plain.handler, plain.config, plain.h2_config)
        connection.server = self
        self._connections.add(connection)
        return connection

    def forget(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        self._lost.send()

    async def calls_done(self, timeout: float) -> None:
        calls = [task for handler in self._handlers for task in handler._tasks.values()]
        if calls:
            await asyncio.wait(calls, timeout=timeout)

    async def abort_connections(self, timeout: float) -> None:
        self.stopping = True
        for connection in self._connections:
            if connection.own_transport is not None:
                # Not close(): that waits for a reader that may never read.
                connection.own_transport.abort()
        with anyio.move_on_after(timeout):
            await self._lost.wait_until(lambda: not self._connections)


@asynccontextmanager
async def serve(
    handler: "IServable", path: Path, end_streams: Callable[[], None]
) -> AsyncIterator[None]:
    """Serve on a unix socket for as long as the context lasts, and leave nothing of it behind."""
    server = _StoppableServer(handler)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        with anyio.CancelScope(shield=True):
            # It takes no time, and a server that is half started can't be stopped.
            await server.start(sock=listener)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                # 1. Nobody finds the socket any more, or gets in.
                path.unlink(missing_ok=True)
                asyncio.get_running_loop().remove_reader(listener)
                # 2. Lists end cleanly: the kubelet sees streams that ended, not ones that broke.
                end_streams()
                # 3. An Allocate in flight still gets its answer.
                await server.calls_done(_GRACE_SECONDS)
                # 4. Who was let in last becomes a connection in the loop's next turn; asyncio
                #    would leak it if its server were closed by then.
                await asyncio.sleep(0)
                # 5. What is left is a client that doesn't read: it is cut off.
                server.close()
                await server.abort_connections(_GRACE_SECONDS)
