"""Files that people name: never read for ever, nor into all of the memory."""

import os
import select
import stat
import time

from hami_mock.errors import UsageError

MOST_BYTES = 2**20
_CHUNK_BYTES = 2**20
PATIENCE_SECONDS = 2.0
"""How long a pipe may take: a shell's <(command) is one, and so is what nobody ever writes to."""


def read_text(saying: str, path: str, most: int = MOST_BYTES) -> str:
    """Return the text of a file. Raises UsageError that begins with what `saying` says."""
    try:
        data = read_bytes(path, most + 1)
        if len(data) > most:
            raise UsageError(f"{saying} {path!r}: it has more than {most} bytes: shorten it")
        return data.decode()
    except OSError as error:
        raise UsageError(f"{saying} {path!r}: {error.strerror}") from error
    except ValueError as error:
        reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "it is not a path"
        raise UsageError(f"{saying} {path!r}: {reason}") from error


def read_bytes(path: str, most: int, patience: float | None = None) -> bytes:
    """Return the first bytes of a file. Raises OSError, or ValueError for what can be no path."""
    # With O_NONBLOCK, or to open a pipe would take until somebody writes to it.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise IsADirectoryError(0, "Is a directory")
        return _read(file, most, time.monotonic() + (patience or PATIENCE_SECONDS))
    finally:
        os.close(file)


def _read(file: int, most: int, deadline: float) -> bytes:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    data = bytearray()
    while len(data) < most:
        # A file is always ready, /dev/zero too.
        if not poll.poll(max(0, 1000 * (deadline - time.monotonic()))):
            raise TimeoutError(0, "a pipe that nobody writes to")
        if not (more := os.read(file, min(most - len(data), _CHUNK_BYTES))):
            break
        data += more
    return bytes(data)
