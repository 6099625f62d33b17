"""`hami-mock fleet` as a person starts it: a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_STOP_S = 30.0
_TIMEOUT_S = 120.0
_LOOK_S = 0.3


class Fleet:
    """A fleet of one name at one API server, whether its process runs or not."""

    def __init__(self, kubeconfig: Path, folder: Path, name: str) -> None:
        self.name = name
        self.folder = folder
        self.socket = folder / f"{name}.sock"
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "HAMI_MOCK_FLEET_SOCKET": str(self.socket),
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def selector(self) -> str:
        return f"hami-mock.io/fleet={self.name}"

    def run(self, *words: str) -> str:
        """Run a command of the fleet to its end; return what it printed."""
        done = self._call(*words)
        assert done.returncode == 0, f"{words} ended with {done.returncode}: {done.stderr}"
        return done.stdout

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_PROGRAM, words[0], "--name", self.name, *words[1:]],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )

    def status(self) -> Any:
        return json.loads(self.run("status", "-o", "json"))

    def start(self, file: Path, *words: str) -> None:
        """Start the fleet's process."""
        assert self._process is None, "it runs already"
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_PROGRAM, "up", str(file), "--name", self.name, *words],
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_until_settled(self) -> None:
        """Wait until it has read all nodes, and none is left to be written."""
        deadline = time.monotonic() + _TIMEOUT_S
        last = ""
        while not _is_settled(last):
            assert time.monotonic() < deadline, f"not settled: {last}"
            time.sleep(_LOOK_S)
            done = self._call("status", "-o", "json")
            last = done.stdout or done.stderr

    def end(self, sig: signal.Signals = signal.SIGTERM) -> int:
        """End the process, if one runs, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(sig)
        try:
            return process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    @property
    def pid(self) -> int:
        assert self._process is not None, "it doesn't run"
        return self._process.pid

    def log(self) -> str:
        return (self.folder / f"{self.name}.log").read_text()


_PROGRAM = (sys.executable, "-m", "hami_mock", "fleet")


def _is_settled(status: str) -> bool:
    """Whether a status is one of a process, and tells of nothing that is left to do."""
    parts = json.loads(status).get("parts", {}) if status.startswith("{") else {}
    nodes = parts.get("nodes")
    return nodes is not None and not nodes["error"] and not nodes["to_write"]
