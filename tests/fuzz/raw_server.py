"""A server that answers whatever it is told to, on a unix socket or over TCP."""

import errno
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PATIENCE = 60.0
"""Long: other programs run on this machine too."""


class RawServer:
    """Answers one request on each connection, and closes it."""

    def __init__(self, path: Path | None = None) -> None:
        self.answer: Callable[[bytes], bytes] = lambda _: b""
        """Gives the answer to what was received first."""
        self.answered = 0
        self._more = threading.Condition()
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(path))
            self._listener.listen(128)
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def wait_for(self, answered: int, seconds: float) -> None:
        """Wait until so many requests were answered, but no longer than that."""
        with self._more:
            self._more.wait_for(lambda: self.answered >= answered, seconds)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # it was closed
            threading.Thread(target=self._converse, args=[connection], daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        # Whoever called may be gone already: that is its right.
        with connection, suppress(OSError):
            connection.settimeout(PATIENCE)
            request = connection.recv(65536)
            connection.sendall(self.answer(request))
            with self._more:
                self.answered += 1
                self._more.notify_all()
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass


def exchange(connection: socket.socket, data: bytes) -> bytes:
    """Send all at once, say that this was all, and return all that comes back."""
    connection.settimeout(PATIENCE)
    received = bytearray()
    try:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError as error:
        # The other side may have heard enough before the end.
        if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
            raise
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return bytes(received)
