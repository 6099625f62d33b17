"""One line per step with its seconds: live on a terminal, plain when piped."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

LIVE_INTERVAL_S = 0.5
# A reader of a plain log must see that a step of minutes is alive, without a flood of lines.
PLAIN_INTERVAL_S = 60.0


class Step:
    """A running step; `detail` may be set by the step itself and is shown live."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.detail = ""
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def line(self, state: str) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.seconds:7.1f} s  {self.label}{detail}{state}"


class Progress:
    """Not reentrant: steps follow one another."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        # What was done and how many seconds it took, for a table afterwards.
        self.finished: list[tuple[str, float]] = []

    @contextmanager
    def step(self, label: str) -> Iterator[Step]:
        # Looked up late: pytest replaces sys.stderr while the process runs.
        stream = self._stream or sys.stderr
        live = stream.isatty()
        step = Step(label)
        done = threading.Event()
        ticker = threading.Thread(target=_tick, args=(step, stream, live, done), daemon=True)
        ticker.start()
        state = " FAILED"
        try:
            yield step
            state = ""
        finally:
            done.set()
            ticker.join()
            self.finished.append((step.label, step.seconds))
            _write(stream, step.line(state), live=live, last=True)


def _tick(step: Step, stream: TextIO, live: bool, done: threading.Event) -> None:
    interval = LIVE_INTERVAL_S if live else PLAIN_INTERVAL_S
    while not done.wait(interval):
        _write(stream, step.line(" …"), live=live, last=False)


def _write(stream: TextIO, line: str, *, live: bool, last: bool) -> None:
    if live:
        stream.write(f"\r\x1b[K{line}" + ("\n" if last else ""))
    else:
        stream.write(line + "\n")
    stream.flush()
