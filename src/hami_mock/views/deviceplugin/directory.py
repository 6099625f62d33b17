"""The folder of sockets: the kubelet's and ours."""

import socket
from pathlib import Path

from hami_mock.errors import StartError
from hami_mock.kit.folder_watch import FolderWatch, identity

KUBELET_SOCKET = "kubelet.sock"
OWN_SOCKETS = "hami-mock-*.sock"


class SocketDirectory(FolderWatch):
    """The kubelet's device-plugin folder."""

    def __init__(self, path: str) -> None:
        super().__init__(Path(path))

    @property
    def kubelet_socket(self) -> Path:
        """Where the kubelet takes registrations."""
        return self.path / KUBELET_SOCKET

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
