"""`hami-mock top`: the node live in a terminal, from the running agent's control socket."""

import gc
import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hami_mock.cli.ctl.client import Conversation, ask
from hami_mock.cli.ctl.parser import with_common
from hami_mock.cli.output import say, show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.cli.top_screen import frame
from hami_mock.control.protocol import TOP, Request
from hami_mock.kit.terminal import WIDEST, width

_NOTES = (
    "It is drawn anew once a second, and at once when a card changes; q or Ctrl-C quits.\n\n"
    "A bar is green, yellow from 70 % on and red from 90 % on; a card's name is red while it is "
    "unhealthy or lost, and yellow while it is degraded. A pod has the same colour wherever it is "
    "shown. The page at --http-listen shows the same, with temperature and power over time.\n\n"
    "Without a terminal, or with -o json or -o yaml, it prints the node once and ends."
)
_OPEN = "\x1b[?1049h\x1b[?25l"
"""Another screen, and no cursor: what was there before comes back at the end."""
_CLOSE = "\x1b[?25h\x1b[?1049l"
_QUIT = (b"q", b"Q", b"\x04", b"")
"""Ctrl-C comes as a signal."""


def parser() -> Parser:
    parser = Parser(
        "top",
        notes=_NOTES,
        examples=("top", "top --once", "top -o json", "kubectl exec -it POD -- hami-mock top"),
    )
    parser.add("--once", "print the node as it is now, and end", action="store_true")
    return with_common(parser)


def run(parsed: Parsed) -> None:
    """Raises StartError if there is no agent to be had, or it goes away."""
    if parsed.once or parsed.output != "table" or width() is None:
        snapshot = next(ask(parsed.control_socket, Request("snapshot")))
        show(snapshot, parsed.output, frame(snapshot, width() or WIDEST))
        return
    gc.enable()  # It may run for days.
    with (
        Conversation(parsed.control_socket, Request(TOP)) as agent,
        _signals() as signals,
        _screen() as keys,
    ):
        shown: Any = None
        for snapshot in _snapshots(agent, signals, keys):
            shown = snapshot or shown
            if shown is not None:
                _draw(shown)


def _snapshots(agent: Conversation, signals: int, keys: int | None) -> Iterator[Any]:
    """Yield each snapshot, and None when the window has another size, until somebody quits."""
    inputs: list[Any] = [agent, signals, *([] if keys is None else [keys])]
    while True:
        ready, _, _ = select.select(inputs, [], [])
        if keys is not None and keys in ready and os.read(keys, 1) in _QUIT:
            return
        if signals in ready:
            for number in os.read(signals, 100):
                if number == signal.SIGINT:
                    return
                if number != signal.SIGWINCH:
                    sys.exit(128 + number)
            yield None
        if agent in ready:
            yield from agent.answers()


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


@contextmanager
def _screen() -> Iterator[int | None]:
    """Take the terminal over for a while; yield where keys can be read, if anywhere."""
    keys = sys.stdin.fileno() if sys.stdin and sys.stdin.isatty() else None
    before = termios.tcgetattr(keys) if keys is not None else None
    say(_OPEN, end="")
    try:
        if keys is not None:
            tty.setcbreak(keys)
        yield keys
    finally:
        if keys is not None and before is not None:
            termios.tcsetattr(keys, termios.TCSADRAIN, before)
        say(_CLOSE, end="")


def _draw(snapshot: Any) -> None:
    size = shutil.get_terminal_size()
    lines = frame(snapshot, size.columns, size.lines)
    # Line by line over what is there, which doesn't flicker as a cleared screen would.
    text = "\n".join(f"{line}\x1b[K" for line in lines)
    say(f"\x1b[H{text}\x1b[J", end="")
