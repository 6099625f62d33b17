"""From a card's failure to the Node's status at the API server, on a node with many units."""

import http.client
import json
import socket
import ssl
import threading
import time
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

import trustme

from bench.agent import NODE, agent
from bench.api_server import api_server
from bench.progress import say
from bench.report import Figure, Section
from bench.workspace import Workspace
from tests.integration.fake_api_server import FakeApiServer, Object

_CARDS, _CARD = 8, 183_359
_ALL, _LESS = _CARDS * _CARD, (_CARDS - 1) * _CARD
_MEMORY = "nvidia.com/gpumem"
_OTHER = "other"
"""A node of nobody's: patches of it are the measure."""
_FLAGS = (
    "--units=status", f"--nvidia-cards={_CARDS}", "--nvidia-model=B200",
    "--mlu-cards=0", "--iluvatar-cards=0", "--ascend-cards=0",
)  # fmt: skip
_SECONDS = 20.0
_SETTLE_SECONDS = 1.0
_PAUSE_SECONDS = 0.02
"""After a change, until the agent has seen its own write: changes seldom come at once."""


class _Server(FakeApiServer):
    """Knows when the node last began to show another amount of memory."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._news = threading.Condition()
        self._shown: int | None = None
        self._since = 0.0

    def put(self, resource: str, thing: Object) -> Object:
        made = super().put(resource, thing)
        if (resource, thing["metadata"]["name"]) == ("nodes", NODE):
            count = int(thing["status"]["allocatable"].get(_MEMORY, 0))
            with self._news:
                if count != self._shown:
                    self._shown, self._since = count, time.perf_counter()
                    self._news.notify()
        return made

    def wait_for(self, count: int) -> float:
        """Wait until the node shows so much; return the clock when it began to."""
        with self._news:
            if not self._news.wait_for(lambda: self._shown == count, _SECONDS):
                raise SystemExit(f"the node shows {self._shown} of {_MEMORY}, not {count}")
            return self._since


def status_figures(work: Workspace, repeats: int) -> Section:
    """Let a card fail and recover again and again; after each change patch another node."""
    changes: list[float] = []
    bare: list[float] = []
    authority, server = trustme.CA(), _Server()
    nodes = (
        ("nodes", {"metadata": {"name": name}, "status": {"capacity": {}, "allocatable": {}}})
        for name in (NODE, _OTHER)
    )
    with (
        api_server(work, server, nodes, authority) as (connected, url),
        connected.sockets() as folder,
        agent(connected, *_FLAGS, f"--control-socket={folder / 'c'}", resources=1) as running,
    ):
        patch = _Patch(url, authority)
        server.wait_for(_ALL)
        time.sleep(_SETTLE_SECONDS)
        before, cpu_before = len(server.writes), running.cpu_ms()
        for number in range(repeats):
            say(f"status: {number} of {repeats}")
            for verb, count in (("fail", _LESS), ("recover", _ALL)):
                began = _tell(folder / "c", verb)
                changes.append((server.wait_for(count) - began) * 1000)
                time.sleep(_PAUSE_SECONDS)
                bare.append(patch.send(count) * 1000)
        time.sleep(_SETTLE_SECONDS)
        spent = running.cpu_ms() - cpu_before
        written = sum(write.name == NODE for write in server.writes[before:])
    ours, theirs = quantiles(changes, n=100), quantiles(bare, n=100)
    return Section(
        f"Status: a card of {_CARDS} fails or recovers, {_ALL:,} units in the Node's status",
        [
            Figure("from the change until the server has it, p50", ours[49], "ms"),
            Figure("from the change until the server has it, p99", ours[98], "ms"),
            Figure("a bare PATCH and its answer, p50", theirs[49], "ms"),
            Figure("a bare PATCH and its answer, p99", theirs[98], "ms"),
            Figure("change / bare PATCH, p50 / p50", ours[49] / theirs[49], "x"),
            Figure("change - bare PATCH, p50 - p50", ours[49] - theirs[49], "ms", 20),
            Figure("writes per change", written / len(changes), "", 1),
            Figure("the agent's processor time per change", spent / len(changes), "ms"),
        ],
        notes=[
            f"{len(changes)} changes, counted from when the agent is told as `ctl` tells it; the "
            "server is asked",
            "over TLS, by connections that are kept.",
        ],
    )


def _tell(control: Path, verb: str) -> float:
    """Do as `hami-mock ctl VERB nvidia/0` does; return the clock when the request was sent."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(str(control))
        request = {"command": verb, "arguments": {"targets": ["nvidia/0"]}}
        began = time.perf_counter()
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answers:
            answer = json.loads(answers.readline())
    if "error" in answer:
        raise SystemExit(f"the agent can't {verb} a card: {answer['error']}")
    return began


class _Patch:
    """Sends patches as large as the agent's over one connection."""

    def __init__(self, url: str, authority: trustme.CA) -> None:
        trust = ssl.create_default_context()
        authority.configure_trust(trust)
        self._connection = http.client.HTTPSConnection(
            urlsplit(url).netloc, context=trust, timeout=_SECONDS
        )

    def send(self, count: int) -> float:
        """Return the seconds from the request to its answer."""
        amounts = {_MEMORY: str(count)}
        body = json.dumps({"status": {"capacity": amounts, "allocatable": amounts}})
        headers = {"Content-Type": "application/merge-patch+json"}
        began = time.perf_counter()
        self._connection.request("PATCH", f"/api/v1/nodes/{_OTHER}/status", body, headers)
        answer = self._connection.getresponse()
        answer.read()
        taken = time.perf_counter() - began
        if answer.status != http.client.OK:
            raise SystemExit(f"the server answers {answer.status} to a patch")
        return taken
