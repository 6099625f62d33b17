"""A client of HTTP/2 that does what no gRPC library would."""

import socket
import struct
from collections.abc import Callable
from pathlib import Path

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
        self._socket.settimeout(PATIENCE)
        self._socket.connect(str(path))
        self._h2 = h2_connection(client_side=True)
        self._h2.initiate_connection()
        self._flush()

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

        def is_end(event: Event) -> bool:
            is_last = isinstance(event, TrailersReceived | ResponseReceived | StreamReset)
            if not is_last or event.stream_id != stream:
                return False
            return isinstance(event, StreamReset) or "grpc-status" in dict(event.headers or ())

        last = next(filter(is_end, self.events(is_end)))
        if isinstance(last, StreamReset):
            return f"reset {last.error_code}", ""
        assert isinstance(last, TrailersReceived | ResponseReceived)
        headers = dict(last.headers or ())
        return str(headers["grpc-status"]), str(headers.get("grpc-message", ""))

    def _flush(self) -> None:
        self._socket.sendall(self._h2.data_to_send())
