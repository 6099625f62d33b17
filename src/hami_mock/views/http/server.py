"""A few GET paths over HTTP/1.1, one answer per connection, for whoever can reach the port.

Three probes, a scrape every few seconds and a page don't need a web framework: importing one would
take longer, and more memory, than all the rest of the agent.

Strangers can take neither memory nor files nor the probes: there are so many connections and no
more, and for one more the one is closed that has waited longest without asking. Who asks at once,
as the kubelet does, is answered in any crowd: those who look at a stream get half of the room, and
a viewer that doesn't keep up is closed.
"""

import asyncio
import resource
import socket
from collections import deque
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from hami_mock.errors import StartError
from hami_mock.views.http.audience import Audience
from hami_mock.views.http.condition import Condition
from hami_mock.views.http.messages import (
    LONGEST_HEAD,
    Answer,
    Pieces,
    Routes,
    Stream,
    answer_to,
    is_head,
    is_whole,
    message,
    piece,
    pieces_head,
    respond,
    stream_head,
)

__all__ = ["Answer", "Pieces", "Routes", "respond", "serve_http"]

_MOST_CONNECTIONS = 100
_REQUEST_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
"""Who hasn't read all that there is for it after this time is closed."""
_MOST_WAITING = 16
"""Messages of a stream that a viewer may be behind."""
_STREAM_BUFFER = 64 * 1024
"""Bytes of a stream that the kernel keeps for a viewer who doesn't read; it doubles that."""
_RETRY_SECONDS = 0.2
_BACKLOG = 512
"""Who is in the kernel's queue; who finds it full knocks again a second later."""


@asynccontextmanager
async def serve_http(
    address: str, routes: Routes, option: str = "http-listen"
) -> AsyncIterator[str]:
    """Serve at HOST:PORT for as long as the context lasts; yield the address that came of it.

    Raises StartError, which names the option, if the address can't be had.
    """
    host, _, port = address.rpartition(":")
    try:
        listener = _listen(host.strip("[]"), int(port))
    except (OSError, OverflowError) as error:
        raise StartError(f"--{option}: can't listen on {address!r}: {error}") from error
    with listener:
        server = _Server(listener, routes)
        server.run()
        try:
            bound = listener.getsockname()
            yield f"{bound[0]}:{bound[1]}"
        finally:
            server.stop()


def _listen(host: str, port: int) -> socket.socket:
    """Listen, on IPv4 and IPv6 alike if no host is given.

    asyncio would resolve the address in a thread, which takes longer than the rest of the start.
    """
    if not host and socket.has_dualstack_ipv6():
        listener = socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
        )
    else:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listener.setblocking(False)
    # What a connection sends that isn't read yet, and an answer that nobody reads, are memory of
    # the kernel's, and the pod pays for it. Connections inherit both.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LONGEST_HEAD)
    milliseconds = int(_ANSWER_SECONDS * 1000)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    return listener


