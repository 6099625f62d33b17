"""A folder, and a word when something in it changes.

Linux tells of changes (inotify); a slow check beside it catches what inotify can't see, such as a
folder that isn't there yet or that was replaced as a whole.
"""

from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskStatus

from hami_mock.kit.broadcast import Broadcast

if TYPE_CHECKING:
    from asyncinotify import Inotify

_CHECK_SECONDS = 5.0
_CHECK_SECONDS_WITHOUT_FOLDER = 0.5

Identity = tuple[int, int, int]
"""Tells a file from another one of the same name that came after it."""


class FolderWatch:
    """A folder whose changes can be waited for."""

    def __init__(self, path: Path, *, with_writes: bool = False) -> None:
        """Watch what comes and goes; with_writes, also what is written to."""
        self.path = path
        self._with_writes = with_writes
        self._changes = Broadcast()
        self.wait_until = self._changes.wait_until
        """Wait until a condition holds; it is checked whenever the folder changed."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        # Here, so that registrations are on their way before it is loaded.
        from asyncinotify import Inotify, Mask

        changes = Mask.CREATE | Mask.DELETE | Mask.MOVE | Mask.DELETE_SELF | Mask.MOVE_SELF
        if self._with_writes:
            changes |= Mask.CLOSE_WRITE
        while True:
            try:
                with Inotify() as inotify:
                    inotify.add_watch(self.path, changes | Mask.ONLYDIR)
                    self._changes.send()
                    await self._follow(inotify)
            except OSError:
                # No folder yet (or no inotify to be had): the waiters look for themselves.
                await anyio.sleep(_CHECK_SECONDS_WITHOUT_FOLDER)
                self._changes.send()

    async def _follow(self, inotify: "Inotify") -> None:
        watched = identity(self.path)
        while watched is not None and identity(self.path) == watched:
            with anyio.move_on_after(_CHECK_SECONDS):
                await inotify.get()
            self._changes.send()


def identity(path: Path) -> Identity | None:
    """Return what tells this file from others, or None if there is none."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    # Not the change time: it moves when somebody changes the mode.
    return status.st_dev, status.st_ino, 0 if S_ISDIR(status.st_mode) else status.st_mtime_ns
