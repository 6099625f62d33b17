"""A gRPC server on a unix socket that can be stopped for good.

grpclib's Server.close() cancels handlers but leaves connections open: the kubelet's stream would
hang until the process ends. When grpclib has mended that, tests/integration/test_server.py fails.
"""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from grpclib.protocol import H2Protocol, Stream
from grpclib.server import Handler, Server
from h2.errors import ErrorCodes

from hami_mock.kit.broadcast import Broadcast
from hami_mock.kubelet.rpc import Codec, SafeProtocol, bound

if TYPE_CHECKING:
    from grpclib._typing import IServable
    from grpclib.server import Stream as CallStream

_GRACE_SECONDS = 0.5
"""What a call in flight gets to end by itself when the server stops."""

# The kubelet has one connection, one list and a call or two; its largest request, the preference
# among a quarter of a million IDs, is smaller than 4 MiB.
_LONGEST_REQUEST = 16 * 1024 * 1024
_MOST_CONNECTIONS = 16
_MOST_CALLS = 64
_MOST_RESETS = 200
"""How many more of its streams a client may reset than end well."""


class SharedMessage:
    """A message that many streams may send at a time, ready in its frame.

    grpclib would make a copy for each of them, and keep it while a reader is slow: of a full list,
    that is 4 MiB.
    """

    def __init__(self, key: object, pieces: Sequence[bytes | bytearray]) -> None:
        self.key = key
        self.size = sum(map(len, pieces))
        self._frame = b"".join((struct.pack(">?I", False, self.size), *pieces))

    async def send(self, stream: "CallStream[Any, bytes]") -> None:
        if not stream._send_initial_metadata_done:
            await stream.send_initial_metadata()
        await stream._stream.send_data(self._frame)


class _Connection(SafeProtocol):
    """A connection that its server knows from before it is made until it is lost."""

    server: "_StoppableServer"
    handler: "_Calls"
    own_transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.own_transport = transport
        self.handler.cut_off = transport.abort
        super().connection_made(transport)
        if self.server.stopping or self.server.is_crowded:
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.server.forget(self)
        super().connection_lost(exc)


class _Calls(Handler):
    """The calls of one connection.

    grpclib releases a stream at the end of its task. A task that is cancelled before it ran has no
    end, so each stream that a client resets at once would stay in memory: it is released here.
    """

    server: "_StoppableServer"
    cut_off: Callable[[], None]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: dict[Stream, Callable[[], None]] = {}
        self._resets = 0

    def accept(self, stream: Stream, headers: Any, release_stream: Callable[[], Any]) -> None:
        def end() -> None:
            if self._release(stream):
                self._resets = max(0, self._resets - 1)

        self._open[stream] = release_stream
        if self.server.is_busy or not {":method", ":path"} <= dict(headers).keys():
            stream.reset_nowait(ErrorCodes.REFUSED_STREAM)
            self._release(stream)
            return
        bound(stream, _LONGEST_REQUEST, is_request=True)
        super().accept(stream, headers, end)

    def cancel(self, stream: Stream) -> None:
        super().cancel(stream)
        self._release(stream)
        self._resets += 1
        if self._resets > _MOST_RESETS:
            self.cut_off()

    def _release(self, stream: Stream) -> bool:
        release = self._open.pop(stream, None)
        if release is not None:
            release()
        return release is not None

    @property
    def count(self) -> int:
        return len(self._open)


class _StoppableServer(Server):
    """A Server that knows its connections and its calls in flight, and bounds both."""

    def __init__(self, handlers: "Sequence[IServable]") -> None:
        super().__init__(handlers, codec=Codec())
        self.stopping = False
        self._connections: set[_Connection] = set()
        self._lost = Broadcast()

    def _protocol_factory(self) -> H2Protocol:
        handler = _Calls(self._mapping, self._codec, self._status_details_codec, self.__dispatch__)
        connection = _Connection(handler, self._config, self._h2_config)
        handler.server = connection.server = self
        self._connections.add(connection)
        self._handlers.add(handler)
        return connection

    @property
    def is_crowded(self) -> bool:
        return len(self._connections) > _MOST_CONNECTIONS

    @property
    def is_busy(self) -> bool:
        return sum(connection.handler.count for connection in self._connections) > _MOST_CALLS

    def forget(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        self._handlers.discard(connection.handler)
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
    handler: "IServable", path: Path, end_streams: Callable[[], None], *more: "IServable"
) -> AsyncIterator[None]:
    """Serve on a unix socket for as long as the context lasts, and leave nothing of it behind."""
    server = _StoppableServer([handler, *more])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        # Nobody gets in before `start` listens: whatever the umask, it is the kubelet's and ours.
        path.chmod(0o600)
        own = path.lstat()
        with anyio.CancelScope(shield=True):
            # It takes no time, and a server that is half started can't be stopped.
            await server.start(sock=listener)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                # 1. Nobody finds the socket any more, or gets in.
                with suppress(OSError):
                    # Not what somebody has put in its place.
                    if os.path.samestat(path.lstat(), own):
                        path.unlink()
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
