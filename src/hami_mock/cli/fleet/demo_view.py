"""What the demo shows: what happens, the fleet as tiles, and where to look."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import anyio

from hami_mock.cli.ctl.client import ask
from hami_mock.cli.live import CLOSE, OPEN, draw, window
from hami_mock.cli.output import say
from hami_mock.control.protocol import Request
from hami_mock.errors import StartError
from hami_mock.fleet.screen import frame
from hami_mock.kit.terminal import Style, clip, is_fancy, paint

_LOOK_SECONDS = 0.5


class View:
    """Draws the fleet twice a second; where there is no terminal, it prints what happens."""

    def __init__(self, socket: str, where: Sequence[str], check: Callable[[], None]) -> None:
        self._socket = socket
        self._where = where
        self._check = check
        self._caption = ""
        self.told: list[str] = []
        """What has happened, to be read when the screen is gone."""
        self.snapshot: Any = None
        """The fleet as it was at the last look; None before its process answers."""
        self._looked = anyio.Event()

    def __enter__(self) -> Self:
        if is_fancy():
            say(OPEN, end="")
        return self

    def __exit__(self, *_: object) -> None:
        if is_fancy():
            say(CLOSE, end="")

    async def run(self) -> None:
        """Look and draw until cancelled. Raises StartError if a program has ended."""
        while True:
            self._check()
            try:
                self.snapshot = next(ask(self._socket, Request("snapshot")))
            except StartError:
                # It makes its socket when it has read the file; if it ended, the check says so.
                self.snapshot = None
            self._looked.set()
            self._looked = anyio.Event()
            if is_fancy():
                self._draw()
            await anyio.sleep(_LOOK_SECONDS)

    async def until(self, good: Callable[[Any], bool]) -> None:
        """Wait until a look finds the fleet so."""
        while self.snapshot is None or not good(self.snapshot):
            await self._looked.wait()

    def caption(self, text: str) -> None:
        """Say what happens now."""
        self._caption = text
        if is_fancy():
            self._draw()
        else:
            say(text)

    def tell(self, text: str) -> None:
        """Say what has happened, with figures."""
        self.told.append(text) if is_fancy() else say(f"  {text}")

    def _draw(self) -> None:
        columns, rows = window()
        head = [paint(self._caption, Style.BOLD, Style.CYAN)]
        foot = [paint(line, Style.DIM) for line in self._where]
        room = max(rows - len(head) - len(foot), 0)
        body = frame(self.snapshot, columns, room) if self.snapshot else []
        space = [""] * (room - len(body))
        draw([clip(line, columns) for line in (*head, *body, *space, *foot)][:rows])
