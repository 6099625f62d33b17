"""What the live page costs: a node that changes once a second, and 1, 10 or 50 viewers of it."""

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from bench.progress import say
from bench.report import Figure, Section
from bench.workspace import Workspace
from hami_mock.agent import Agent
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.http.server import serve_http
from hami_mock.views.page.feed import Feed
from hami_mock.views.page.routes import page_routes
from hami_mock.views.page.snapshot import snapshot
from tests.invented import Work, invent

_CARDS = 16
_PODS = 4
"""On each card."""
_VIEWERS = (1, 10, 50)
_PERIOD = 1.0

# Viewers are another process: what they read isn't counted.
_LOOK = """
import selectors, socket, sys
host, port, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chosen = selectors.DefaultSelector()
for _ in range(number):
    viewer = socket.create_connection((host, port))
    viewer.sendall(b"GET /events HTTP/1.1\\r\\n\\r\\n")
    viewer.recv(1)
    chosen.register(viewer, selectors.EVENT_READ)
print("looking", flush=True)
while True:
    for key, _ in chosen.select():
        if not key.fileobj.recv(1 << 20):
            sys.exit("thrown out")
"""


def page_figures(work: Workspace, seconds: float) -> Section:
    """Measure the processor time that a second takes, with viewers and without."""
    figures = anyio.run(_measure, work, seconds)
    return Section(
        f"Page: {_CARDS} cards with {_PODS} containers each, all with new readings every second",
        figures,
        notes=["A change is made once, whoever looks; each viewer costs a write to its socket."],
    )


async def _measure(work: Workspace, seconds: float) -> list[Figure]:
    settings = load(
        {"node-name": "bench", "nvidia-cards": str(_CARDS), "nvidia-memory-factor": "100"}
        | {f"{vendor}-cards": "0" for vendor in ("mlu", "iluvatar", "ascend")}
    )
    agent = Agent(settings, configured_node(settings, None))
    invent(agent.state, 0.0, _work())
    figures = [Figure("a snapshot", _per_call(agent), "ms", 10)]
    async with _served(agent) as (feed, address):
        bare = await _cpu_ms(agent, seconds)
        figures.append(Figure("a second without viewers", bare, "ms"))
        for number in _VIEWERS:
            say(f"page: {number} viewers for {seconds:.0f} s")
            async with _viewers(work, address, number):
                spent = await _cpu_ms(agent, seconds) - bare
                if feed.status()["viewers"] != number:
                    raise SystemExit(f"only {feed.status()['viewers']} of {number} viewers stayed")
            noun = "viewer" if number == 1 else "viewers"
            figures.append(Figure(f"{number} {noun}, more in a second", spent, "ms", 50))
    return figures


def _work() -> Work:
    return {
        ("team-a", f"train-{card}-{pod}", "main"): {f"nvidia/{card}": (20, 2048)}
        for card in range(_CARDS)
        for pod in range(_PODS)
    }


def _per_call(agent: Agent) -> float:
    began = time.process_time()
    for _ in range(20):
        snapshot(agent)
    return (time.process_time() - began) * 1000 / 20


async def _cpu_ms(agent: Agent, seconds: float) -> float:
    """Return what a second takes in which all readings change."""
    began = time.process_time()
    spent_on_inventing = 0.0
    rounds = round(seconds / _PERIOD)
    for moment in range(rounds):
        before = time.process_time()
        invent(agent.state, float(moment), _work())
        spent_on_inventing += time.process_time() - before
        await anyio.sleep(_PERIOD)
    return (time.process_time() - began - spent_on_inventing) * 1000 / rounds


@asynccontextmanager
async def _served(agent: Agent) -> AsyncIterator[tuple[Feed, str]]:
    async def nobody_asked() -> None:
        """There is no kubelet here."""

    feed = Feed(agent, nobody_asked)
    async with (
        serve_http("127.0.0.1:0", page_routes(feed)) as address,
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(feed.run)
        yield feed, address
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _viewers(work: Workspace, address: str, number: int) -> AsyncIterator[None]:
    host, _, port = address.rpartition(":")
    with work.process(["-c", _LOOK, host, port, str(number)], log=sys.stderr) as process:
        assert process.stdout is not None
        if await anyio.to_thread.run_sync(process.stdout.readline) != "looking\n":
            raise SystemExit("the viewers can't look")
        yield
