"""`ctl status --watch`, in a terminal and without one."""

import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.integration.control_rig import Served

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CLEAR = "\x1b[H\x1b[J"
_COLUMNS = 80


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def served(socket_folder: Path) -> Served:
    return Served(socket_folder / "control.sock")


@contextmanager
def watching(served: Served, output: int, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = ["ctl", "status", "--watch", "--control-socket", str(served.path), *words]
    process = subprocess.Popen(
        [sys.executable, "-m", "hami_mock", *command],
        stdout=output,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm"},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


async def read_until(descriptor: int, text: str) -> str:
    seen = ""
    while text not in seen:
        seen += (await anyio.to_thread.run_sync(os.read, descriptor, 65536)).decode()
    return seen


@pytest.mark.anyio
async def test_in_a_terminal_it_is_drawn_anew_and_ctrl_c_ends_it(served: Served) -> None:
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, _COLUMNS, 0, 0))
    async with served.run():
        with watching(served, slave) as process:
            first = await read_until(master, "isn't known")
            await served.ask("fail", targets=["nvidia/0"], reason="a reason of many words " * 4)
            second = await read_until(master, "unhealthy")
            process.send_signal(signal.SIGINT)
            _, errors = await anyio.to_thread.run_sync(process.communicate)
    os.close(master)
    os.close(slave)
    assert (process.returncode, errors) == (-signal.SIGINT, b"")
    for drawn in (first, second):
        assert drawn.count(_CLEAR) == 1
        lines = _ESCAPE.sub("", drawn).splitlines()
        assert max(map(len, lines)) <= _COLUMNS


@pytest.mark.anyio
async def test_without_a_terminal_each_change_is_one_more_block(served: Served) -> None:
    reader, writer = os.pipe()
    async with served.run():
        with watching(served, writer) as process:
            os.close(writer)
            first = await read_until(reader, "isn't known")
            await served.ask("fail", targets=["nvidia/0"])
            second = await read_until(reader, "isn't known")
            process.send_signal(signal.SIGINT)
            assert await anyio.to_thread.run_sync(process.wait) == -signal.SIGINT
    os.close(reader)
    assert "\x1b" not in first + second
    assert "unhealthy" not in first
    assert re.search(r"nvidia/0 .*unhealthy", second)
    assert (first + second).count("Node node-a:") == 2


@pytest.mark.anyio
async def test_for_programs_each_status_is_a_line(served: Served) -> None:
    reader, writer = os.pipe()
    async with served.run():
        with watching(served, writer, "-o", "json") as process:
            os.close(writer)
            line = await read_until(reader, "\n")
            process.send_signal(signal.SIGINT)
            await anyio.to_thread.run_sync(process.wait)
    os.close(reader)
    assert line.count("\n") == 1
    assert line.startswith('{"node": "node-a"')
