"""A program that runs as long as we do: its log, its end, and what it has used."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hami_mock.errors import StartError

STOP_SECONDS = 10.0
_LAST_LINES = 15


class Usage(NamedTuple):
    """What a program has used since its start."""

    cpu_seconds: float
    resident_bytes: int


class Child:
    """One program. The kernel ends it when the thread that started it ends, even by SIGKILL."""

    def __init__(
        self, name: str, argv: Sequence[str | Path], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.log = folder / "logs" / f"{name}.log"
        # Nothing that it does may depend on its caller's home or proxies.
        own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), **environment}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - programs that we have looked for
                [str(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=own,
                cwd=folder,
                # Ctrl-C in our terminal is for us: we end the others in their order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise StartError if it has ended by itself."""
        if (code := self._process.poll()) is not None:
            raise StartError(f"{self.name} ended by itself with {code}; {self.last_words()}")

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for its end; return its exit code. Raises TimeoutExpired."""
        return self._process.wait(seconds)

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").rstrip().splitlines()[-_LAST_LINES:]
        return "the end of its log:\n" + "\n".join(lines)

    def stop(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """End it and wait for its end. Nothing of it is needed later, so nothing is saved."""
        self._process.send_signal(sig)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)

    def usage(self) -> Usage:
        """Return what it has used so far. Raises OSError if it has ended."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        pages = int(fields[21])
        return Usage(ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))
