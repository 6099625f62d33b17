"""Strangers at the HTTP port: whatever they do, memory is bounded and probes are answered."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count, islice
from pathlib import Path

import pytest

from tests.defaults import DEFAULT_COUNTS
from tests.integration.agents import ONLY_NVIDIA, AgentProcess, agent_process, get
from tests.integration.grpcio_kubelet import GrpcioKubelet

FLAGS = (*ONLY_NVIDIA, "--nvidia-memory=16", "--log-level=debug")
ALL = {name for name in DEFAULT_COUNTS if name.startswith("nvidia.com/")}
STRANGERS = 1000


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Let this process have as many files open as the test needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < STRANGERS + 200:
        pytest.skip(f"this process may open no more than {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, STRANGERS + 200), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Target:
    """An agent, and where it listens."""

    def __init__(self, agent: AgentProcess) -> None:
        self.agent = agent
        self.pid = agent.process.pid
        host, _, port = agent.wait_for_log("HTTP at").split("HTTP at ")[1].strip().rpartition(":")
        self.address = (host, int(port))

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=10)

    def probe(self) -> None:
        """Ask as the kubelet does; it waits for a second only, but this machine may be busy."""
        url = "http://{}:{}".format(*self.address)
        assert get(f"{url}/healthz", timeout=5) == (200, "ok\n")
        assert get(f"{url}/readyz", timeout=5)[0] in (200, 503)

    @property
    def files(self) -> set[int]:
        return {int(file.name) for file in Path(f"/proc/{self.pid}/fd").iterdir()}

    def leave_files(self, number: int) -> None:
        """Let it open so many files more, and then no other. The limit is on their numbers."""
        free = (each for each in count() if each not in self.files)
        # The first three stay open. Any other may be closed at this moment, and leave its number.
        most = next(islice(free, number, None)) if number else 3
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (most, hard))

    @property
    def memory(self) -> int:
        """The most bytes that it ever had in memory."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmHWM")

    def rest_of_the_log(self) -> list[str]:
        self.agent.process.terminate()
        assert self.agent.process.stderr is not None
        return self.agent.process.stderr.read().splitlines()


def crowd(stack: ExitStack, target: Target, said: bytes = b"") -> None:
    """Connect again and again, say something and stay; ask as the kubelet does in between."""
    for number in range(STRANGERS):
        stranger = stack.enter_context(target.connect())
        with suppress(ConnectionError):  # it may have been thrown out already
            stranger.sendall(said)
        if number % 50 == 0:
            target.probe()
    target.probe()


def test_a_crowd_that_says_nothing_takes_no_more_than_its_room(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, *FLAGS, http="127.0.0.1:0") as agent, ExitStack() as stack:
        target = Target(agent)
        target.probe()
        kubelet.wait_for_lists(ALL)
        before = len(target.files)
        crowd(stack, target)
        assert len(target.files) <= before + 110
        log = target.rest_of_the_log()
    assert len([line for line in log if "too many connections" in line]) == 1
    assert len([line for line in log if "HTTP" in line]) == 1


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 65_000, id="headers without end"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 8_000, id="half a header"),
        pytest.param(b"GET /metrics HTTP/1.1\r\n\r\n", id="scrapes that nobody reads"),
    ],
)
def test_what_a_crowd_says_is_bounded_in_memory(kubelet: GrpcioKubelet, said: bytes) -> None:
    with agent_process(kubelet.folder, *FLAGS, http="127.0.0.1:0") as agent, ExitStack() as stack:
        target = Target(agent)
        target.probe()
        # The first scrape loads what makes the text.
        assert get("http://{}:{}/metrics".format(*target.address))[0] == 200
        kubelet.wait_for_lists(ALL)
        before = target.memory
        crowd(stack, target, said)
        assert target.memory - before < 8 * 2**20


@pytest.mark.parametrize("left", [1, 20])
def test_out_of_files_the_probes_are_answered_and_the_log_stays_short(
    kubelet: GrpcioKubelet, left: int
) -> None:
    with agent_process(kubelet.folder, *FLAGS, http="127.0.0.1:0") as agent, ExitStack() as stack:
        target = Target(agent)
        target.probe()
        kubelet.wait_for_lists(ALL)
        target.leave_files(left)
        crowd(stack, target)
        log = target.rest_of_the_log()
    assert len([line for line in log if "Too many open files" in line]) == 1
    assert len([line for line in log if "HTTP" in line]) == 1


def test_without_any_file_left_it_answers_as_soon_as_there_is_one(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, *FLAGS, http="127.0.0.1:0") as agent:
        target = Target(agent)
        target.probe()
        kubelet.wait_for_lists(ALL)
        before = resource.prlimit(target.pid, resource.RLIMIT_NOFILE)
        target.leave_files(0)
        with target.connect() as probe:
            probe.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            agent.wait_for_log(
                "HTTP: can't accept a connection: OSError(24, 'Too many open files')"
            )
            resource.prlimit(target.pid, resource.RLIMIT_NOFILE, before)
            assert probe.recv(100).startswith(b"HTTP/1.1 200 OK")
        log = target.rest_of_the_log()
    assert [line for line in log if "HTTP" in line or "Errno" in line] == []
