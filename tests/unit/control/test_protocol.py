import json

import pytest

from hami_mock.control import protocol
from hami_mock.control.protocol import Request, error_line, read_answer, read_request, result_line
from hami_mock.errors import HamiMockError, StartError, UsageError
from hami_mock.settings import options


def test_a_request_comes_through_as_one_line() -> None:
    request = Request("fail", {"targets": ["nvidia/0"], "reason": "no\npower"})
    assert request.line.count(b"\n") == 1
    assert read_request(request.line) == request


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\n",
        b"no json\n",
        b"[" * 100_000,
        b"[]\n",
        b'{"command": 1, "arguments": {}}\n',
        b'{"command": "status"}\n',
        b'{"command": "status", "arguments": []}\n',
        b'{"command": "status", "arguments": {}, "more": 1}\n',
    ],
)
def test_garbage_is_no_request(line: bytes) -> None:
    with pytest.raises(UsageError, match="request"):
        read_request(line)


@pytest.mark.parametrize("result", [None, {"a": [1]}, [], "text"])
def test_a_result_comes_through(result: object) -> None:
    assert read_answer(result_line(result)) == result


@pytest.mark.parametrize("error", [UsageError(["one", "two"]), StartError("not now")])
def test_an_error_comes_through_as_what_it_was(error: HamiMockError) -> None:
    with pytest.raises(type(error)) as caught:
        read_answer(error_line(error))
    assert str(caught.value) == str(error)


@pytest.mark.parametrize("line", [b"HTTP/1.1 400\n", b"{}\n", b"", b'{"error": "x"}'])
def test_an_answer_of_somebody_else_is_not_understood(line: bytes) -> None:
    with pytest.raises(StartError, match=r"can.t understand the agent.s answer"):
        read_answer(line)


def test_agent_and_client_have_the_same_default() -> None:
    option = options.BY_NAME["control-socket"]
    assert option.default == protocol.DEFAULT_SOCKET
    assert f"--{option.name}" == protocol.FLAG
    assert protocol.VARIABLE in option.variables


def test_lines_are_json_for_whoever_has_no_client() -> None:
    assert json.loads(error_line(UsageError("no"))) == {"error": ["no"], "code": 2}
