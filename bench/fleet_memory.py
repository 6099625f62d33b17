"""How much memory a fleet takes: its nodes are made at an API server that keeps nothing."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from bench.progress import say
from bench.report import Figure, Section

RACK = 40


def memory_figures(nodes: int) -> Section:
    """Measure a process of its own, which has nothing else in it."""
    say(f"memory: {nodes:,} nodes in memory")
    done = subprocess.run(
        [sys.executable, "-m", "bench.fleet_memory", str(nodes)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    told = json.loads(done.stdout)
    return Section(
        f"{nodes:,} nodes in memory, at an API server that is simulated",
        [
            Figure("resident, all nodes made", told["made_mb"], "MB", 120, is_firm=True),
            Figure("resident, a rack of 40 broken", told["broken_mb"], "MB", 120, is_firm=True),
            Figure("CPU a node", told["cpu_ms"], "ms"),
        ],
    )


def pool_file(name: str, nodes: int) -> str:
    """Return a file with a pool of nodes with eight A100. JSON is YAML."""
    others = {maker: {"cards": 0} for maker in ("nvidia", "mlu", "iluvatar", "ascend")}
    cards = {"cards": 8, "model": "A100-SXM4-80GB"}
    pool = {"name": name, "nodes": nodes, "rack": RACK, "nvidia": cards}
    return json.dumps({"hami": True, **others, "pools": [pool]})


class _Nowhere:
    """Takes what is written, and answers with it as an API server does."""

    def __init__(self) -> None:
        self.version = 0

    async def watch_pages(self, *_: object) -> Any:
        from hami_mock.cluster.objects import Change

        yield Change([], is_all=True)
        await anyio.sleep_forever()

    async def create(self, _: object, thing: dict[str, Any]) -> dict[str, Any]:
        await anyio.lowlevel.checkpoint()
        self.version += 1
        ready = {"type": "Ready", "status": "True"}
        metadata = {**thing["metadata"], "resourceVersion": str(self.version)}
        status = {**thing["status"], "conditions": [ready]}
        return {**thing, "metadata": metadata, "status": status}


async def _measure(nodes: int, folder: Path) -> dict[str, float]:
    import time

    from hami_mock.fleet.budget import Budget
    from hami_mock.fleet.controller import Controller
    from hami_mock.fleet.fleet import Fleet
    from hami_mock.settings.settings import load_pools

    file = folder / "fleet.yaml"
    file.write_text(pool_file("a100", nodes))
    fleet = Fleet("bench", load_pools(str(file)))
    controller = Controller(fleet, _Nowhere(), Budget(0))  # type: ignore[arg-type]
    told = {}
    async with anyio.create_task_group() as tasks:
        await tasks.start(controller.run)
        await fleet.changes.wait_until(lambda: controller.status()["there"] == nodes)
        told["made_mb"] = _resident_mb()
        told["cpu_ms"] = 1000 * time.process_time() / nodes
        fleet.act("fail", fleet.find(["rack=a100-r0"]), {"xid": 79})
        told["broken_mb"] = _resident_mb()
        tasks.cancel_scope.cancel()
    return told


def _resident_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        print(json.dumps(anyio.run(_measure, int(sys.argv[1]), Path(folder))))
