"""A few GET paths over HTTP/1.1, one answer per connection, for whoever can reach the port.

Three probes and a scrape every few seconds don't need a web framework: importing one would take
longer, and more memory, than all the rest of the agent.

Strangers can take neither memory nor files nor the probes: there are so many connections and no
more, and for one more the one is closed that has waited longest without asking. Who asks at once,
as the kubelet does, is answered in any crowd.
"""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from hami_mock.errors import StartError
from hami_mock.views.http.condition import Condition

_MOST_CONNECTIONS = 100
_LONGEST_HEAD = 8192
"""Bytes of a request's line and headers."""
_REQUEST_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
_RETRY_SECONDS = 0.2
_BACKLOG = 512
"""Who is in the kernel's queue; who finds it full knocks again a second later."""


@dataclass(frozen=True)
class Answer:
    """What goes back."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


Routes = Mapping[str, Callable[[], Answer]]


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
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LONGEST_HEAD)
    milliseconds = int(_ANSWER_SECONDS * 1000)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    return listener


@dataclass(eq=False)
class _Connection:
    """A request as far as it has come, and then what is left of its answer."""

    socket: socket.socket
    head: bytes = b""
    answer: memoryview | bytes = b""
    """Empty until the whole request is there."""
    deadline: asyncio.TimerHandle = field(init=False)


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
        for condition in (self._crowd, self._no_accept, self._no_answer):
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
            piece = connection.socket.recv(_LONGEST_HEAD - len(connection.head))
        except BlockingIOError:
            self._loop.add_reader(connection.socket, self._hear, connection)
            return
        except OSError:
            piece = b""
        if not piece:  # It is gone, in whatever way.
            self._close(connection)
            return
        connection.head += piece
        if _is_whole(connection.head) or len(connection.head) == _LONGEST_HEAD:
            self._loop.remove_reader(connection.socket)
            connection.answer = memoryview(self._respond(connection.head))
            connection.deadline.cancel()
            self._give_time(connection, _ANSWER_SECONDS)
            self._tell(connection)
        else:
            self._loop.add_reader(connection.socket, self._hear, connection)

    def _respond(self, head: bytes) -> bytes:
        try:
            return respond(head, self._routes)
        except Exception as error:
            # Whatever it is, the next request may go well; a probe that fails says enough.
            self._no_answer.occurred(error)
            return _message(Answer(b"see the log\n", HTTPStatus.INTERNAL_SERVER_ERROR))

    def _tell(self, connection: _Connection) -> None:
        try:
            sent = connection.socket.send(connection.answer)
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = len(connection.answer)  # Nobody is left to read it.
        connection.answer = connection.answer[sent:]
        if connection.answer:
            self._loop.add_writer(connection.socket, self._tell, connection)
        else:
            self._close(connection)

    def _give_time(self, connection: _Connection, seconds: float) -> None:
        connection.deadline = self._loop.call_later(seconds, self._close, connection)

    def _close_oldest(self, connections: list[_Connection]) -> None:
        silent = (each for each in connections if not each.answer)
        self._close(next(silent, connections[0]))

    def _close(self, connection: _Connection) -> None:
        del self._open[connection]
        connection.deadline.cancel()
        self._loop.remove_reader(connection.socket)
        self._loop.remove_writer(connection.socket)
        connection.socket.close()


def respond(head: bytes, routes: Routes) -> bytes:
    """Return the answer to a request line with its headers, whole or cut off for its length."""
    line = head.split(b"\r\n", 1)[0].decode("latin-1")
    method, _, rest = line.partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    if b"\r\n" not in head:
        answer = Answer(b"the address is too long\n", HTTPStatus.REQUEST_URI_TOO_LONG)
    elif not _is_whole(head):
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        answer = Answer(b"at most 8 KiB of headers\n", status)
    elif method not in ("GET", "HEAD"):
        answer = Answer(b"only GET and HEAD\n", HTTPStatus.METHOD_NOT_ALLOWED)
    elif path in routes:
        answer = routes[path]()
    else:
        known = "try " + " ".join(routes) + "\n"
        answer = Answer(known.encode(), HTTPStatus.NOT_FOUND)
    return _message(answer, with_body=method != "HEAD")


def _is_whole(head: bytes) -> bool:
    return b"\r\n\r\n" in head


def _message(answer: Answer, *, with_body: bool = True) -> bytes:
    lines = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Connection: close",
    )
    header = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return header + answer.body if with_body else header
