"""The agent as a user runs it: a process of its own, default flags, HTTP on."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from bench.kubelet import kubelet
from bench.workspace import Workspace, free_port

NODE = "bench"
RESOURCES = 8
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Agent:
    """A running agent whose lists the kubelet has."""

    pid: int
    port: int
    start_seconds: float
    """From the start of the process to the last of the first lists."""

    def resident_mb(self) -> float:
        """Return the memory that the process holds."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def cpu_ticks(self) -> int:
        """Return the processor time used so far, in the kernel's ticks."""
        # The name of the program stands in brackets and may hold spaces.
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
        user, system = fields.split()[11:13]
        return int(user) + int(system)

    def cpu_ms(self) -> float:
        """Return the same from the scheduler, which counts nanoseconds."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e6

    def scrape(self) -> None:
        """Read the metrics."""
        with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            answer.read()


@contextmanager
def agent(work: Workspace, *flags: str, resources: int = RESOURCES) -> Iterator[Agent]:
    """Start an agent against a kubelet of the bench."""
    port = free_port()
    command = [
        str(Path(sys.executable).with_name("hami-mock")),
        "run",
        f"--node-name={NODE}",
        f"--http-listen=127.0.0.1:{port}",
        *flags,
    ]
    log = work.folder / "agent.log"
    with work.sockets() as folder, kubelet(folder) as taker, log.open("w") as stderr:
        began = time.perf_counter()
        with work.process([*command, f"--socket-dir={folder}"], log=stderr) as process:
            try:
                done = taker.wait_for_lists(resources)
            except TimeoutError as error:
                raise SystemExit(f"the agent didn't start: {error}\n{log.read_text()}") from error
            yield Agent(process.pid, port, done - began)


def bare_imports(work: Workspace) -> float:
    """Return the seconds that a fresh interpreter takes to import the libraries alone."""
    libraries = "grpclib.server, grpclib.client, betterproto2, anyio, yaml"
    script = f"import {libraries}; print('done', flush=True)"
    began = time.perf_counter()
    with work.process(["-c", script], log=sys.stderr) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "done\n":
            raise SystemExit("the libraries can't be imported")
        seconds = time.perf_counter() - began
        process.wait()
    return seconds


def milliseconds_per_tick() -> float:
    """Return what one of the kernel's ticks is worth."""
    return 1000 / _TICKS_PER_SECOND
