"""Kubelets that misbehave on a unix socket, with HTTP/2 frames written by hand where needed."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded
from h2.exceptions import ProtocolError

Answer = Callable[[H2Connection, int], None]
Misbehaviour = Callable[[socket.socket], None]

OK = [(":status", "200"), ("content-type", "application/grpc")]
FINE = [("grpc-status", "0")]
PATIENCE = 20.0


def h2_connection(*, client_side: bool) -> H2Connection:
    """A connection that lets anything out."""
    return H2Connection(
        H2Configuration(
            client_side=client_side,
            header_encoding="utf-8",
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=False,
        )
    )


def answering(answer: Answer) -> Misbehaviour:
    """Speak HTTP/2 well until a request has come; then answer it."""

    def serve(peer: socket.socket) -> None:
        connection = h2_connection(client_side=False)
        connection.initiate_connection()
        peer.sendall(connection.data_to_send())
        while data := peer.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, DataReceived):
                    size = event.flow_controlled_length
                    connection.acknowledge_received_data(size, event.stream_id)
                if isinstance(event, StreamEnded):
                    answer(connection, event.stream_id)
            peer.sendall(connection.data_to_send())

    return serve


def _close(peer: socket.socket) -> None:
    """Nothing: the caller closes the connection."""


def _close_after_greeting(peer: socket.socket) -> None:
    connection = h2_connection(client_side=False)
    connection.initiate_connection()
    peer.sendall(connection.data_to_send())


def _speak_http_1(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def _send_unknown_frame(peer: socket.socket) -> None:
    _close_after_greeting(peer)
    peer.sendall(b"\x00\x00\x01\xbb\x00\x00\x00\x00\x00?")
    peer.recv(65536)


def _send_odd_header(peer: socket.socket) -> None:
    def answer(connection: H2Connection, stream: int) -> None:
        connection.send_headers(stream, [*OK, ("x-name", "gerät")])

    answering(answer)(peer)


def _go_away(connection: H2Connection, stream: int) -> None:
    connection.close_connection()


def _reset(connection: H2Connection, stream: int) -> None:
    connection.reset_stream(stream, error_code=2)


def _no_status(connection: H2Connection, stream: int) -> None:
    connection.send_headers(stream, [("content-type", "application/grpc")])
    connection.send_data(stream, b"\x00\x00\x00\x00\x00")
    connection.send_headers(stream, FINE, end_stream=True)


def _body(data: bytes) -> Answer:
    def answer(connection: H2Connection, stream: int) -> None:
        connection.send_headers(stream, OK)
        connection.send_data(stream, data)
        connection.send_headers(stream, FINE, end_stream=True)

    return answer


def _no_message(connection: H2Connection, stream: int) -> None:
    connection.send_headers(stream, [*OK, *FINE], end_stream=True)


def _no_trailers(connection: H2Connection, stream: int) -> None:
    connection.send_headers(stream, OK)
    connection.send_data(stream, b"\x00\x00\x00\x00\x00", end_stream=True)


def _long_reason(connection: H2Connection, stream: int) -> None:
    error = [("grpc-status", "2"), ("grpc-message", "x" * 10_000)]
    connection.send_headers(stream, [*OK, *error], end_stream=True)


_CLOSED = "closed the connection before it answered"

MISBEHAVIOURS: dict[str, tuple[Misbehaviour, str]] = {
    "closes at once": (_close, _CLOSED),
    "closes after its greeting": (_close_after_greeting, _CLOSED),
    "speaks HTTP/1": (_speak_http_1, _CLOSED),
    "sends an unknown frame": (_send_unknown_frame, _CLOSED),
    "sends a header that isn't ASCII": (_send_odd_header, _CLOSED),
    "goes away": (answering(_go_away), _CLOSED),
    "resets the stream": (answering(_reset), _CLOSED),
    "gives no :status": (answering(_no_status), "can't be understood"),
    "compresses": (answering(_body(b"\x01\x00\x00\x00\x00")), "compressed"),
    "cuts off": (answering(_body(b"\x00\x00\x00\x00\x64abc")), "cut off"),
    "cuts off at once": (answering(_body(b"\x00\x00\x00\x00\x64")), "cut off"),
    "cuts the head off": (answering(_body(b"\x00\x00")), "cut off"),
    "declares 4 GiB": (answering(_body(b"\x00\xff\xff\xff\xffabc")), "too long"),
    "gives no message": (answering(_no_message), "without a message"),
    "gives no trailers": (answering(_no_trailers), "without a status"),
    "gives a long reason": (answering(_long_reason), "xxx…"),
}


@contextmanager
def evil_kubelet(path: Path, misbehaviour: Misbehaviour) -> Iterator[None]:
    """Listen on a socket and treat each connection badly, in a thread of its own."""

    def treat(peer: socket.socket) -> None:
        with peer, suppress(OSError, ProtocolError):
            misbehaviour(peer)

    def accept() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                threading.Thread(target=treat, args=(peer,), daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield
        finally:
            path.unlink()
            # A close alone wouldn't wake the thread.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)


@contextmanager
def full_queue(path: Path) -> Iterator[None]:
    """Listen on a socket whose queue is full, and never accept."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen(0)
        first.connect(str(path))
        try:
            yield
        finally:
            path.unlink()
