"""Those who look at the same thing, and are told of each change in the same bytes."""

from collections.abc import Callable

from hami_mock.kit.broadcast import Broadcast


class Audience:
    """Viewers come and go; the server that has their connections knows when."""

    def __init__(self) -> None:
        self._viewers: dict[object, Callable[[bytes], None]] = {}
        self._came = Broadcast()

    def __len__(self) -> int:
        return len(self._viewers)

    def join(self, viewer: object, tell: Callable[[bytes], None]) -> None:
        self._viewers[viewer] = tell
        self._came.send()

    def leave(self, viewer: object) -> None:
        del self._viewers[viewer]

    def send(self, message: bytes) -> None:
        """Tell everybody; who can't be told leaves meanwhile."""
        for tell in list(self._viewers.values()):
            tell(message)

    async def wait_for_viewers(self) -> None:
        await self._came.wait_until(lambda: bool(self._viewers))
