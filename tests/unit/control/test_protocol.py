import json

import pytest

from hami_mock.control import protocol
from hami_mock.control.checks import CHECKS, check_arguments
from hami_mock.control.protocol import Request, error_line, read_answer, read_request, result_line
from hami_mock.errors import HamiMockError, StartError, UsageError
from hami_mock.faults.actions import VERBS
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
def test_an_answer_of_somebody_else_makes_no_sense(line: bytes) -> None:
    with pytest.raises(StartError, match="makes no sense"):
        read_answer(line)


def test_agent_and_client_have_the_same_default() -> None:
    option = options.BY_NAME["control-socket"]
    assert option.default == protocol.DEFAULT_SOCKET
    assert f"--{option.name}" == protocol.FLAG
    assert protocol.VARIABLE in option.variables


def test_every_parameter_of_a_verb_has_a_check() -> None:
    assert all(parameter in CHECKS for verb in VERBS.values() for parameter in verb.parameters)


@pytest.mark.parametrize(
    "arguments",
    [
        {"targets": ["a", "b*"], "xid": 79, "reason": "it's hot, 90 °C"},
        {"call": "allocate", "seconds": 2, "for": 0.5},
        {"since": 0, "values": {"nvidia-cards": "4"}, "reset": True, "seed": 7},
        {"text": "a\nb", "name": "x.yaml"},
    ],
)
def test_arguments_that_are_right(arguments: dict[str, object]) -> None:
    check_arguments(arguments, frozenset(), arguments.keys())


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "targets": ([], "nvidia/0", [1], None),
        "xid": (0, 100_000, 79.0, "79", True),
        "reason": ("two\nlines", "x" * 501, 1),
        "call": ("list", 1, None, []),
        "seconds": (0, -1, 1e9, float("nan"), "2s", True),
        "for": (0, float("inf")),
        "since": (-1, 0.5),
        "values": ([], {"nvidia-cards": 4}),
        "reset": (1, None),
        "text": (1,),
        "name": (None,),
        "seed": (-1, 2**31, "7"),
    }.items(),
)
def test_arguments_that_are_wrong(name: str, values: tuple[object, ...]) -> None:
    for value in values:
        with pytest.raises(UsageError, match=f"^{name}: .* is not allowed: it must be "):
            check_arguments({name: value}, frozenset(), {name})


def test_all_that_is_wrong_with_arguments_is_said_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        check_arguments({"xid": 0, "more": 1}, {"targets"}, {"xid"})
    assert caught.value.problems == (
        "targets: it is missing",
        "xid: 0 is not allowed: it must be a whole number from 1 to 99999",
        "more: there is no such argument here",
    )


def test_lines_are_json_for_whoever_has_no_client() -> None:
    assert json.loads(error_line(UsageError("no"))) == {"error": ["no"], "code": 2}
