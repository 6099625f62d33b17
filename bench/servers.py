"""A server's process as the bench sees it, ours or the rival's."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.kubelet import Client
from bench.workspace import Workspace

OURS = "bench.our_server"
RIVAL = "bench.rival_server"


@dataclass(frozen=True)
class Lists:
    """Two lists as a client got them, and the seconds that each took."""

    first: bytes
    second: bytes
    first_seconds: float
    flip_seconds: float


class Server:
    """One running server."""

    def __init__(self, process: "subprocess.Popen[str]", socket: Path) -> None:
        self._process = process
        self.socket = socket

    def ask(self, command: str) -> Any:
        """Send a command and return its answer."""
        self.tell(command)
        return self.hear()

    def tell(self, command: str) -> None:
        """Send a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Return the answer to the oldest command."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a server of the bench ended unexpectedly; its error is above")
        return json.loads(line)

    def fetch_lists(self) -> Lists:
        """Take the first list, flip a card, take the second; leave the card as it was."""
        client = Client(self.socket)
        try:
            client.connect()
            began = time.perf_counter()
            stream = client.watch()
            first = next(stream)
            listed = time.perf_counter()
            self.tell("flip")
            second = next(stream)
            flipped = time.perf_counter()
            self.hear()
            self.ask("flip")
            next(stream)
            return Lists(first, second, listed - began, flipped - listed)
        finally:
            client.close()


@contextmanager
def server(work: Workspace, module: str, devices: int) -> Iterator[Server]:
    """Run a server with so many devices."""
    with work.sockets() as folder:
        socket = folder / "plugin.sock"
        arguments = ["-m", module, str(socket), str(devices)]
        with work.process(arguments, stdin=subprocess.PIPE, log=sys.stderr) as process:
            running = Server(process, socket)
            running.hear()
            yield running
