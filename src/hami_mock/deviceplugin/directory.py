"""The folder of sockets: who is in it, and a word when that changes.

Linux tells of changes (inotify); a slow check beside it catches what inotify can't see, such as a
folder that isn't there yet or that was replaced as a whole.
"""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import StartError

if TYPE_CHECKING:
    from asyncinotify import Inotify

KUBELET_SOCKET = "kubelet.sock"
OWN_SOCKETS = "hami-mock-*.sock"

_CHECK_SECONDS = 5.0
_CHECK_SECONDS_WITHOUT_FOLDER = 0.5

Identity = tuple[int, int, int]
"""Tells a file from another one of the same name that came after it."""


class SocketDirectory:
    """The kubelet's device-plugin folder."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._changed = anyio.Event()

    @property
    def kubelet_socket(self) -> Path:
        """Where the kubelet takes registrations."""
        return self.path / KUBELET_SOCKET

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Watch the folder until cancelled."""
        task_status.started()
        # Here, so that registrations are on their way before it is loaded.
        from asyncinotify import Inotify, Mask

        changes = Mask.CREATE | Mask.DELETE | Mask.MOVE | Mask.DELETE_SELF | Mask.MOVE_SELF
        while True:
            try:
                with Inotify() as inotify:
                    inotify.add_watch(self.path, changes | Mask.ONLYDIR)
                    self._tell()
                    await self._follow(inotify)
            except OSError:
                # No folder yet (or no inotify to be had): the waiters look for themselves.
                await anyio.sleep(_CHECK_SECONDS_WITHOUT_FOLDER)
                self._tell()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on the folder holds; it is checked whenever the folder changed."""
        while True:
            changed = self._changed
            if condition():
                return
            await changed.wait()

    async def _follow(self, inotify: "Inotify") -> None:
        """Tell of changes until the folder itself is gone."""
        watched = identity(self.path)
        while watched is not None and identity(self.path) == watched:
            with anyio.move_on_after(_CHECK_SECONDS):
                await inotify.get()
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def remove_stale_sockets(self) -> list[str]:
        """Remove the sockets that an agent left behind when it was killed; return their names.

        A socket that somebody listens on belongs to another agent that lives, and stays.
        Raises StartError if the folder can't be read.
        """
        removed = []
        try:
            found = sorted(self.path.glob(OWN_SOCKETS)) if self.path.is_dir() else []
            identity(self.kubelet_socket)
        except PermissionError as error:
            raise StartError(
                f"--socket-dir: {str(self.path)!r} can't be read: {error.strerror}; run as root"
            ) from error
        for path in found:
            if not _is_listening(path):
                path.unlink(missing_ok=True)
                removed.append(path.name)
        return removed


def identity(path: Path) -> Identity | None:
    """Return what tells this file from others, or None if there is none."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    # Not the change time: it moves when somebody changes the mode.
    return status.st_dev, status.st_ino, 0 if path.is_dir() else status.st_mtime_ns


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            return True
    return True
