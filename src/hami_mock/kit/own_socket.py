"""Unix sockets that only root and this process's own user may use."""

import errno
import logging
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Never

import anyio

_REST_SECONDS = 1.0
_log = logging.getLogger(__name__)

_TAKEN = "another agent listens on it"
_LONGEST = 100
_CREDENTIALS = struct.Struct("iII")


def is_allowed(connection: socket.socket) -> bool:
    """Tell whether the other side is root or our own user, whatever the file's mode says by now."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(data)
    return uid in (0, os.geteuid())


def listen_at(path: Path) -> socket.socket:
    """Return a listener at the path. Raises OSError if there can be none."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        with _short(path) as name:
            listener.bind(name)
        # Before anybody can connect: until it listens, they are refused.
        path.chmod(0o600)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


async def accept_all(
    listener: socket.socket, take: Callable[[socket.socket], object], name: str
) -> Never:
    """Take each connection, until cancelled; `name` is who can't, in the log."""
    while True:
        await anyio.wait_readable(listener)
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            continue  # It has gone away again.
        except OSError as error:
            _log.warning("%s: can't accept a connection: %s", name, error.strerror)
            await anyio.sleep(_REST_SECONDS)
            continue
        take(connection)


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Name a socket by way of its folder's descriptor, if its path is too long for a socket's."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def remove_stale(path: Path) -> None:
    """Remove the socket of an agent that is gone. Raises OSError if something else is there."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "a file that is not a socket is in its place")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, _short(path) as name:
        probe.setblocking(False)
        try:
            probe.connect(name)
        except ConnectionRefusedError:
            path.unlink()
        except BlockingIOError:
            raise OSError(errno.EADDRINUSE, _TAKEN) from None
        else:
            raise OSError(errno.EADDRINUSE, _TAKEN)
