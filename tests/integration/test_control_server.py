"""The control server: who may talk to it, who misbehaves, and how it starts and stops."""

import contextlib
import logging
import os
import shutil
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskStatus

from hami_mock.cli.ctl import client
from hami_mock.cli.ctl.client import main
from hami_mock.control import connection, server
from hami_mock.control.protocol import MOST_REQUEST_BYTES, Request
from hami_mock.errors import StartError
from hami_mock.kit import own_socket
from hami_mock.node.event_kinds import Kind
from tests.integration.control_rig import FOLLOW, STATUS, Ends, Raw, Served

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def served(socket_folder: Path) -> Served:
    return Served(socket_folder / "run" / "control.sock")


@pytest.mark.anyio
async def test_only_the_owner_may_open_the_socket(served: Served) -> None:
    async with served.run():
        assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(served.path.parent.stat().st_mode) == 0o700


BECOME_NOBODY = f"import os; os.setgroups([]); os.setuid({NOBODY})"
ASK_STATUS = f"""
import sys
from hami_mock.cli.ctl.client import Request, ask
{BECOME_NOBODY}
next(ask(sys.argv[-1], Request("status")))
"""


@needs_root
@pytest.mark.anyio
async def test_another_user_may_not(served: Served, socket_folder: Path) -> None:
    command = [sys.executable, "-c", ASK_STATUS, str(served.path)]
    async with served.run():
        barred = await anyio.run_process(command, check=False)
        # Even if the file lets them in.
        socket_folder.chmod(0o755)
        served.path.parent.chmod(0o755)
        served.path.chmod(0o666)
        refused = await anyio.run_process(command, check=False)
    assert b"run this as root, or as the agent's own user" in barred.stderr
    assert b"only root and the agent's own user may control it" in refused.stderr


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "the request is not JSON"),
        (b"\xff\xfe\n", "the request is not JSON"),
        (b"{}\n", 'a request is {"command"'),
        (Request("explode").line, "there is no command 'explode': use one of status, events,"),
        (Request("fail").line, "targets: is missing: it must be"),
        (Request("fail", {"targets": ["all"], "call": "x"}).line, "call: there is no such"),
        (Request("recover", {"targets": ["all"], "for": 1}).line, "for: there is no such"),
    ],
)
async def test_garbage_is_answered(served: Served, line: bytes, message: str) -> None:
    async with served.run():
        with Raw(served.path) as raw:
            await raw.send(line)
            answer = await raw.answer()
            assert answer["code"] == 2
            assert message in answer["error"][0]
            assert await raw.line() == b""


@pytest.mark.anyio
@pytest.mark.parametrize("end", [b"", b"\n"])
async def test_a_request_that_is_too_large_is_refused(served: Served, end: bytes) -> None:
    async with served.run():
        with Raw(served.path) as raw:
            try:
                await raw.send(b"x" * (MOST_REQUEST_BYTES + 1) + end)
            except BrokenPipeError:
                assert not end
            assert "the request has more than" in (await raw.answer())["error"][0]


