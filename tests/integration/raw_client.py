"""A client of HTTP/2 that does what no gRPC library would."""

import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from h2.events import Event, ResponseReceived, StreamReset, TrailersReceived

from tests.integration.evil_kubelet import PATIENCE, h2_connection

OPTIONS, LIST, PREFERENCE, ALLOCATE, PRESTART = (
    f"/v1beta1.DevicePlugin/{name}"
    for name in (
        "GetDevicePluginOptions",
        "ListAndWatch",
        "GetPreferredAllocation",
        "Allocate",
        "PreStartContainer",
    )
)


def framed(message: bytes) -> bytes:
    return struct.pack(">?I", False, len(message)) + message


class RawClient:
    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._h2 = h2_connection(client_side=True)
        self._h2.initiate_connection()
        try:
            self._socket.settimeout(PATIENCE)
            self._socket.connect(str(path))
            self._flush()
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def open(self, path: str, data: bytes | None = None, *, end: bool = True) -> int:
        """Send a request and return its stream."""
        stream = self._head(path, end=end and data is None)
        if data is not None:
            self._h2.send_data(stream, data, end_stream=end)
        self._flush()
        return stream

    def _head(self, path: str, *, end: bool) -> int:
        stream: int = self._h2.get_next_available_stream_id()
        headers = [
            *((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x")),
            *(("te", "trailers"), ("content-type", "application/grpc")),
        ]
        self._h2.send_headers(stream, headers, end_stream=end)
        return stream

    def open_and_reset(self, path: str) -> None:
        """Do both in one go: the server reads the end before it can begin."""
        self.reset(self._head(path, end=False))

    def reset(self, stream: int) -> None:
        self._h2.reset_stream(stream)
        self._flush()

    def events(self, until: Callable[[Event], bool]) -> list[Event]:
        """Read until an event comes; ConnectionError if the server closes the connection."""
        seen: list[Event] = []
        while True:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the server has closed the connection")
            seen += self._h2.receive_data(data)
            self._flush()
            if any(map(until, seen)):
                return seen

    def answer(self, stream: int) -> tuple[str, str]:
        """Return status and message of a call."""

        def told(event: Any) -> tuple[str, str] | None:
            if isinstance(event, StreamReset) and event.stream_id == stream:
                return f"reset {event.error_code}", ""
            is_head = isinstance(event, TrailersReceived | ResponseReceived)
            headers = dict(event.headers) if is_head and event.stream_id == stream else {}
            status = headers.get("grpc-status")
            return None if status is None else (status, headers.get("grpc-message", ""))

        events = self.events(lambda event: told(event) is not None)
        return next(answer for answer in map(told, events) if answer)

    def _flush(self) -> None:
        self._socket.sendall(self._h2.data_to_send())
