"""gRPC as bytes, made and read with h2 alone: calls to a plugin, and answers of a kubelet."""

import socket
from urllib.parse import quote_from_bytes

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from tests.fuzz.raw_server import PATIENCE

_HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "x"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
]


def message(payload: bytes) -> bytes:
    return b"\x00" + len(payload).to_bytes(4, "big") + payload


def request(path: str, payload: bytes) -> bytes:
    """Return a whole call, as a client would send it in one go."""
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    client.send_headers(1, [(":path", path), *_HEADERS])
    client.send_data(1, message(payload), end_stream=True)
    return client.data_to_send()


def answer(payload: bytes | None, status: int = 0, words: bytes = b"") -> bytes:
    """Return an answer to the first call of a connection."""
    server = H2Connection(H2Configuration(client_side=False))
    server.initiate_connection()
    server.receive_data(request("/x", b""))
    server.send_headers(1, [(":status", "200"), ("content-type", "application/grpc+proto")])
    if payload is not None:
        body = message(payload)
        # More than a window would have to wait for the other side.
        for start in range(0, min(len(body), 65_000), 16_000):
            server.send_data(1, body[start : start + 16_000])
    trailers = [("grpc-status", str(status)), ("grpc-message", quote_from_bytes(words))]
    server.send_headers(1, trailers, end_stream=True)
    return server.data_to_send()


class Call:
    """One call to a server, with a message of any size."""

    def __init__(self, connection: socket.socket, path: str, payload: bytes) -> None:
        self._socket = connection
        self._socket.settimeout(PATIENCE)
        self._h2 = H2Connection(H2Configuration(client_side=True))
        self._h2.initiate_connection()
        self._h2.send_headers(1, [(":path", path), *_HEADERS])
        self._rest = message(payload)
        self.status = ""
        """The gRPC status, when the call has ended in order."""

    def run(self, *, first_only: bool = False) -> None:
        """Send, and read until the call ends; or until the first message, of a stream."""
        self._send()
        while data := self._socket.recv(65536):
            events = self._h2.receive_data(data)
            if any(self._is_end(event, first_only) for event in events):
                return
            self._send()

    def _is_end(self, event: Event, first_only: bool) -> bool:
        if isinstance(event, ResponseReceived | TrailersReceived):
            self.status = str(dict(event.headers or ()).get(b"grpc-status", b""), "ascii")
        if isinstance(event, DataReceived):
            self._h2.acknowledge_received_data(event.flow_controlled_length or 0, 1)
            return first_only
        return isinstance(event, StreamEnded | StreamReset | ConnectionTerminated)

    def _send(self) -> None:
        while self._rest and (room := self._h2.local_flow_control_window(1)):
            size = min(room, self._h2.max_outbound_frame_size)
            piece, self._rest = self._rest[:size], self._rest[size:]
            self._h2.send_data(1, piece, end_stream=not self._rest)
        self._socket.sendall(self._h2.data_to_send())
