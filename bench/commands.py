"""How the bench talks to a server's process: words on stdin, a line of JSON back for each."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping

_TICK_SECONDS = 0.001


class Ticker:
    """Finds the longest stall of the event loop, by a task that wants to run all the time.

    On a busy machine a stall may be somebody else's work; the thread's own processor time tells.
    """

    def __init__(self) -> None:
        self._wall = self._own = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look for stalls."""
        self._wall = self._own = 0.0
        self._task = asyncio.create_task(self._tick())

    def stop(self) -> dict[str, float]:
        """Return the longest stall since the start, in seconds of each clock."""
        assert self._task is not None
        self._task.cancel()
        return {"wall": self._wall, "own": self._own}

    async def _tick(self) -> None:
        while True:
            wall, own = time.perf_counter(), time.thread_time()
            await asyncio.sleep(_TICK_SECONDS)
            self._wall = max(self._wall, time.perf_counter() - wall - _TICK_SECONDS)
            self._own = max(self._own, time.thread_time() - own)


async def obey(commands: Mapping[str, Callable[[], object]]) -> None:
    """Say that the server is ready, then do as told until stdin ends."""
    ticker = Ticker()
    known = {"start-ticker": ticker.start, "stop-ticker": ticker.stop, **commands}
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    _answer("ready")
    while line := await reader.readline():
        _answer(known[line.decode().strip()]())


def timed(step: Callable[[], object]) -> float:
    """Return the seconds that a step takes."""
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def _answer(value: object) -> None:
    print(json.dumps(value), flush=True)
