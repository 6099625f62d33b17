"""A private place for a whole cluster: own mounts, network and process numbers."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import cgroups
from .cache import exclusive
from .commands import hearing_signals
from .errors import HarnessError
from .own_modules import module_command, module_environment

END_TIMEOUT_S = 40.0
FORK_TIMEOUT_S = 10.0


class Sandbox:
    """Namespaces kept by `sandbox_init`; they end when `close` is called or this process ends."""

    def __init__(self, name: str, process: subprocess.Popen[str], init_pid: int) -> None:
        self.name = name
        self.init_pid = init_pid
        self._process = process
        self._entered: list[subprocess.Popen[bytes]] = []

    @classmethod
    def start(cls) -> Sandbox:
        # The lock keeps a second run from taking groups without a member yet for abandoned ones.
        with exclusive("sandbox"):
            cgroups.remove_abandoned()
            name = cgroups.PREFIX + secrets.token_hex(4)
            process = _spawn(name)
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                _, said = process.communicate(timeout=END_TIMEOUT_S)
                cgroups.remove(name)
                raise HarnessError(f"the sandbox did not start: {said.strip()}")
        return cls(name, process, _child(process))

    @property
    def root(self) -> Path:
        """The sandbox's file system as seen from outside: works for files and for sockets."""
        return Path(f"/proc/{self.init_pid}/root")

    def outside(self, inside: Path) -> Path:
        """The path from outside of a path inside."""
        return self.root / inside.relative_to("/")

    def argv(self, command: Sequence[str | Path]) -> list[str]:
        """`command`, to run wholly inside."""
        return self._enter("--mount", "--net", "--pid", command=command)

    def network_argv(self, command: Sequence[str | Path]) -> list[str]:
        """`command`, to run with the sandbox's network and the machine's files."""
        return self._enter("--net", command=command)

    def _enter(self, *namespaces: str, command: Sequence[str | Path]) -> list[str]:
        words = [str(word) for word in command]
        return ["nsenter", f"--target={self.init_pid}", *namespaces, "--", *words]

    def spawn(
        self, command: Sequence[str | Path], *, env: Mapping[str, str], log: Path
    ) -> tuple[subprocess.Popen[bytes], int]:
        """Start `command` wholly inside; return its handle, and its own number seen from outside.

        The handle is that of `nsenter`, which waits for the command and ends as it ended; a
        signal to the command goes to its own number.
        """
        with log.open("ab") as file:
            process = subprocess.Popen(
                self.argv(hearing_signals(command)),
                cwd="/",
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._entered.append(process)
        return process, _child(process)

    def close(self) -> None:
        """End every process inside; mounts, interfaces and state go with them."""
        with self._process as process:  # closes the pipe, which is what ends it, and waits
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.kill(self.init_pid, signal.SIGKILL)
        for entered in self._entered:
            entered.wait(END_TIMEOUT_S)
        cgroups.remove(self.name)


def _spawn(name: str) -> subprocess.Popen[str]:
    namespaces = ["--mount", "--net", "--pid", "--fork", "--mount-proc"]
    return subprocess.Popen(
        ["unshare", *namespaces, "--", *module_command("sandbox_init"), name],
        cwd="/",
        env=module_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Ctrl-C at the terminal is for the test process; it then ends the sandbox in order.
        start_new_session=True,
    )


def _child(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> int:
    """The process that `unshare` or `nsenter` forked into the namespace, by its outer number."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + FORK_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if found := children.read_text().split():
            return int(found[0])
        time.sleep(0.005)
    raise HarnessError(f"{process.args!r} started nothing in its namespace")