@pytest.mark.anyio
async def test_a_client_that_asks_nothing_is_cut_off(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_REQUEST_SECONDS", 0.01)
    async with served.run():
        with Raw(served.path) as raw:
            await raw.send(b"{")
            assert await raw.line() == b""


@pytest.mark.anyio
async def test_a_client_that_reads_nothing_is_cut_off_and_blocks_nobody(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_SEND_SECONDS", 0.2)
    ends = Ends(monkeypatch)
    async with served.run():
        for _ in range(1000):
            served.state.events.add(Kind.XID, "nvidia/0", "x" * 1000)
        with Raw(served.path) as slow:
            await slow.send(FOLLOW)
            await served.ask("status")
            await ends.reach(2)
            lines = 0
            while await slow.line():
                lines += 1
            # What fits into the socket's buffer, and not all thousand of them.
            assert 0 < lines < 1000


@pytest.mark.anyio
async def test_clients_that_vanish_are_forgotten(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for one: each can come in only because the one before it is forgotten."""
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 1)
    ends = Ends(monkeypatch)
    served.state.events.add(Kind.XID, "nvidia/0", "x")
    async with served.run():
        for number, request in enumerate((b"", b"{", STATUS, FOLLOW, FOLLOW + b"more")):
            with Raw(served.path) as raw:
                await raw.send(request)
                if request.startswith(FOLLOW):
                    await anyio.wait_readable(raw.socket)
            await ends.reach(number + 1)
        assert (await served.ask("status"))["node"] == "node-a"


@pytest.mark.anyio
async def test_a_client_that_read_all_may_go_too(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = Ends(monkeypatch)
    served.state.events.add(Kind.XID, "nvidia/0", "x")
    async with served.run():
        with Raw(served.path) as raw:
            await raw.send(FOLLOW)
            assert await raw.line()
            await raw.send(b"more")
        await ends.reach(1)


def test_an_agent_that_does_not_answer_is_not_waited_for(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_ANSWER_SECONDS", 0.01)
    path = socket_folder / "x.sock"
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(str(path))
        hung.listen()
        with pytest.raises(StartError, match="doesn't answer"):
            main(["status", "--control-socket", str(path)])


@pytest.mark.anyio
async def test_there_is_a_limit_to_connections(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 1)
    served.state.events.add(Kind.XID, "nvidia/0", "x")
    async with served.run():
        with Raw(served.path) as first:
            await first.send(FOLLOW)
            await first.line()
            with pytest.raises(StartError, match="has 1 control connections already"):
                await served.ctl("status")


@pytest.mark.anyio
async def test_no_file_to_accept_with_is_no_end(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(own_socket, "_REST_SECONDS", 0.0)
    errors: list[OSError] = [OSError(24, "Too many open files"), BlockingIOError()]

    class Listener(socket.socket):
        def accept(self) -> Any:
            if errors:
                raise errors.pop(0)
            return super().accept()

    monkeypatch.setattr("hami_mock.control.server.socket.socket", Listener)
    async with served.run():
        assert await served.ask("status")
    assert errors == []
    assert "can't accept a connection: Too many open files" in caplog.text


@pytest.mark.anyio
async def test_a_stop_closes_connections_and_removes_the_socket(served: Served) -> None:
    async with served.run():
        idle, following, late = Raw(served.path), Raw(served.path), Raw(served.path)
        await following.send(FOLLOW)
        await served.ask("status")
        late.socket.close()
        late = Raw(served.path)
    for raw in (idle, following, late):
        with raw:
            assert await raw.line() == b""
    assert not served.path.exists()


@pytest.mark.anyio
async def test_a_connection_that_comes_in_while_it_stops_is_not_leaked(served: Served) -> None:
    for turns in range(6):
        async with served.run():
            raw = Raw(served.path)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
        with raw:
            assert await raw.line() == b""


@pytest.mark.anyio
async def test_the_socket_of_a_dead_agent_is_replaced(served: Served) -> None:
    served.path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(served.path))
    async with served.run():
        assert await served.ask("status")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


@pytest.mark.anyio
async def test_the_socket_of_a_living_agent_is_left_alone(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    async with served.run():
        second = Served(served.path)
        async with second.run():
            await served.ask("fail", targets=["nvidia/0"])
        assert served.effects()
        assert not second.effects()
        assert await served.ask("status")
    assert warnings(caplog)[0] == (
        f"--control-socket: can't listen on {served.path}: another agent listens "
        "on it; `hami-mock ctl` won't reach this agent"
    )


@pytest.mark.anyio
async def test_a_living_agent_that_has_its_hands_full_is_left_alone(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(served.path))
        busy.listen(0)
        with Raw(served.path):
            async with served.run():
                assert served.path.exists()
    assert "another agent listens on it" in warnings(caplog)[0]


def a_file(path: Path) -> Path:
    path.write_text("mine")
    return path


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("place", "message"),
    [
        (lambda folder: a_file(folder / "x"), "a file that is not a socket is in its place"),
        (lambda folder: a_file(folder / "x") / "control.sock", "Not a directory|File exists"),
        (lambda folder: folder / ("x" * 120), "AF_UNIX path too long"),
        (lambda folder: Path("/proc/hami-mock/control.sock"), "No such file or directory"),
    ],
)
async def test_where_no_socket_can_be_the_agent_goes_on_without(
    socket_folder: Path,
    caplog: pytest.LogCaptureFixture,
    place: Callable[[Path], Path],
    message: str,
) -> None:
    served = Served(place(socket_folder))
    async with served.run():
        (warning,) = warnings(caplog)
    assert warning.startswith(f"--control-socket: can't listen on {served.path}: ")
    assert any(text in warning for text in message.split("|"))
    for file in socket_folder.iterdir():
        assert file.read_text() == "mine"


@pytest.mark.anyio
async def test_what_took_the_place_of_our_socket_stays(served: Served) -> None:
    async with served.run():
        served.path.unlink()
        a_file(served.path)
    assert served.path.read_text() == "mine"


async def answers(served: Served) -> None:
    """Return once the agent can be asked again; the rig's time limit ends the wait."""
    while True:
        try:
            assert (await served.ask("status"))["node"] == "node-a"
        except StartError:
            await anyio.sleep(0.01)
        else:
            return


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace_with_dead_socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


@pytest.mark.anyio
@pytest.mark.parametrize("remove", [Path.unlink, remove_folder, replace_with_dead_socket])
async def test_a_socket_that_somebody_removes_comes_back(
    served: Served, remove: Callable[[Path], None]
) -> None:
    served.state.events.add(Kind.XID, "nvidia/0", "x")
    async with served.run():
        with Raw(served.path) as following:
            await following.send(FOLLOW)
            assert await following.line()
            for _ in range(2):
                remove(served.path)
                await answers(served)
                assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
                assert stat.S_IMODE(served.path.parent.stat().st_mode) == 0o700
            # Who is connected already doesn't notice.
            served.state.events.add(Kind.XID, "nvidia/1", "y")
            assert b"nvidia/1" in await following.line()
    assert not served.path.exists()


@pytest.mark.anyio
async def test_a_socket_that_could_not_be_had_is_tried_again(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_FIRST_RETRY_SECONDS", 0.01)
    caplog.set_level(logging.INFO)
    served.path.parent.mkdir()
    a_file(served.path)
    async with served.run():
        # The reason is told once, and not with each try.
        await anyio.sleep(0.1)
        (warning,) = warnings(caplog)
        assert "a file that is not a socket is in its place" in warning
        served.path.unlink()
        await answers(served)
    assert f"--control-socket: listening on {served.path} now" in caplog.text


@pytest.mark.anyio
async def test_an_agent_takes_over_the_socket_of_one_that_ends(served: Served) -> None:
    second = Served(served.path)
    stop, ended = anyio.Event(), anyio.Event()

    async def run_first(*, task_status: TaskStatus[None]) -> None:
        async with served.run():
            task_status.started()
            await stop.wait()
        ended.set()

    async with anyio.create_task_group() as tasks:
        await tasks.start(run_first)
        async with second.run():
            await served.ask("fail", targets=["nvidia/0"])
            stop.set()
            await ended.wait()
            await answers(second)
            assert not second.effects()
            await second.ask("fail", targets=["nvidia/1"])
            assert second.effects()


async def broken_status() -> dict[str, Any]:
    raise RuntimeError("the disk is on fire")


@pytest.mark.anyio
@pytest.mark.parametrize("command", ["status", "watch"])
async def test_whatever_a_command_raises_is_answered_and_ends_that_connection_only(
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    command: str,
) -> None:
    monkeypatch.setattr(served.agent, "status", broken_status)
    async with served.run():
        with Raw(served.path) as raw:
            await raw.send(Request(command).line)
            answer = await raw.answer()
            assert answer["code"] == 1
            assert "internal error, please report it: RuntimeError" in answer["error"][0]
            assert await raw.line() == b""
        assert await served.ask("events") == []
    assert "the disk is on fire" in caplog.text


@pytest.mark.anyio
async def test_whatever_a_connection_raises_ends_that_connection_only(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(line: bytes) -> Request:
        raise ArithmeticError("two and two are five")

    async with served.run():
        with monkeypatch.context() as patched, Raw(served.path) as raw:
            patched.setattr(server, "read_request", broken)
            await raw.send(STATUS)
            assert await raw.line() == b""
        assert await served.ask("status")
    assert "two and two are five" in caplog.text


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("command", "arguments", "problem"),
    [
        ("events", {"after": 10**400}, "after: "),
        ("events", {"after": float("nan")}, "after: "),
        ("fail", {"targets": ["nvidia/[0\n]"]}, "targets: "),
        ("fail", {"targets": ["nvidia/[0\ud800]"]}, "targets: "),
        ("fail", {"targets": ["x" * 501]}, "targets: "),
        ("fail", {"targets": ["nvidia/0"] * 1001}, "targets: "),
        ("set", {"values": {"x": "y" * 100_001}, "reset": False}, "values: "),
        ("set", {"values": {"x" * 501: ""}, "reset": False}, "values: "),
        ("set", {"values": {str(n): "" for n in range(1001)}, "reset": False}, "values: "),
        ("play", {"text": "steps: []", "name": "x" * 4097}, "name: "),
        ("x" * 100_000, {}, "there is no command 'xxx"),
    ],
)
async def test_what_is_too_large_or_cannot_be_shown_is_refused(
    served: Served, command: str, arguments: dict[str, Any], problem: str
) -> None:
    async with served.run():
        with Raw(served.path) as raw:
            await raw.send(Request(command, arguments).line)
            answer = await raw.answer()
            assert answer["code"] == 2
            assert answer["error"][0].startswith(problem)
            assert len(answer["error"][0]) < 2000
        assert await served.ask("status")
    assert served.state.faults == ()


@pytest.mark.anyio
async def test_a_flood_of_bad_clients_ends_without_a_trace(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_REQUEST_SECONDS", 0.5)
    ends = Ends(monkeypatch)
    bad = (b"", b"{", b"\0" * 100_000, b"[" * 100_000 + b"\n", STATUS[:-1], FOLLOW, b"x" * 2**20)
    count = 0
    async with served.run():
        before = len(anyio.get_running_tasks())
        for _ in range(20):
            clients = [Raw(served.path) for _ in range(100)]
            for number, client in enumerate(clients):
                with contextlib.suppress(OSError):
                    client.socket.send(bad[number % len(bad)])
            await anyio.lowlevel.checkpoint()
            assert served.server.status()["connections"] <= 200
            for client in clients:
                client.socket.close()
            count += len(clients)
            await ends.reach(count)
        assert served.server.status()["connections"] == 0
        assert len(anyio.get_running_tasks()) == before
        assert await served.ask("status")
