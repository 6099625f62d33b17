"""How many writes the API server gets a second: no more than it bears, shared by all who write."""

import math
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from hami_mock.errors import Busy

DEFAULT_RATE = 100.0
_T = TypeVar("_T")
_SLOW_SECONDS = 2.0
"""An API server that takes longer for an answer has more to do than it can."""
_SHARE_IF_SLOW, _LEAST_IF_SLOW = 0.8, 10.0
"""Those who write wait for their answers, which holds them up already."""
_SHARE_IF_REFUSED, _LEAST = 0.5, 1.0
_SPAN_SECONDS = 10
"""Over how long a rate is measured."""
_REST_SECONDS = 1.0
"""One slow second has many slow answers: they slow us down once."""


class Budget:
    """A bucket of writes, filled at `rate` a second; at least one second's worth fits in.

    Refusals (429) halve the rate, slow answers lower it, and good ones bring it back bit by bit.
    """

    def __init__(
        self, rate: float = DEFAULT_RATE, clock: Callable[[], float] = anyio.current_time
    ) -> None:
        """Fill it; a rate of 0 means that there is no limit but what the server bears."""
        self.rate = rate or math.inf
        self.allowed = self.rate
        """The rate for now: below `rate` after the server had too much."""
        self.written = 0
        self.refused = 0
        """How often the server said that it was too much, or was slow."""
        self.peak = 0.0
        """The most writes that were answered in one second."""
        self.answer_seconds = 0.0
        """How long the server takes for an answer of late, on average."""
        self._clock = clock
        self._next = -math.inf
        self._slowed = -math.inf
        self._seconds: deque[tuple[int, int]] = deque(maxlen=_SPAN_SECONDS + 1)
        """Whole seconds of the clock, and how many writes were answered in each."""

    async def spend(self, writes: int = 1) -> None:
        """Wait until so many writes may be sent, in the order of those who wait."""
        now = self._clock()
        # What wasn't used within a second is lost, or a quiet night would end in a flood.
        start = max(self._next, now - 1.0)
        self._next = start + writes / self.allowed
        if start > now:
            await anyio.sleep(start - now)

    async def write(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Send one write when there is room for it, and learn from how it is answered."""
        await self.spend()
        since = self._clock()
        try:
            done = await call()
        except Busy as error:
            self._slow_down(error.retry_after)
            raise
        now = self._clock()
        self.answer_seconds += (now - since - self.answer_seconds) / min(self.written + 1, 100)
        if now - since > _SLOW_SECONDS:
            self._slow_down(share=_SHARE_IF_SLOW, least=_LEAST_IF_SLOW)
        else:
            self.allowed = min(self.rate, self.allowed * (1 + 1 / max(self.allowed, 10)))
        self._count(int(now))
        return done

    @property
    def per_second(self) -> float:
        """How many writes a second were answered of late."""
        now = int(self._clock())
        return sum(n for second, n in self._seconds if now - second < _SPAN_SECONDS) / _SPAN_SECONDS

    def _count(self, second: int) -> None:
        self.written += 1
        count = 1
        if self._seconds and self._seconds[-1][0] == second:
            count += self._seconds.pop()[1]
        self._seconds.append((second, count))
        self.peak = max(self.peak, float(count))

    def _slow_down(
        self, seconds: float = 0.0, share: float = _SHARE_IF_REFUSED, least: float = _LEAST
    ) -> None:
        now = self._clock()
        self._next = max(self._next, now + seconds)
        if now - self._slowed < _REST_SECONDS:
            return
        self._slowed = now
        self.refused += 1
        measured = self.per_second if math.isinf(self.allowed) else self.allowed
        self.allowed = max(least, measured * share)
