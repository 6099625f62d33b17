"""The program in a terminal of a given width."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
PROGRAM = (sys.executable, "-m", "hami_mock")
_MOST_SECONDS = 60


class Terminal:
    """A process whose standard streams are a terminal."""

    def __init__(self, process: "subprocess.Popen[bytes]", screen: int) -> None:
        self.process = process
        self._screen = screen
        self.output = ""
        # A read may end in the middle of a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self) -> bool:
        """Read what there is, or wait for it, though not for ever; return False at the end."""
        assert select.select([self._screen], [], [], _MOST_SECONDS)[0], self.output
        try:
            chunk = os.read(self._screen, 65536)
        except OSError:
            return False  # how Linux says that the other end of a terminal is closed
        self.output += self._decoder.decode(chunk).replace("\r\n", "\n")
        return bool(chunk)

    def read_until(self, text: str) -> None:
        while text not in self.output:
            assert self.read(), self.output

    def read_all(self) -> None:
        while self.read():
            pass

    @property
    def lines(self) -> list[str]:
        return ANSI.sub("", self.output).splitlines()


@contextmanager
def terminal(*arguments: str, columns: int = 80, lines: int = 50) -> Iterator[Terminal]:
    screen, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = {name: os.environ[name] for name in os.environ if name != "COLUMNS"}
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env=environment | {"TERM": "xterm"},
    )
    os.close(inside)
    try:
        yield Terminal(process, screen)
    finally:
        process.terminate()
        process.wait(timeout=10)
        os.close(screen)


def in_terminal(*arguments: str, columns: int = 80) -> Terminal:
    """Run the program to its end."""
    with terminal(*arguments, columns=columns) as screen:
        screen.read_all()
        screen.process.wait(timeout=60)
    return screen
