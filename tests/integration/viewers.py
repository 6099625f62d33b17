"""Viewers of the page's events, over real sockets."""

import json
import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

ASK = b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n"


class Viewer:
    """Somebody who looks, message by message."""

    def __init__(self, address: tuple[str, int], timeout: float = 10, buffer: int = 0) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(timeout)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect(address)
        self.socket.sendall(ASK)
        self._file = self.socket.makefile("rb")

    def head(self) -> list[str]:
        """The status and the headers."""
        return [*iter(lambda: self._file.readline().decode().strip(), "")]

    def messages(self) -> Iterator[tuple[str, Any]]:
        """The events by name, until the server ends."""
        name = ""
        for line in self._file:
            key, _, value = line.decode().rstrip("\n").partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                yield name, json.loads(value)

    def next(self) -> tuple[str, Any]:
        return next(self.messages())

    def wait_for(self, *keys: str) -> Any:
        """The next change that has something under the keys."""
        for name, data in self.messages():
            found: Any = data if name == "change" else {}
            for key in keys:
                found = found.get(key) or {}
            if found:
                return found
        raise AssertionError(f"the stream ended without {keys}")

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()
