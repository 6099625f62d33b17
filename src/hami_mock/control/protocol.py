"""What client and agent say to each other: one line of JSON each way. Pure.

A request is `{"command": "fail", "arguments": {…}}`. An answer is `{"result": …}`, or
`{"error": ["line", …], "code": 2}` with the exit code that the error means. `follow` gets an answer
for each event, `watch` one for each change of the status and `top` a snapshot about once a second,
until one side goes away; all else gets one answer.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hami_mock.errors import HamiMockError, StartError, UsageError
from hami_mock.kit.text import cut
from hami_mock.settings.places import CONTROL_SOCKET

DEFAULT_SOCKET = CONTROL_SOCKET
FLAG = "--control-socket"
VARIABLE = "HAMI_MOCK_CONTROL_SOCKET"

FOLLOW = "follow"
WATCH = "watch"
TOP = "top"
STREAMS = (FOLLOW, WATCH, TOP)
"""The commands that have many answers."""

MOST_REQUEST_BYTES = 1024 * 1024
"""A request may carry a scenario, which people write by hand."""
_LONGEST_PROBLEM = 1500


@dataclass(frozen=True)
class Request:
    """What the agent shall do."""

    command: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> bytes:
        return _line({"command": self.command, "arguments": self.arguments})


def read_request(line: bytes) -> Request:
    """Return the request that a line is. Raises UsageError if it is none."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError("the request is not JSON") from error
    match data:
        case {"command": str(command), "arguments": dict(arguments), **rest} if not rest:
            return Request(command, arguments)
    raise UsageError('a request is {"command": "…", "arguments": {…}}')


def result_line(result: Any) -> bytes:
    return _line({"result": result})


def error_line(error: HamiMockError) -> bytes:
    is_usage = isinstance(error, UsageError)
    problems = error.problems if isinstance(error, UsageError) else (str(error),)
    lines = [cut(problem, _LONGEST_PROBLEM) for problem in problems]
    return _line({"error": lines, "code": 2 if is_usage else 1})


def read_answer(line: bytes) -> Any:
    """Return the result that a line carries.

    Raises UsageError or StartError if it carries an error instead.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        data = None
    match data:
        case {"result": result}:
            return result
        case {"error": list(lines), "code": 2}:
            raise UsageError(map(str, lines))
        case {"error": list(lines)}:
            raise StartError("\n".join(map(str, lines)))
    raise StartError(f"can't understand the agent's answer: {line[:100]!r}")


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"
