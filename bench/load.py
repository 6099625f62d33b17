"""python -m bench.load: many allocations a second, on one agent and on sixteen side by side."""

import argparse
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

# grpcio looks at this when it is imported: the load starts processes, but never forks itself.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import grpc

from bench.progress import clear, say
from bench.report import Figure
from bench.workspace import ROOT, Workspace, workspace
from hami_mock.kit.terminal import table
from tests.defaults import DEFAULT_COUNTS
from tests.integration.grpcio_kubelet import GrpcioKubelet

DOCUMENT = ROOT / "docs" / "reliability.md"
_MARKED = re.compile(r"(<!-- load figures -->\n)(.*?)(<!-- end of load figures -->)", re.DOTALL)
_AGENTS = 16
_RATE = 200
_IN_FLIGHT = 16
_SIZES = (1, 1, 1, 10, 100)
"""How many devices a container asks for."""
_CALL = "/v1beta1.DevicePlugin/Allocate"


@dataclass(frozen=True)
class Loaded:
    """An agent, and requests that it can be asked: a channel and the bytes of each."""

    pid: int
    requests: Sequence[tuple[grpc.Channel, bytes]]

    def memory(self) -> tuple[float, float]:
        """Return RSS and PSS in MiB."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        sizes = {line.split(":")[0]: line.split()[1] for line in lines[1:]}
        return int(sizes["Rss"]) / 1024, int(sizes["Pss"]) / 1024


@dataclass
class Result:
    """The milliseconds of each answer, and how many calls failed."""

    milliseconds: list[float]
    failed: int
    seconds: float

    def figures(self, name: str) -> list[Figure]:
        cuts = quantiles(self.milliseconds, n=100)
        return [
            Figure(f"{name}: answers", len(self.milliseconds) / self.seconds, "/s"),
            Figure(f"{name}: p50", median(self.milliseconds), "ms"),
            Figure(f"{name}: p99", cuts[98], "ms"),
            Figure(f"{name}: failed", self.failed, ""),
        ]


class Calls:
    """Calls that are under way, and what came of those that are done."""

    def __init__(self, most: int) -> None:
        self._room = threading.Semaphore(most)
        self._done: list[float] = []
        self._failed = 0

    def start(self, channel: grpc.Channel, request: bytes, since: float) -> None:
        """Call, as soon as there is room; the time counts from `since`."""
        self._room.acquire()
        call = channel.unary_unary(_CALL).future(request, timeout=60)

        def done(finished: Any) -> None:
            if finished.code() is grpc.StatusCode.OK:
                self._done.append((time.perf_counter() - since) * 1000)
            else:
                self._failed += 1
            self._room.release()

        call.add_done_callback(done)

    def result(self, most: int, began: float) -> Result:
        """Wait for all that are under way; their time counts too."""
        for _ in range(most):
            self._room.acquire()
        return Result(self._done, self._failed, time.perf_counter() - began)


def steady(agents: Sequence[Loaded], rate: int, seconds: float) -> Result:
    """Allocate so often a second, whether answers come or not; a late call counts as late."""
    requests = [request for agent in agents for request in agent.requests]
    most = 10_000
    calls, began = Calls(most), time.perf_counter()
    for number in range(int(rate * seconds)):
        due = began + number / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        calls.start(*requests[number % len(requests)], since=due)
    return calls.result(most, began)


def ceiling(agents: Sequence[Loaded], seconds: float) -> Result:
    """Allocate as fast as answers come, with a few calls under way."""
    requests = [request for agent in agents for request in agent.requests]
    calls, began = Calls(_IN_FLIGHT), time.perf_counter()
    number = 0
    while time.perf_counter() - began < seconds:
        calls.start(*requests[number % len(requests)], since=time.perf_counter())
        number += 1
    return calls.result(_IN_FLIGHT, began)


@contextmanager
def loaded(work: Workspace, count: int, seed: int) -> Iterator[list[Loaded]]:
    """Start agents with the default flags, each on a folder and a kubelet of its own."""
    import deviceplugin_pb2 as messages  # type: ignore[import-not-found]

    path = f"{work.environment['PYTHONPATH']}:{os.environ.get('PYTHONPATH', '')}"
    own = Workspace(work.folder, {**work.environment, "PYTHONPATH": path})
    quiet = ("--http-listen=", "--control-socket=", "--pod-resources-socket=")
    with ExitStack() as stack:
        log = stack.enter_context((work.folder / "agents.log").open("w"))
        started = []
        for number in range(count):
            folder = stack.enter_context(work.sockets())
            kubelet = stack.enter_context(GrpcioKubelet(folder, messages))
            command = ["-m", "hami_mock", "run", f"--node-name=n{number}", *quiet]
            process = own.process([*command, f"--socket-dir={folder}"], log=log)
            started.append((kubelet, stack.enter_context(process).pid))
        found = []
        for kubelet, pid in started:
            kubelet.wait_for_lists(set(DEFAULT_COUNTS))
            requests = list(_requests(kubelet, messages, Random(seed), stack))
            found.append(Loaded(pid, requests))
        yield found


def _requests(
    kubelet: GrpcioKubelet, messages: Any, random: Random, stack: ExitStack
) -> Iterator[tuple[grpc.Channel, bytes]]:
    for resource in sorted(DEFAULT_COUNTS):
        ids = list(kubelet.devices(resource))
        socket = kubelet.folder / kubelet.current(resource).endpoint
        channel = stack.enter_context(grpc.insecure_channel(f"unix:{socket}"))
        for size in _SIZES:
            chosen = random.sample(ids, min(size, len(ids)))
            container = messages.ContainerAllocateRequest(device_ids=chosen)
            request = messages.AllocateRequest(container_requests=[container])
            yield channel, request.SerializeToString()


def measure(work: Workspace, seconds: float, seed: int) -> list[Figure]:
    figures: list[Figure] = []
    with loaded(work, 1, seed) as agents:
        say(f"{_RATE} allocations a second for {seconds:.0f} s")
        steady(agents, _RATE, 2)  # warms up
        figures += steady(agents, _RATE, seconds).figures(f"{_RATE}/s on one agent")
        say("as many allocations as can be")
        figures += ceiling(agents, seconds / 4).figures("the most that one agent does")
        figures.append(Figure("one agent's resident memory then", agents[0].memory()[0], "MiB"))
    say(f"{_AGENTS} agents")
    began = time.perf_counter()
    with loaded(work, _AGENTS, seed) as agents:
        figures.append(
            Figure(f"{_AGENTS} agents registered and listed", time.perf_counter() - began, "s")
        )
        say(f"{_AGENTS} agents: {_RATE} allocations a second for {seconds / 2:.0f} s")
        figures += steady(agents, _RATE, seconds / 2).figures(f"{_RATE}/s on {_AGENTS} agents")
        shared = sum(agent.memory()[1] for agent in agents)
        figures.append(Figure(f"proportional memory of {_AGENTS} agents", shared, "MiB"))
    return figures


def last_figures() -> dict[str, str]:
    """Return the figures that stand in the document, by name."""
    marked = _MARKED.search(DOCUMENT.read_text())
    rows = re.findall(r"^\| (.*?) \| (.*?) \|", marked[2] if marked else "", re.MULTILINE)
    return {name: value for name, value in rows if name != "figure"}


def write(figures: Sequence[Figure]) -> None:
    """Put the figures into the document, in place of those that stand there."""
    rows = "".join(f"| {each.name} | {_shown(each)} |\n" for each in figures)
    block = f"| figure | value |\n|---|---|\n{rows}"
    text = _MARKED.sub(lambda found: found[1] + block + found[3], DOCUMENT.read_text())
    DOCUMENT.write_text(text)


def _shown(figure: Figure) -> str:
    is_whole = figure.value >= 100 or figure.value == int(figure.value)
    number = f"{figure.value:.0f}" if is_whole else f"{figure.value:.2f}"
    return f"{number} {figure.unit}".strip()


def main() -> int:
    """Measure, and print the figures beside the last ones. They are no tests: the code is 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for the longest part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"keep them in {DOCUMENT.name}")
    options = parser.parse_args()
    with workspace() as work:
        figures = measure(work, options.seconds, options.seed)
    clear()
    last = last_figures()
    rows = [(each.name, last.get(each.name, ""), _shown(each)) for each in figures]
    print("\n".join(table(("FIGURE", "LAST FIGURES", "NOW"), rows, " rr")))
    if options.write:
        write(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
