"""A lock on a folder, for as long as this process lives."""

import fcntl
import os
from pathlib import Path


class FolderLock:
    """Locks the folder itself, not a file in it: whoever empties the folder doesn't end the lock.

    The kernel ends it with the process, however that dies, and containers share it if they share
    the folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder: int | None = None

    def acquire(self) -> None:
        """Lock the folder, or the one that took its place; do nothing if it is locked by us.

        Raises BlockingIOError if somebody else has locked it, OSError if it can't be opened.
        """
        if self._folder is not None:
            if os.path.samestat(os.fstat(self._folder), self._path.stat()):
                return
            self.release()
        folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(folder)
            raise
        self._folder = folder

    def release(self) -> None:
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None

    def owner(self) -> int | None:
        """Return the process that has locked the folder, if it can be seen from here."""
        folder = self._path.stat()
        device = f"{os.major(folder.st_dev):02x}:{os.minor(folder.st_dev):02x}"
        try:
            locks = Path("/proc/locks").read_text().splitlines()
        except OSError:
            return None
        for line in locks:
            # 1: FLOCK  ADVISORY  WRITE 25555 fe:00:10103061 0 EOF
            words = line.split()
            if words[1] == "FLOCK" and words[-3] == f"{device}:{folder.st_ino}":
                return int(words[-4])
        return None
