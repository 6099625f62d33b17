"""Ctrl-C at any moment, once or twice: no traceback, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.terminals import PROGRAM

# The tests may run where Ctrl-C is ignored, in the background of a shell.
HEARING = ("env", "--default-signal=INT")
SMALL = ("--nvidia-memory=64", "--ascend-cards=0", "--http-listen=")
# Says when we have taken Python's own handler of Ctrl-C away. In the few milliseconds before that
# no line of ours has run, so nothing can be promised.
ANNOUNCED = """
import os, signal
take = signal.signal
def announce(number, handler):
    before = take(number, handler)
    os.write(1, b".")
    return before
signal.signal = announce
from hami_mock.__main__ import main
raise SystemExit(main())
"""


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
        [*HEARING, sys.executable, "-c", ANNOUNCED, *command.split(), *SMALL],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ
        | {"TMPDIR": str(temporary)}
        | ({"HAMI_MOCK_SOCKET_DIR": str(sockets)} if command == "run" else {}),
    )
    assert process.stdout is not None
    try:
        assert process.stdout.read(1) == b"."
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        if again is not None:
            time.sleep(again)
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
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
