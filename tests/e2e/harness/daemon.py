"""A long-running program inside the sandbox."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import DaemonDied, HarnessError, last_lines
from .layout import HOME, LOGS, TEMPORARY
from .sandbox import Sandbox

STOP_TIMEOUT_S = 20.0
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Usage:
    """What a daemon has used since its start."""

    cpu_seconds: float
    resident_bytes: int


class Daemon:
    def __init__(
        self,
        sandbox: Sandbox,
        name: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._sandbox = sandbox
        self._argv = argv
        self._env = env or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process number, as seen from outside the sandbox."""
        return self._pid

    def start(self, *flags: str) -> None:
        """Start it, with these flags for this time."""
        if self.running:
            raise HarnessError(f"{self.name} is already running")
        # The sandbox's environment must not depend on the caller's home or proxy settings.
        env = {
            "PATH": SEARCH_PATH,
            "HOME": str(HOME),
            "TMPDIR": str(TEMPORARY),
            **self._env,
        }
        argv = [*self._argv, *flags]
        self._process, self._pid = self._sandbox.spawn(argv, env=env, log=self._log_path())

    def stop(self, sig: signal.Signals = signal.SIGTERM) -> None:
        """Send `sig` and wait for the end; SIGKILL follows when it takes too long."""
        if self._process is None or not self.running:
            return
        os.kill(self._pid, sig)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.kill(self._pid, signal.SIGKILL)
            self._process.wait(STOP_TIMEOUT_S)
        self._process = None

    def check(self) -> None:
        """Raise DaemonDied when it ended without being asked to."""
        if self._process is not None and not self.running:
            raise DaemonDied(self.name, self._process.returncode, last_lines(self.log()))

    def log(self) -> str:
        """Everything it has written since the cluster's start, over its own restarts."""
        try:
            return self._log_path().read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def usage(self) -> Usage:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        pages = int(fields[21])
        return Usage(ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))

    def _log_path(self) -> Path:
        return self._sandbox.outside(LOGS / f"{self.name}.log")
