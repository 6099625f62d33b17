"""A word to everybody who waits: something has changed, look again."""

from collections.abc import Callable

import anyio


class Broadcast:
    """Wakes all who wait, any number of times; who comes later waits for the next time."""

    def __init__(self) -> None:
        self._next = anyio.Event()

    def send(self) -> None:
        self._next.set()
        self._next = anyio.Event()

    def next(self) -> anyio.Event:
        """Return an event that the next `send` sets; take it before looking at what it tells of."""
        return self._next

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        while True:
            sent = self._next
            if condition():
                return
            await sent.wait()
