"""Small tools for waiting that anyio doesn't have."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

import anyio


async def first_of(*waits: Callable[[], Awaitable[object]]) -> None:
    """Call all of them and return when the first has returned; the others are cancelled."""
    async with anyio.create_task_group() as tasks:

        async def run(wait: Callable[[], Awaitable[object]]) -> None:
            await wait()
            tasks.cancel_scope.cancel()

        for wait in waits:
            tasks.start_soon(run, wait)


def innermost(error: BaseException) -> BaseException:
    """Return what the groups of task groups wrap: of several errors the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@dataclass
class Backoff:
    """Delays that double from first to longest, each shortened by up to half at random."""

    first: float = 0.1
    longest: float = 30.0
    random: Random = field(default_factory=Random)
    _last: float = 0.0

    def next(self, least: float = 0.0) -> float:
        """Return the delay before the next try: `least` and a little more, if that is longer."""
        self._last = min(self._last * 2 or self.first, self.longest)
        return max(
            self._last * self.random.uniform(0.5, 1.0), least * self.random.uniform(1.0, 1.25)
        )

    def reset(self) -> None:
        self._last = 0.0
