import io
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hami_mock.cli.ctl.client import main
from hami_mock.cli.ctl.commands import all_commands
from hami_mock.cli.ctl.parser import Wanted, parse
from hami_mock.control.protocol import DEFAULT_SOCKET, MOST_REQUEST_BYTES, VARIABLE, Request
from hami_mock.errors import StartError, UsageError
from hami_mock.node.fault_kinds import VERBS

NOW = 1_800_000_000.0
COMMANDS = all_commands()
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def wanted(line: str) -> Wanted:
    found = parse(shlex.split(line))
    assert isinstance(found, Wanted)
    return found


def request(line: str) -> Request:
    found = wanted(line)
    return found.command.request(found.parsed)


def problems(line: str) -> str:
    with pytest.raises(UsageError) as caught:
        request(line)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "command", "arguments"),
    [
        ("status", "status", {}),
        ("fail nvidia/0", "fail", {"targets": ["nvidia/0"]}),
        ("fail a --xid 79 b", "fail", {"targets": ["a", "b"], "xid": 79}),
        ("fail --xid 79", "fail", {"targets": ["nvidia"], "xid": 79}),
        (
            "fail 'mlu/*' --reason 'no power' --for 1m30s",
            "fail",
            {"targets": ["mlu/*"], "reason": "no power", "for": 90.0},
        ),
        ("recover all", "recover", {"targets": ["all"]}),
        ("lose a --for=500ms", "lose", {"targets": ["a"], "for": 0.5}),
        ("return a b", "return", {"targets": ["a", "b"]}),
        ("degrade a --reason ecc", "degrade", {"targets": ["a"], "reason": "ecc"}),
        ("down nvidia", "down", {"targets": ["nvidia"]}),
        ("up nvidia", "up", {"targets": ["nvidia"]}),
        (
            "delay allocate 2s",
            "delay",
            {"targets": ["all"], "call": "allocate", "seconds": 2.0},
        ),
        (
            "delay prestart 2 --for 1h a b",
            "delay",
            {"targets": ["a", "b"], "call": "prestart", "seconds": 2.0, "for": 3600.0},
        ),
        (
            "hang allocate 30s a",
            "hang",
            {"targets": ["a"], "call": "allocate", "seconds": 30.0},
        ),
        (
            "break allocate --reason x",
            "break",
            {"targets": ["all"], "call": "allocate", "reason": "x"},
        ),
        ("refuse a", "refuse", {"targets": ["a"]}),
        ("drop a", "drop", {"targets": ["a"]}),
        ("clear", "clear", {"targets": ["all"]}),
        ("clear a b", "clear", {"targets": ["a", "b"]}),
        (
            "set nvidia-cards=4 mlu_model=a=b",
            "set",
            {"values": {"nvidia-cards": "4", "mlu-model": "a=b"}, "reset": False},
        ),
        (
            "set cards nvidia=4 mlu=0",
            "set",
            {"values": {"nvidia-cards": "4", "mlu-cards": "0"}, "reset": False},
        ),
        (
            "set memory_factor ascend=auto --reset",
            "set",
            {"values": {"ascend-memory-factor": "auto"}, "reset": True},
        ),
        ("set --reset", "set", {"values": {}, "reset": True}),
        ("set http-listen=", "set", {"values": {"http-listen": ""}, "reset": False}),
        ("reload", "reload", {}),
        ("scenario stop", "stop", {}),
        ("scenario status", "status", {}),
        ("status --watch", "watch", {}),
        ("events", "events", {}),
        ("events -f --since 7", "follow", {"since": 7}),
        ("events --since 2m", "events", {"after": NOW - 120}),
        ("events --since 2026-11-16T10:00:00Z", "events", {"after": 1794823200.0}),
    ],
)
def test_words_become_a_request(
    line: str, command: str, arguments: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    assert request(line) == Request(command, arguments)


def test_every_verb_is_a_command_with_examples() -> None:
    assert VERBS.keys() <= COMMANDS.keys()
    for name, command in COMMANDS.items():
        for example in command.examples:
            assert wanted(example.partition(" <")[0]).command.help == command.help, name


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fial nvidia/0", "ctl: 'fial' is not a command; did you mean fail?"),
        ("xyz", "'xyz' is not a command: use one of status, fail, recover,"),
        ("scenario pause", "'scenario pause' is not a command"),
        ("--xid 79 fail", "ctl: '--xid' is not a command"),
        ("fail", "fail: name the targets: cards: nvidia/0, a UUID, "),
        ("lose", "ctl lose: the following arguments are required: CARD"),
        ("down", "ctl down: the following arguments are required: RESOURCE"),
        ("delay allocate", "ctl delay: the following arguments are required: DURATION"),
        ("delay list 2s", "argument CALL: 'list' is not allowed: it must be one of allocate,"),
        (
            "delay allocate 2x",
            "argument DURATION: '2x' is not allowed: it must be a time such as 30s,",
        ),
        ("fail a --for soon", "argument --for: 'soon' is not allowed: it must be a time such as"),
        (
            "fail a --xid x",
            "argument --xid: 'x' is not allowed: it must be a whole number from 1 to 99999",
        ),
        ("fail a --xd 79", "--xd: there is no such flag; did you mean --xid?"),
        ("recover a --for 2m", "--for: there is no such flag"),
        ("reload now", "'now' is not expected here; see hami-mock ctl reload --help"),
        ("events --since soon", "'soon' is not allowed: it must be a time such as 2m (ago), 10:00"),
        ("status -o xml", "argument -o/--output: 'xml' is not allowed: it must be one of"),
        ("--control-socket '' status", "--control-socket: it is empty"),
        ("set", "set: name an option, such as nvidia-cards=4"),
        ("set cards", "set cards: it has no value: write set cards nvidia=2"),
        ("set nvidia-cards", "set nvidia-cards: it has no value: write set nvidia-cards=2"),
        ("set nvidia-cards 4", "set nvidia-cards: it has no value: write set nvidia-cards=2"),
        ("set nvidia_memory", "set nvidia_memory: it has no value: write set nvidia-memory=N"),
        ("set memory", "set memory: it has no value: write set memory nvidia=N"),
        ("set caards", "there is no such option; did you mean cards?"),
        ("set nvidia-cards=4 5", "set: '5' is not allowed: it must be OPTION=VALUE"),
        ("set cards nvidai=4", "set: 'nvidai=4' is not allowed: it must be VENDOR=VALUE"),
        ("set a=1 a=2", "set: a is given twice"),
        ("scenario play", "ctl scenario play: the following arguments are required: FILE"),
        ("scenario play /none/x.yaml", "scenario play: can't read '/none/x.yaml': No such file"),
    ],
)
def test_mistakes_are_named(line: str, message: str) -> None:
    assert message in problems(line)


