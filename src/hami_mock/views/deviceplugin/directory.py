"""The folder of sockets: the kubelet's and ours."""

import errno
import logging
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hami_mock.errors import StartError, UsageError
from hami_mock.kit.folder_lock import FolderLock
from hami_mock.kit.folder_watch import FolderWatch

KUBELET_SOCKET = "kubelet.sock"
OWN_SOCKETS = "hami-mock-*.sock"

_log = logging.getLogger(__name__)


class SocketDirectory(FolderWatch):
    """The kubelet's device-plugin folder, which one agent alone may serve."""

    def __init__(self, path: str) -> None:
        super().__init__(Path(path))
        self.kubelet_socket = self.path / KUBELET_SOCKET
        self._lock = FolderLock(self.path)
        self.release = self._lock.release
        self._own: set[str] = set()
        self._looked: object = None
        self._stranger: str | None = None

    def claim(self) -> None:
        """Keep other agents out, until `release`; a folder that isn't there yet is claimed later.

        Raises StartError if another agent is in there or the folder can't be read, UsageError if
        it is none.
        """
        try:
            self._lock.acquire()
        except FileNotFoundError:
            self.release()
        except BlockingIOError as error:
            owner = self._lock.owner()
            raise self._taken(f"process {owner}" if owner else "") from error
        except NotADirectoryError as error:
            raise UsageError(
                f"--socket-dir: {str(self.path)!r} is not a folder: give the kubelet's folder of "
                "device plugins"
            ) from error
        except OSError as error:
            raise StartError(
                f"--socket-dir: {str(self.path)!r} can't be read: {error.strerror}; run as root"
            ) from error
        if stranger := self.stranger():
            raise self._taken(stranger)

    def _taken(self, by: str) -> StartError:
        return StartError(
            f"--socket-dir: another hami-mock{by and f' ({by})'} serves {str(self.path)!r}: "
            "stop it, or choose another folder"
        )

    def remove_stale_sockets(self) -> list[str]:
        """Remove the sockets that an agent left behind when it was killed; return their names.

        A socket that somebody listens on belongs to another agent that lives, and stays; so does
        whatever is no socket.
        """
        removed = []
        for path in sorted(self.path.glob(OWN_SOCKETS)):
            try:
                if not _is_listening(path):
                    path.unlink(missing_ok=True)
                    removed.append(path.name)
            except OSError as error:
                _log.warning("%s is left alone: %s", path, error.strerror or error)
        return removed

    @contextmanager
    def own_socket(self, name: str) -> Iterator[Path]:
        """Tell a socket of ours from others' while it is used; the caller makes and removes it."""
        self._own.add(name)
        try:
            yield self.path / name
        finally:
            self._own.discard(name)

    def stranger(self) -> str | None:
        """Return a socket that another agent serves here, one that knows of no lock.

        The kubelet takes either agent for the plugin of a resource, and tells neither which one.
        """
        now = self._changes.next()
        if self._looked is not now:
            # Once for all who ask after the same change.
            others = (p for p in self.path.glob(OWN_SOCKETS) if p.name not in self._own)
            self._looked = now
            self._stranger = next((path.name for path in others if _serves(path)), None)
        return self._stranger


def _serves(path: Path) -> bool:
    try:
        return _is_listening(path)
    except OSError:
        # It is no socket, or can't be reached.
        return False


def _is_listening(path: Path) -> bool:
    """Tell whether somebody listens on a socket. Raises OSError if it is none, or a link to one."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise OSError(errno.ENOTSOCK, "it is not a socket")
    except FileNotFoundError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            pass
    return True
