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
from dataclasses import dataclass
from http import HTTPStatus

import anyio
from anyio.lowlevel import checkpoint

from hami_mock.errors import StartError
from hami_mock.views.http.condition import Condition

_MOST_CONNECTIONS = 100
_LONGEST_HEAD = 8192
"""Bytes of a request's line and headers."""
_REQUEST_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
_RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class Answer:
    """What goes back."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


Routes = Mapping[str, Callable[[], Answer]]


@asynccontextmanager
async def serve_http(address: str, routes: Routes) -> AsyncIterator[str]:
    """Serve at HOST:PORT for as long as the context lasts; yield the address that came of it.

    Raises StartError if the address can't be had.
    """
    host, _, port = address.rpartition(":")
    try:
        listener = _listen(host.strip("[]"), int(port))
    except (OSError, OverflowError) as error:
        raise StartError(f"--http-listen: can't listen on {address!r}: {error}") from error
    with listener:
        bound = listener.getsockname()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_Server(listener, routes).run)
            yield f"{bound[0]}:{bound[1]}"
            tasks.cancel_scope.cancel()


def _listen(host: str, port: int) -> socket.socket:
    """Listen, on IPv4 and IPv6 alike if no host is given.

    asyncio would resolve the address in a thread, which takes longer than the rest of the start.
    """
    if not host and socket.has_dualstack_ipv6():
        listener = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    else:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    listener.setblocking(False)
    # What a connection sends that isn't read yet, and an answer that nobody reads, are memory of
    # the kernel's, and the pod pays for it. Connections inherit both.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LONGEST_HEAD)
    milliseconds = int(_ANSWER_SECONDS * 1000)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    return listener


class _Server:
    """Lets connections in, hears and answers them.

    asyncio's own server accepts without bounds, and when files run out it logs a traceback for
    each try and rests for a second.
    """

    def __init__(self, listener: socket.socket, routes: Routes) -> None:
        self._listener = listener
        self._routes = routes
        self._open: dict[socket.socket, anyio.CancelScope] = {}
        """Oldest first."""
        self._heard: set[socket.socket] = set()
        """Those that have asked, and are being answered."""
        self._crowd = Condition("too many connections: the oldest is closed for each new one")
        self._no_accept = Condition("can't accept a connection")
        self._no_answer = Condition("can't answer")
        # The rest of the agent needs files too.
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        room = _MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(files // 4, 1)
        self._most = min(_MOST_CONNECTIONS, room)

    async def run(self) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    connection = await self._accept()
                    self._open[connection] = anyio.CancelScope()
                    tasks.start_soon(self._serve, connection)
                    if len(self._open) > self._most:
                        self._crowd.occurred()
                        await self._close_oldest()
                    # One a turn of the loop: who asks is heard before another hundred is let in.
                    await checkpoint()
        finally:
            for connection in self._open:
                connection.close()

    async def _accept(self) -> socket.socket:
        while True:
            for condition in (self._crowd, self._no_accept, self._no_answer):
                condition.look_whether_over()
            try:
                connection, _ = await asyncio.get_running_loop().sock_accept(self._listener)
            except OSError as error:
                # Linux says that files have run out before anybody knocks.
                await anyio.wait_readable(self._listener)
                self._no_accept.occurred(error)
                if self._open:
                    await self._close_oldest()
                else:
                    await anyio.sleep(_RETRY_SECONDS)
            else:
                return connection

    async def _close_oldest(self) -> None:
        # Not the newest: it may not have had the time to ask.
        older = list(self._open)[:-1] or list(self._open)
        oldest = next((each for each in older if each not in self._heard), older[0])
        self._open[oldest].cancel()
        while oldest in self._open:
            await checkpoint()

    async def _serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        scope = self._open[connection]
        try:
            with scope:
                scope.deadline = anyio.current_time() + _REQUEST_SECONDS
                head = b""
                while not _is_whole(head) and len(head) < _LONGEST_HEAD:
                    piece = await loop.sock_recv(connection, _LONGEST_HEAD - len(head))
                    if not piece:
                        return
                    head += piece
                self._heard.add(connection)
                scope.deadline = anyio.current_time() + _ANSWER_SECONDS
                await loop.sock_sendall(connection, self._respond(head))
        except OSError:
            pass  # The other side is gone: nobody is left to tell.
        finally:
            connection.close()
            self._heard.discard(connection)
            del self._open[connection]

    def _respond(self, head: bytes) -> bytes:
        try:
            return respond(head, self._routes)
        except Exception as error:
            # Whatever it is, the next request may go well; a probe that fails says enough.
            self._no_answer.occurred(error)
            return _message(Answer(b"see the log\n", HTTPStatus.INTERNAL_SERVER_ERROR))


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
