"""Ctrl-C at any moment, once or twice: no traceback, and nothing left behind."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.terminals import PROGRAM

# The tests may run where Ctrl-C is ignored, in the background of a shell.
HEARING = ("env", "--default-signal=INT")
SMALL = ("--nvidia-memory=64", "--ascend-cards=0", "--http-listen=")
SIGINT = 1 << (signal.SIGINT - 1)


def catches_sigint(pid: int) -> bool | None:
    """Tell whether a process has a handler for Ctrl-C; None if there is no such process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return None
    (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask, 16) & SIGINT)


def wait_for_our_code(process: "subprocess.Popen[bytes]") -> None:
    """Wait until Python has started and we have taken its handler of Ctrl-C away.

    In the few milliseconds before that no line of ours has run, so nothing can be promised.
    """
    for is_caught in (True, False):
        deadline = time.monotonic() + 30
        while catches_sigint(process.pid) is not is_caught:
            assert process.poll() is None
            assert time.monotonic() < deadline


@pytest.mark.parametrize("again", [None, 0.0, 0.02])
@pytest.mark.parametrize("moment", [0.0, 0.03, 0.1, 0.2, 0.4, 0.7, 1.2, 2.0])
@pytest.mark.parametrize("command", ["demo --keep", "run"])
def test_ctrl_c_is_silent_and_leaves_nothing(
    command: str, moment: float, again: float | None, socket_folder: Path
) -> None:
    temporary, sockets = socket_folder / "t", socket_folder / "s"
    temporary.mkdir()
    sockets.mkdir()
    process = subprocess.Popen(
        [*HEARING, *PROGRAM, *command.split(), *SMALL],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ
        | {"TMPDIR": str(temporary)}
        | ({"HAMI_MOCK_SOCKET_DIR": str(sockets)} if command == "run" else {}),
    )
    wait_for_our_code(process)
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    if again is not None:
        time.sleep(again)
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert process.returncode in (0, 130, -signal.SIGINT)
    assert b"Traceback" not in errors
    assert b"Error" not in errors
    assert list(temporary.iterdir()) == []
    assert list(sockets.glob("*.sock")) == []


def test_ctrl_c_stays_ignored_where_it_was() -> None:
    done = subprocess.run(
        f"trap '' INT; {' '.join(PROGRAM)} models & kill -INT $!; wait $!",
        shell=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith(b"VENDOR")
