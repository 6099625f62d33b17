"""A few GET paths over HTTP/1.1, one answer per connection.

Three probes and a scrape every few seconds don't need a web framework: importing one would take
longer, and more memory, than all the rest of the agent.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

import anyio

from hami_mock.errors import StartError

_REQUEST_SECONDS = 5.0
_log = logging.getLogger(__name__)


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
    server = await asyncio.start_server(partial(_answer, routes), sock=listener)
    bound = listener.getsockname()
    try:
        yield f"{bound[0]}:{bound[1]}"
    finally:
        asyncio.get_running_loop().remove_reader(listener)
        with anyio.CancelScope(shield=True):
            # Who was let in last becomes a connection in the loop's next turn; asyncio would leak
            # it if its server were closed by then.
            await asyncio.sleep(0)
        server.close()


def _listen(host: str, port: int) -> socket.socket:
    """Listen, on IPv4 and IPv6 alike if no host is given.

    asyncio would resolve the address in a thread, which takes longer than the rest of the start.
    """
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


async def _answer(
    routes: Routes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        with anyio.fail_after(_REQUEST_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(_respond(head, routes))
            await writer.drain()
    except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        _log.debug("HTTP: %s", repr(error))
    finally:
        writer.close()


def _respond(head: bytes, routes: Routes) -> bytes:
    method, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    if method not in ("GET", "HEAD"):
        answer = Answer(b"only GET and HEAD\n", HTTPStatus.METHOD_NOT_ALLOWED)
    elif path in routes:
        answer = routes[path]()
    else:
        known = "try " + " ".join(routes) + "\n"
        answer = Answer(known.encode(), HTTPStatus.NOT_FOUND)
    lines = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Connection: close",
    )
    header = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return header if method == "HEAD" else header + answer.body