def test_an_unknown_flag_does_not_blame_its_value() -> None:
    assert problems("fail a --xd 79 b").count("\n") == 0


@pytest.mark.parametrize(
    "line",
    [
        "--control-socket /x.sock -o json fail a",
        "fail a --control-socket /x.sock -o json",
        "fail --control-socket=/x.sock a -ojson",
        "-o json fail a --control-socket /x.sock",
    ],
)
def test_common_flags_stand_anywhere(line: str) -> None:
    found = wanted(line)
    assert (found.parsed.control_socket, found.parsed.output) == ("/x.sock", "json")
    assert found.command.request(found.parsed) == Request("fail", {"targets": ["a"]})


def test_the_socket_comes_from_flag_variable_or_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wanted("status").parsed.control_socket == DEFAULT_SOCKET
    monkeypatch.setenv(VARIABLE, "/y.sock")
    assert wanted("status").parsed.control_socket == "/y.sock"
    assert wanted("status --control-socket /x.sock").parsed.control_socket == "/x.sock"


@pytest.mark.parametrize("line", ["", "-h", "--help", "help", "--control-socket /x"])
def test_the_overview_lists_all_commands(line: str, capsys: Captured) -> None:
    assert main(shlex.split(line)) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and command.help in out for name, command in COMMANDS.items())
    assert "hami-mock ctl fail nvidia/0 --xid 79" in out


@pytest.mark.parametrize("line", ["scenario", "scenario --help"])
def test_a_group_of_commands_has_an_overview(line: str, capsys: Captured) -> None:
    assert main(shlex.split(line)) == 0
    out = capsys.readouterr().out
    assert "scenario play drill.yaml" in out
    assert "delay" not in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as exit_:
        parse([*name.split(), "--help"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    assert all(f"  hami-mock ctl {example}\n" in out for example in COMMANDS[name].examples)
    assert "--control-socket PATH" in out


def test_a_scenario_is_read_where_the_client_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "drill.yaml"
    file.write_text("steps: [°]\n", encoding="utf-8")
    expected = {"text": "steps: [°]\n", "name": "drill.yaml", "seed": 7}
    assert request(f"scenario play {file} --seed 7") == Request("play", expected)
    monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
    assert request("scenario play -") == Request("play", {"text": "x", "name": "stdin"})
    file.write_bytes(b"\xff")
    assert "not UTF-8 text" in problems(f"scenario play {file}")


def test_a_scenario_that_is_too_large_is_not_sent(tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_text("x" * MOST_REQUEST_BYTES)
    with pytest.raises(UsageError, match="the request is too large"):
        main(["scenario", "play", str(file), "--control-socket", str(tmp_path / "x")])


def test_no_agent_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = str(tmp_path / "none.sock")
    with pytest.raises(StartError) as caught:
        main(["status", "--control-socket", path])
    message = str(caught.value)
    assert all(word in message for word in (path, "--control-socket", "hami-mock run"))
    with pytest.raises(StartError, match=r"can't connect to .*too long"):
        main(["status", "--control-socket", "/" + "x" * 200])


def test_the_client_loads_nothing_large() -> None:
    code = (
        "import sys, hami_mock.cli.ctl.client; "
        "print(*{'anyio', 'asyncio', 'grpclib', 'yaml'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
