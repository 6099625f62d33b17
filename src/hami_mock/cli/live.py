"""A screen that is drawn anew again and again, until somebody quits."""

import gc
import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from hami_mock.cli.output import say

OPEN = "\x1b[?1049h\x1b[?25l"
"""Another screen, and no cursor: what was there before comes back at the end."""
CLOSE = "\x1b[?25h\x1b[?1049l"
_QUIT = (b"q", b"Q", b"\x04", b"")
"""Ctrl-C comes as a signal."""


class Screen(NamedTuple):
    """Where the numbers of signals can be read, and keys, if anywhere."""

    signals: int
    keys: int | None


@contextmanager
def live_screen() -> Iterator[Screen]:
    """Take the terminal over for a while."""
    gc.enable()  # It may run for days.
    keys = sys.stdin.fileno() if sys.stdin and sys.stdin.isatty() else None
    before = termios.tcgetattr(keys) if keys is not None else None
    with _signals() as signals:
        say(OPEN, end="")
        try:
            if keys is not None:
                tty.setcbreak(keys)
            yield Screen(signals, keys)
        finally:
            if keys is not None and before is not None:
                termios.tcsetattr(keys, termios.TCSADRAIN, before)
            say(CLOSE, end="")


@contextmanager
def _signals() -> Iterator[int]:
    """Yield where the numbers of signals can be read.

    What a handler raises can come up anywhere, also where a lock is held that others then wait for.
    """
    told, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH):
        signal.signal(number, lambda *_: None)
    try:
        yield told
    finally:
        signal.set_wakeup_fd(before)
        os.close(told)
        os.close(wake)


def happenings(
    screen: Screen, others: Sequence[Any] = (), seconds: float | None = None
) -> Iterator[list[Any]]:
    """Yield which of the others can be read, until somebody quits.

    None can after so many seconds, and when the window has another size.
    """
    signals, keys = screen
    inputs = [*others, signals, *([] if keys is None else [keys])]
    while True:
        ready, _, _ = select.select(inputs, [], [], seconds)
        if keys is not None and keys in ready:
            if os.read(keys, 1) in _QUIT:
                return
            if ready == [keys]:
                continue
        if signals in ready:
            for number in os.read(signals, 100):
                if number == signal.SIGINT:
                    return
                if number != signal.SIGWINCH:
                    sys.exit(128 + number)
        yield [each for each in others if each in ready]


def draw(lines: Sequence[str]) -> None:
    """Write line by line over what is there, which doesn't flicker as a cleared screen would."""
    text = "\n".join(f"{line}\x1b[K" for line in lines)
    say(f"\x1b[H{text}\x1b[J", end="")


def window() -> tuple[int, int]:
    """Return how many columns and lines there are."""
    size = shutil.get_terminal_size()
    return size.columns, size.lines
