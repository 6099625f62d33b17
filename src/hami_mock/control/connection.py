"""A client's connection as the agent sees it, with bounds: how long, how much, and from whom."""

import socket

import anyio

from hami_mock.control.protocol import MOST_REQUEST_BYTES
from hami_mock.errors import UsageError
from hami_mock.kit.own_socket import is_allowed

_REQUEST_SECONDS = 5.0
"""A client sends its request as soon as it is connected."""
_SEND_SECONDS = 10.0
"""Who reads nothing for this long is cut off."""
_CHUNK = 64 * 1024


class Connection:
    """Reads one line, and sends others. Takes the socket over, but doesn't close it."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    @property
    def is_allowed(self) -> bool:
        """Whether the other side is root or our own user."""
        return is_allowed(self._socket)

    async def read_line(self) -> bytes:
        """Return the request, or nothing if the other side closed before it had sent one.

        Raises UsageError if it is too large, TimeoutError if it takes too long.
        """
        received = bytearray()
        data = b""
        with anyio.fail_after(_REQUEST_SECONDS):
            while b"\n" not in data and len(received) <= MOST_REQUEST_BYTES:
                data = await self._receive()
                if not data:
                    return b""
                received += data
        line = bytes(received.partition(b"\n")[0])
        if len(line) > MOST_REQUEST_BYTES:
            raise UsageError(f"the request has more than {MOST_REQUEST_BYTES} bytes")
        return line

    async def send(self, data: bytes) -> None:
        """Send all of it. Raises TimeoutError if it takes too long, OSError if nobody reads."""
        rest = memoryview(data)
        with anyio.fail_after(_SEND_SECONDS):
            while rest:
                await anyio.wait_writable(self._socket)
                rest = rest[self._socket.send(rest) :]

    async def until_closed(self) -> None:
        while await self._receive():
            pass

    async def _receive(self) -> bytes:
        await anyio.wait_readable(self._socket)
        try:
            return self._socket.recv(_CHUNK)
        except ConnectionResetError:
            # It went away without having read all that it was sent.
            return b""
