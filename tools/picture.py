"""Record the program in a terminal and draw docs/picture.svg, the README's picture.

The demo runs with its embedded kubelet, and `ctl` talks to it: what the picture shows has happened.
"""

import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

PICTURE = Path("docs/picture.svg")
COLUMNS = 88
CELL, LINE, MARGIN, BAR = 8.4, 20, 20, 36
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
CARDS = ["--vendors", "nvidia", "--nvidia-cards", "4", "--nvidia-model", "L40S"]
FLAGS = ("--node-name=gpu-node-1", *CARDS)
FAULT = ("ctl", "fail", "nvidia/0", "--xid", "79")

INK, PAPER, FRAME = "#d7dce2", "#161b22", "#2b323c"
COLOURS = {
    "1": "#ffffff",
    "2": "#8b949e",
    "31": "#ff7b72",
    "32": "#56d364",
    "33": "#e3b341",
    "36": "#76c7f0",
}
_STYLE = re.compile(r"\x1b\[([0-9;]*)m")
_OTHER = re.compile(r"\x1b\[[0-9;]*[A-LN-Za-ln-z]")


class Recording:
    """A command in a terminal, and what it has printed."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self._screen, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "hami_mock", *arguments],
            stdout=inside,
            env=os.environ | {"TERM": "xterm"} | environment,
        )
        os.close(inside)
        self.output = ""

    def read_until(self, text: str = "") -> str:
        """Read until a text is there, or to the end."""
        while not text or text not in self.output:
            try:
                chunk = os.read(self._screen, 65536)
            except OSError:
                break  # how Linux says that the other end of a terminal is closed
            self.output += chunk.decode().replace("\r\n", "\n")
        return _OTHER.sub("", self.output)


def record() -> Iterator[str]:
    """Yield the lines of the session."""
    with tempfile.TemporaryDirectory(prefix="hm-") as folder:
        path = f"{folder}/control.sock"
        demo = Recording("demo", "--keep", f"--control-socket={path}", *FLAGS)
        try:
            told = demo.read_until("pods are running.")
            start = told.index("\x1b[1mRESOURCE")
            yield prompt("demo", "--keep", *CARDS)
            yield from told[start : told.index("\n\x1b[36m", start)].splitlines()
            for command in (FAULT, ("ctl", "status")):
                yield ""
                yield prompt(*command)
                done = Recording(*command, HAMI_MOCK_CONTROL_SOCKET=path)
                # Which pod holds what is a list longer than a picture.
                text, _, more = done.read_until().rstrip().partition("\n\x1b[1mCARD      POD")
                yield from text.splitlines()
                yield from ["\x1b[2m…\x1b[0m"] * bool(more)
                if done.process.wait():
                    raise SystemExit(f"{' '.join(command)} failed")
        finally:
            demo.process.terminate()
            demo.process.wait()


def prompt(*words: str) -> str:
    """Return the line that somebody typed."""
    return f"\x1b[36m$\x1b[0m \x1b[1mhami-mock {' '.join(words)}\x1b[0m"


def draw(lines: list[str]) -> str:
    """Return the lines as a terminal in SVG."""
    width = round(COLUMNS * CELL + 2 * MARGIN)
    height = BAR + len(lines) * LINE + MARGIN
    dots = "".join(
        f'<circle cx="{MARGIN + 4 + 18 * i}" cy="18" r="5.5" fill="{colour}"/>'
        for i, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    texts = "\n".join(
        run for number, line in enumerate(lines) for run in runs(line, BAR + (number + 1) * LINE)
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
 aria-label="hami-mock in a terminal: the demo, a failed card, and the status of the node"
 font-family="{FONT}" font-size="14" fill="{INK}" xml:space="preserve">
<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" fill="{PAPER}"
 stroke="{FRAME}"/>
{dots}
{texts}
</svg>
"""


def runs(line: str, y: int) -> Iterator[str]:
    """Yield the pieces of a line, each of one style, on the grid whatever the font is."""
    column, style = 0, ""
    for index, piece in enumerate(_STYLE.split(line)):
        if index % 2:
            style = "" if piece in ("", "0") else piece
            continue
        # Words apart: a gap must not be stretched or drawn.
        for word in re.finditer(r"\S+(?: \S+)*", piece):
            x = MARGIN + (column + word.start()) * CELL
            yield (
                f'<text x="{x:.1f}" y="{y}" textLength="{len(word[0]) * CELL:.1f}"'
                f"{attributes(style)}>{html.escape(word[0])}</text>"
            )
        column += len(piece)


def attributes(style: str) -> str:
    """Return the attributes that ANSI styles stand for."""
    colours = [COLOURS[code] for code in style.split(";") if code in COLOURS]
    colour = f' fill="{colours[-1]}"' if colours else ""
    return colour + (' font-weight="600"' if "1" in style.split(";") else "")


if __name__ == "__main__":
    PICTURE.write_text(draw(list(record())), encoding="utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes")
