"""What the live page of a fleet costs its process: `python -m bench.fleet_page`.

5,000 nodes with pods, 100 changes a second; with nobody looking, one viewer and ten of them.
"""

import argparse
import asyncio
import resource
import tempfile
from itertools import cycle
from pathlib import Path

import anyio

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.page.feed import Feed
from hami_mock.fleet.page.routes import page_routes
from hami_mock.views.http.server import serve_http
from tests.invented_fleet import LARGE, assigned_pod, invented_fleet, place, work

CHANGES = 100
"""A second."""


class Viewer:
    """Somebody who looks, in the same process: what it reads costs a little too."""

    def __init__(self) -> None:
        self.first = self.bytes = 0
        self.has_first = anyio.Event()

    async def look(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=2**22)
        writer.write(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        while line := await reader.readline():
            if line.startswith(b"data: ") and not self.first:
                self.first = len(line)
                self.has_first.set()
            self.bytes += len(line)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def change(fleet: Fleet) -> None:
    """Let pods come to nodes and go again."""
    for count, name in enumerate(cycle(fleet.members)):
        member = fleet.members[name]
        if member.pods and len(member.pods) > 4:
            member.pods = dict([*member.pods.items()][1:])
            fleet.changes.send()
        else:
            place(fleet, name, assigned_pod(f"new-{count}", ("GPU-x", 4000, 30)))
        await anyio.sleep(1 / CHANGES)


async def measure(fleet: Fleet, viewers: int, seconds: float) -> None:
    feed = Feed(fleet)
    async with (
        serve_http("127.0.0.1:0", page_routes(feed, fleet)) as address,
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(feed.run)
        looking = [Viewer() for _ in range(viewers)]
        for viewer in looking:
            tasks.start_soon(viewer.look, address)
        tasks.start_soon(change, fleet)
        for viewer in looking:
            await viewer.has_first.wait()
        await anyio.sleep(2)
        before, sent = cpu(), sum(viewer.bytes for viewer in looking)
        await anyio.sleep(seconds)
        used = (cpu() - before) / seconds
        each = (sum(viewer.bytes for viewer in looking) - sent) / seconds / max(viewers, 1)
        first = looking[0].first if looking else 0
        read = f"; each reads {first / 1000:.0f} kB at first and {each / 1000:.1f} kB a second"
        print(f"{viewers:>2} viewers: {used:6.1%} of a core{read if viewers else ''}")
        tasks.cancel_scope.cancel()


async def measure_all(fleet: Fleet, seconds: float) -> None:
    for viewers in (0, 1, 10):
        await measure(fleet, viewers, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        fleet = invented_fleet(Path(folder), LARGE)
    work(fleet)
    anyio.run(measure_all, fleet, seconds)


if __name__ == "__main__":
    main()
