"""Files of ours in a folder where anybody may have put something else under their name.

A link, a pipe, a folder or a socket is never followed, waited for, removed or replaced: it is
somebody else's.
"""

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path, most: int) -> bytes:
    """Return what is in a file. Raises OSError, also for what is no file or has more bytes."""
    _check(path, path.lstat())
    with os.fdopen(_open(path, os.O_RDONLY), "rb") as file:
        _check(path, os.fstat(file.fileno()))  # it may have been swapped
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes")
    return content


def write_whole(path: Path, content: bytes) -> None:
    """Make or replace a file: whole, or not at all, even if the power fails. Raises OSError."""
    new = path.with_suffix(".new")
    remove_regular(new)  # a process that was killed may have left it
    if os.path.lexists(path):
        _check(path, path.lstat())
    descriptor = _open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_regular(path: Path) -> None:
    """Remove a file, if it is there. Raises OSError, also for what is no file."""
    if os.path.lexists(path):
        _check(path, path.lstat())
        path.unlink()


def _open(path: Path, flags: int) -> int:
    # Without waiting: a pipe has no end until somebody writes.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EEXIST, f"{path.name} is not a regular file")
