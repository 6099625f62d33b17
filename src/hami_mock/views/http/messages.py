"""Requests and answers of HTTP/1.1 as bytes: what is asked for, and what goes back. Pure."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from hami_mock.views.http.audience import Audience

LONGEST_HEAD = 8192
"""Bytes of a request's line and headers."""


@dataclass(frozen=True)
class Answer:
    """What goes back."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """An answer without an end: what an audience is told from now on.

    `first` makes what somebody new is told before that; it isn't called for who isn't let in.
    """

    audience: Audience
    first: Callable[[], bytes]
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pieces:
    """A long answer that is made while it is sent: what isn't sent yet takes no memory."""

    make: Callable[[], Generator[bytes, None, None]]
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Named:
    """Answers for the names that stand behind a path with a slash at its end."""

    answer: Callable[[str], Answer]


Routes = Mapping[str, Callable[[], Answer | Stream | Pieces] | Named]


def answer_to(head: bytes, routes: Routes) -> Answer | Stream | Pieces:
    """Return the answer to a request line with its headers, whole or cut off for its length."""
    line = head.split(b"\r\n", 1)[0].decode("latin-1")
    method, _, rest = line.partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    if b"\r\n" not in head:
        return Answer(b"the address is too long\n", HTTPStatus.REQUEST_URI_TOO_LONG)
    if not is_whole(head):
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        return Answer(b"at most 8 KiB of headers\n", status)
    if method not in ("GET", "HEAD"):
        return Answer(b"only GET and HEAD\n", HTTPStatus.METHOD_NOT_ALLOWED)
    route = routes.get(path)
    if route is None:
        folder, slash, name = path.rpartition("/")
        behind = routes.get(folder + slash)
        if isinstance(behind, Named):
            return behind.answer(name)
    if route is None or isinstance(route, Named):
        known = "try " + " ".join(routes) + "\n"
        return Answer(known.encode(), HTTPStatus.NOT_FOUND)
    return route()


def respond(head: bytes, routes: Routes) -> bytes:
    """Return the bytes of an answer; of a stream or a long one, its headers alone."""
    answer = answer_to(head, routes)
    if isinstance(answer, Stream):
        return stream_head(answer)
    if isinstance(answer, Pieces):
        return pieces_head(answer)
    return message(answer, with_body=not is_head(head))


def is_whole(head: bytes) -> bool:
    return b"\r\n\r\n" in head


def is_head(head: bytes) -> bool:
    """Tell whether the headers of an answer are wanted without the answer."""
    return head.startswith(b"HEAD ")


def message(answer: Answer, *, with_body: bool = True) -> bytes:
    header = _header(
        answer.status,
        {
            "Content-Type": answer.content_type,
            "Content-Length": str(len(answer.body)),
            **answer.headers,
        },
    )
    return header + answer.body if with_body else header


def stream_head(stream: Stream) -> bytes:
    """Return the headers of an answer that ends when somebody closes the connection."""
    headers = {"Content-Type": stream.content_type, **stream.headers}
    return _header(HTTPStatus.OK, headers)


def pieces_head(pieces: Pieces) -> bytes:
    headers = {"Content-Type": pieces.content_type, "Transfer-Encoding": "chunked"}
    return _header(HTTPStatus.OK, headers)


def piece(text: bytes) -> bytes:
    """Return a piece of a long answer as it goes over the wire; an empty one is its end."""
    return b"%x\r\n%b\r\n" % (len(text), text)


def _header(status: HTTPStatus, headers: Mapping[str, str]) -> bytes:
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"
