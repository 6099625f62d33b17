"""What is to be looked at, and when: each name once, however often it is said."""

import heapq
import math
from collections.abc import Callable

import anyio

from hami_mock.kit.broadcast import Broadcast


class Agenda:
    """Names, each with a time. Many may wait for the next one that is due."""

    def __init__(self, clock: Callable[[], float] = anyio.current_time) -> None:
        self._clock = clock
        self._times: dict[str, float] = {}
        self._queue: list[tuple[float, int, str]] = []
        self._pushed = 0
        self._more = Broadcast()

    def __len__(self) -> int:
        return len(self._times)

    def __contains__(self, name: str) -> bool:
        return name in self._times

    def add(self, name: str, after: float = 0.0) -> None:
        """Let a name be due after some seconds; if it is due earlier already, that stays so."""
        at = self._clock() + after
        if at < self._times.get(name, math.inf):
            self._times[name] = at
            self._pushed += 1
            heapq.heappush(self._queue, (at, self._pushed, name))
            self._more.send()

    async def next(self) -> str:
        """Wait for the next name that is due, and take it off."""
        while True:
            more = self._more.next()
            name, wait = self._first()
            if name is not None and wait <= 0:
                del self._times[name]
                return name
            with anyio.move_on_after(wait):
                await more.wait()

    def _first(self) -> tuple[str | None, float]:
        while self._queue:
            at, _, name = self._queue[0]
            is_current = self._times.get(name) == at
            wait = at - self._clock()
            if not is_current or wait <= 0:
                heapq.heappop(self._queue)
            if is_current:
                return name, wait
        return None, math.inf
