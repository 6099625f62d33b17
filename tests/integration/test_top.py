"""`hami-mock top`, in a terminal and without one, against a running agent."""

import fcntl
import json
import os
import signal
import struct
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.agents import AgentThread, agent_thread, run_cli
from tests.integration.terminals import ANSI, Terminal, terminal
from tests.integration.viewers import nobody_asked, shown_node
from tests.invented import invent

OPEN, CLOSE = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture
def path(socket_folder: Path) -> str:
    return str(socket_folder / "control.sock")


@pytest.fixture
def agent(socket_folder: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentThread]:
    with shown_node(socket_folder, control_socket=path) as shown:
        monkeypatch.setattr(shown.agent.agent.holders, "refresh_if_old", nobody_asked)
        shown.agent.call(invent, shown.state)
        yield shown.agent


def press(screen: Terminal, keys: bytes) -> None:
    os.write(screen._screen, keys)


def end_of(screen: Terminal) -> int:
    screen.read_all()
    return screen.process.wait(timeout=10)


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize("keys", [b"q", b"xq", b"\x04", b""], ids=["q", "xq", "^D", "^C"])
def test_a_key_quits_and_the_terminal_is_as_it_was(path: str, keys: bytes) -> None:
    with terminal("top", "--control-socket", path) as screen:
        screen.read_until("Nothing has happened yet.")
        assert OPEN in screen.output
        assert "ml/train-resnet-0" in screen.output
        press(screen, keys)
        if not keys:
            # The test's own terminal is another one, so Ctrl-C comes as the signal that it is.
            screen.process.send_signal(signal.SIGINT)
        assert end_of(screen) == 0
        assert screen.output.endswith(f"\x1b[?25h{CLOSE}")
        assert "Traceback" not in screen.output


def test_a_change_is_shown_at_once(agent: AgentThread, path: str) -> None:
    with terminal("top", "--control-socket", path) as screen:
        screen.read_until("8 of 8 cards healthy")
        agent.act("fail", "nvidia/0", xid=79)
        screen.read_until("7 of 8 cards healthy")
        screen.read_until("CardFailed")
        press(screen, b"q")
        assert end_of(screen) == 0


@pytest.mark.usefixtures("agent")
def test_it_is_drawn_anew_for_another_size_of_the_window(path: str) -> None:
    with terminal("top", "--control-socket", path, columns=80, lines=40) as screen:
        screen.read_until("Nothing has happened yet.")
        assert "V100" not in screen.output
        size = struct.pack("HHHH", 30, 130, 0, 0)
        fcntl.ioctl(screen._screen, termios.TIOCSWINSZ, size)
        screen.process.send_signal(signal.SIGWINCH)
        screen.read_until("V100")
        press(screen, b"q")
        assert end_of(screen) == 0


@pytest.mark.usefixtures("agent")
def test_no_frame_is_larger_than_the_terminal(path: str) -> None:
    with terminal("top", "--control-socket", path, columns=80, lines=18) as screen:
        screen.read_until("lines more")
        press(screen, b"q")
        assert end_of(screen) == 0
    first = screen.output.split("\x1b[H")[1].split("\x1b[J")[0]
    shown = [ANSI.sub("", line) for line in first.split("\n")]
    assert len(shown) <= 18
    assert all(len(line) <= 80 for line in shown)


@pytest.mark.usefixtures("agent")
def test_terminated_it_gives_the_terminal_back(path: str) -> None:
    with terminal("top", "--control-socket", path) as screen:
        screen.read_until("Nothing has happened yet.")
        screen.process.terminate()
        assert end_of(screen) == 128 + signal.SIGTERM
        assert CLOSE in screen.output


def test_the_end_of_the_agent_is_the_end(socket_folder: Path, path: str) -> None:
    with agent_thread(socket_folder, control_socket=path):
        screen_of = terminal("top", "--control-socket", path)
        screen = screen_of.__enter__()
        screen.read_until("8 of 8 cards healthy")
    try:
        assert end_of(screen) == 1
        last = screen.output.partition(CLOSE)[2]
        assert "hami-mock: --control-socket: the agent at" in last
        assert "closed the connection" in last
    finally:
        screen_of.__exit__(None, None, None)


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize("flags", [[], ["--once"]])
def test_without_a_terminal_there_is_one_plain_frame(path: str, flags: list[str]) -> None:
    done = run_cli("top", "--control-socket", path, *flags)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("n1  not ready  8 of 8 cards healthy, 3 pods")
    assert "\x1b" not in done.stdout
    assert "serving/llm-7d9c5b7c4-x2x9k" in done.stdout


@pytest.mark.usefixtures("agent")
def test_once_in_a_terminal_leaves_the_frame_there(path: str) -> None:
    with terminal("top", "--once", "--control-socket", path) as screen:
        assert end_of(screen) == 0
    assert OPEN not in screen.output
    assert any(line.startswith("nvidia/0") for line in screen.lines)


@pytest.mark.usefixtures("agent")
def test_scripts_get_the_snapshot(path: str) -> None:
    done = run_cli("top", "-o", "json", HAMI_MOCK_CONTROL_SOCKET=path)
    node = json.loads(done.stdout)
    assert node["cards"]["nvidia/0"]["containers"]["ml/train-resnet-0/main"]["memory"] == 14_336


def test_without_an_agent_it_says_how_to_start_one(path: str) -> None:
    done = run_cli("top", "--control-socket", path)
    assert done.returncode == 1
    assert "no agent listens on" in done.stderr


def test_completion_knows_it() -> None:
    assert "top\t" in run_cli("__complete", "to").stdout
    assert "--once\t" in run_cli("__complete", "top", "--").stdout