@dataclass(eq=False)
class _Connection:
    """A request as far as it has come, and then what is left of its answer."""

    socket: socket.socket
    head: bytes = b""
    has_asked: bool = False
    outgoing: deque[memoryview] = field(default_factory=deque)
    audience: Audience | None = None
    """Where it is a viewer: its answer has no end."""
    deadline: asyncio.TimerHandle | None = None
    pieces: Generator[bytes, None, None] | None = None
    """What is left to be made of a long answer."""

    def stop_the_clock(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()


class _Server:
    """Lets connections in, hears and answers them.

    asyncio's own server accepts without bounds; when files run out, it logs a traceback for each
    try and rests for a second. And with a task for each connection it would take longer to throw
    strangers out than they take to come in.
    """

    def __init__(self, listener: socket.socket, routes: Routes) -> None:
        self._listener = listener
        self._routes = routes
        self._loop = asyncio.get_running_loop()
        self._open: dict[_Connection, None] = {}
        """Oldest first."""
        self._crowd = Condition("too many connections: the oldest is closed for each new one")
        self._no_accept = Condition("can't accept a connection")
        self._no_answer = Condition("can't answer")
        self._no_seat = Condition("too many viewers: more of them are refused")
        # The rest of the agent needs files too.
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        room = _MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(files // 4, 1)
        self._most = min(_MOST_CONNECTIONS, room)
        self._retry: asyncio.TimerHandle | None = None

    def run(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def stop(self) -> None:
        self._loop.remove_reader(self._listener)
        if self._retry:
            self._retry.cancel()
        for connection in list(self._open):
            self._close(connection)

    def _accept(self) -> None:
        """Let one in. The loop hears who has asked before it comes here again."""
        for condition in (self._crowd, self._no_accept, self._no_answer, self._no_seat):
            condition.look_whether_over()
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return  # It has gone away again.
        except OSError as error:
            self._no_accept.occurred(error)
            if self._open:
                self._close_oldest(list(self._open))
            else:
                self._loop.remove_reader(self._listener)
                self._retry = self._loop.call_later(_RETRY_SECONDS, self.run)
            return
        accepted.setblocking(False)
        connection = _Connection(accepted)
        self._open[connection] = None
        self._give_time(connection, _REQUEST_SECONDS)
        self._hear(connection)
        if len(self._open) > self._most:
            self._crowd.occurred()
            # Not the newest: it may not have had the time to ask.
            self._close_oldest(list(self._open)[:-1])

    def _hear(self, connection: _Connection) -> None:
        try:
            piece = connection.socket.recv(LONGEST_HEAD - len(connection.head))
        except BlockingIOError:
            self._loop.add_reader(connection.socket, self._hear, connection)
            return
        except OSError:
            piece = b""
        if not piece:  # It is gone, in whatever way.
            self._close(connection)
            return
        connection.head += piece
        if is_whole(connection.head) or len(connection.head) == LONGEST_HEAD:
            self._loop.remove_reader(connection.socket)
            connection.has_asked = True
            connection.outgoing.append(memoryview(self._respond(connection)))
            self._give_time(connection, _ANSWER_SECONDS)
            self._tell(connection)
        else:
            self._loop.add_reader(connection.socket, self._hear, connection)

    def _respond(self, connection: _Connection) -> bytes:
        try:
            answer = answer_to(connection.head, self._routes)
            if isinstance(answer, Answer):
                return message(answer, with_body=not is_head(connection.head))
            if isinstance(answer, Pieces):
                if not is_head(connection.head):
                    connection.pieces = answer.make()
                return pieces_head(answer)
            return self._open_stream(connection, answer)
        except Exception as error:
            # Whatever it is, the next request may go well; a probe that fails says enough.
            self._no_answer.occurred(error)
            return message(Answer(b"see the log\n", HTTPStatus.INTERNAL_SERVER_ERROR))

    def _open_stream(self, connection: _Connection, stream: Stream) -> bytes:
        if is_head(connection.head):
            return stream_head(stream)
        if sum(each.audience is not None for each in self._open) >= self._most // 2:
            self._no_seat.occurred()
            text = b"too many viewers: try again later\n"
            return message(Answer(text, HTTPStatus.SERVICE_UNAVAILABLE))
        first = stream.first()
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _STREAM_BUFFER)
        connection.audience = stream.audience
        stream.audience.join(connection, partial(self._tell_more, connection))
        self._loop.add_reader(connection.socket, self._hear_viewer, connection)
        return stream_head(stream) + first

    def _hear_viewer(self, connection: _Connection) -> None:
        """Close a viewer that is gone, or says something: it has asked all that it may."""
        try:
            connection.socket.recv(1)
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close(connection)

    def _tell_more(self, connection: _Connection, news: bytes) -> None:
        if len(connection.outgoing) == _MOST_WAITING:
            self._close(connection)
            return
        connection.outgoing.append(memoryview(news))
        if len(connection.outgoing) == 1:
            self._give_time(connection, _ANSWER_SECONDS)
            self._tell(connection)

    def _tell(self, connection: _Connection) -> None:
        while connection.outgoing:
            piece = connection.outgoing.popleft()
            try:
                sent = connection.socket.send(piece)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._close(connection)  # Nobody is left to read it.
                return
            if sent < len(piece):
                connection.outgoing.appendleft(piece[sent:])
                self._loop.add_writer(connection.socket, self._tell, connection)
                return
        if connection.pieces is not None:
            # The next one comes in the loop's next turn: who reads fast must not stop all else.
            self._make_piece(connection)
        elif connection.audience is None:
            self._close(connection)
        else:
            self._loop.remove_writer(connection.socket)
            connection.stop_the_clock()

    def _make_piece(self, connection: _Connection) -> None:
        assert connection.pieces is not None
        try:
            made = next(connection.pieces, b"")
        except Exception as error:
            # Without its end the reader knows that the answer is broken.
            self._no_answer.occurred(error)
            self._close(connection)
            return
        if not made:
            connection.pieces = None
        connection.outgoing.append(memoryview(piece(made)))
        self._give_time(connection, _ANSWER_SECONDS)
        self._loop.add_writer(connection.socket, self._tell, connection)

    def _give_time(self, connection: _Connection, seconds: float) -> None:
        connection.stop_the_clock()
        connection.deadline = self._loop.call_later(seconds, self._close, connection)

    def _close_oldest(self, connections: list[_Connection]) -> None:
        """Close who hasn't asked; if all have, who gets an answer; a viewer only as the last."""
        self._close(min(connections, key=lambda c: (c.has_asked, c.audience is not None)))

    def _close(self, connection: _Connection) -> None:
        del self._open[connection]
        if connection.audience is not None:
            connection.audience.leave(connection)
        if connection.pieces is not None:
            connection.pieces.close()
        connection.stop_the_clock()
        self._loop.remove_reader(connection.socket)
        self._loop.remove_writer(connection.socket)
        connection.socket.close()
