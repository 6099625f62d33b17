"""A word to everybody who waits: something has changed, look again."""

from collections.abc import Callable

import anyio


class Broadcast:
    """Wakes all who wait, any number of times; who comes later waits for the next time."""

    def __init__(self) -> None:
        self._next = anyio.Event()

    def send(self) -> None:
        """Wake all who wait now."""
        self._next.set()
        self._next = anyio.Event()

    def next(self) -> anyio.Event:
        """Return an event that is set at the next `send`.

        Take it before looking at what it tells of, so that nothing falls between look and wait.
        """
        return self._next

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, checking it now and after each `send`."""
        while True:
            sent = self._next
            if condition():
                return
            await sent.wait()
