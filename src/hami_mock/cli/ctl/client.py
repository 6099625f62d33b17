"""`hami-mock ctl`: send one request to the running agent, and show its answer.

People run this again and again, inside of a pod: it imports little.
"""

import shutil
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Self

from hami_mock.cli.ctl.parser import parse
from hami_mock.cli.output import say, show
from hami_mock.control.protocol import (
    FLAG,
    FOLLOW,
    MOST_REQUEST_BYTES,
    STREAMS,
    WATCH,
    Request,
    read_answer,
)
from hami_mock.errors import StartError, UsageError
from hami_mock.kit.terminal import width

_ANSWER_SECONDS = 60.0
"""A change of the configuration may wait for the API server."""
_CLEAR = "\x1b[H\x1b[J"
_PIECE = 256 * 1024


def main(arguments: list[str]) -> int:
    """Raises UsageError if the arguments are wrong, StartError if there is no agent to be had."""
    wanted = parse(arguments)
    if isinstance(wanted, str):
        say(wanted, end="")
        return 0
    command, parsed = wanted.command, wanted.parsed
    request = command.request(parsed)
    for result in ask(parsed.control_socket, request):
        data = command.pick(result)
        if request.command == WATCH:
            # Each status is a document of its own, as each event is.
            show([data], parsed.output, _again(command.screen(data)), stream=True)
        else:
            show(data, parsed.output, command.screen(data), stream=isinstance(data, list))
    return 0


def _again(lines: Iterable[str]) -> Iterator[str]:
    """Yield a screen that takes the place of the one before; without a terminal, one more."""
    if width() is None:
        yield from lines
        yield ""
        return
    # What doesn't fit would scroll the top out of sight.
    first, *others = islice(lines, shutil.get_terminal_size().lines - 1)
    yield f"{_CLEAR}{first}"
    yield from others


def ask(path: str, request: Request) -> Iterator[Any]:
    """Yield the answers of the agent that listens there; for `follow` a list for each event.

    Raises UsageError or StartError if it has none, or says no.
    """
    line = request.line
    if len(line) > MOST_REQUEST_BYTES:
        raise UsageError(f"the request is too large: {len(line)} bytes of {MOST_REQUEST_BYTES}")
    is_stream = request.command in STREAMS
    with _connect(path) as connection, connection.makefile("rb") as answers:
        # If it doesn't want to hear us, what it sent before says why.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(line)
        connection.settimeout(None if is_stream else _ANSWER_SECONDS)
        try:
            # A reset is an end too: of an agent that had left something unread.
            with suppress(ConnectionResetError):
                for answer in answers:
                    result = read_answer(answer)
                    yield [result] if request.command == FOLLOW else result
                    if not is_stream:
                        return
        except TimeoutError as error:
            raise StartError(f"{FLAG}: the agent at {path!r} doesn't answer") from error
    raise StartError(f"{FLAG}: the agent at {path!r} closed the connection")


class Conversation:
    """A request with many answers, for who waits for other things too: it can be selected."""

    def __init__(self, path: str, request: Request) -> None:
        self._path = path
        self._socket = _connect(path)
        self._received = b""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(request.line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def answers(self) -> Iterator[Any]:
        """Yield those that have come, after there was something to read.

        Raises UsageError or StartError if the agent says no, or is gone.
        """
        try:
            piece = self._socket.recv(_PIECE)
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise StartError(f"{FLAG}: the agent at {self._path!r} closed the connection")
        *lines, self._received = (self._received + piece).split(b"\n")
        yield from map(read_answer, lines)


def _connect(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_ANSWER_SECONDS)
    try:
        connection.connect(path)
    except OSError as error:
        connection.close()
        raise StartError(f"{FLAG}: {_why_not(path, error)}") from error
    return connection


def _why_not(path: str, error: OSError) -> str:
    match error:
        case FileNotFoundError() | ConnectionRefusedError():
            return (
                f"no agent listens on {path!r}: start one with `hami-mock run`, run this where it "
                f"runs (kubectl exec POD -- hami-mock ctl …), or name its socket with {FLAG}"
            )
        case PermissionError():
            return f"not allowed to open {path!r}: run this as root, or as the agent's own user"
    return f"can't connect to {path!r}: {error.strerror or error}"
