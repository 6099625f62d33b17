"""A program that wants a terminal, and what it has drawn there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_PATIENCE = 30.0
_CONTROL = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>78])")


def drawn(
    argv: list[str | Path],
    environment: Mapping[str, str],
    is_enough: Callable[[str], bool],
    leave: bytes,
    size: tuple[int, int] = (120, 200),
) -> tuple[str, int]:
    """Run a program in a terminal until it has drawn enough, then type `leave`.

    Returns all that it wrote, without the movements of the cursor, and its exit code.
    """
    child, terminal = pty.fork()
    if child == 0:
        os.execve(argv[0], [str(word) for word in argv], {**environment, "TERM": "xterm"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    end = time.monotonic() + _PATIENCE
    text, has_left = "", False
    try:
        while (left := end - time.monotonic()) > 0:
            if not select.select([terminal], [], [], left)[0]:
                break
            try:
                text += os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # It has ended.
                break
            if not has_left and is_enough(_CONTROL.sub("", text)):
                os.write(terminal, leave)
                has_left = True
    finally:
        if not has_left:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(terminal)
    return _CONTROL.sub("", text), os.waitstatus_to_exitcode(status)
