"""Requests and answers of HTTP/1.1 as bytes: what is asked for, and what goes back. Pure."""

from collections.abc import Callable, Mapping
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


Routes = Mapping[str, Callable[[], Answer | Stream]]


def answer_to(head: bytes, routes: Routes) -> Answer | Stream:
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
    if path not in routes:
        known = "try " + " ".join(routes) + "\n"
        return Answer(known.encode(), HTTPStatus.NOT_FOUND)
    return routes[path]()


def respond(head: bytes, routes: Routes) -> bytes:
    """Return the bytes of an answer; of a stream, its headers alone."""
    answer = answer_to(head, routes)
    if isinstance(answer, Stream):
        return stream_head(answer)
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


def _header(status: HTTPStatus, headers: Mapping[str, str]) -> bytes:
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"
