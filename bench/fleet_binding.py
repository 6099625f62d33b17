"""What a pod on a fleet node costs our own process: python -m bench.fleet_binding [PODS]

The API server is the tests' one, in a process of its own, which also plays HAMi's scheduler (locks
the node, binds) and KWOK (lets the pod run, and ends it). Counted is the CPU time of the process
that follows the pods and binds them: all events of each pod's life, and both writes.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from bench.progress import say
from bench.report import Figure, Section

_NODES = 1000
_AT_ONCE = 10
_POOLS = f"""
hami: true
pools:
  - {{name: a, nodes: {_NODES}, nvidia: {{cards: 8, model: A100-SXM4-80GB}}}}
"""
_LOCK = "hami.io/mutex.lock"
# As much as a Deployment's pod has beside what we read.
_FILLER = [{"manager": f"m{i}", "fieldsV1": {f"f:{n}": {} for n in range(20)}} for i in range(8)]


def binding_figures(pods: int) -> Section:
    """Measure a process of its own."""
    say(f"binding: {pods:,} pods through HAMi's protocol")
    words = [sys.executable, "-m", "bench.fleet_binding", str(pods)]
    told = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout)
    return Section(
        f"{pods:,} pods through HAMi's whole protocol, at an API server that is simulated",
        [
            Figure("our CPU a pod", told["own_cpu_ms_a_pod"], "ms", 5),
            Figure("bound and unlocked after", told["bind_ms_mean"], "ms"),
        ],
    )


def _pod(name: str, node: str, card: str) -> dict[str, Any]:
    from tests.unit.views.hami.rig import pod, segment

    found = pod(name, node=node, vgpu=segment(card))
    found["metadata"]["managedFields"] = _FILLER
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}
    found["spec"]["containers"] = [{"name": "c", "resources": {"limits": limits}}]
    return found


async def _play(folder: Path, pods: int) -> None:
    """Serve, and let pods come and go."""
    from hami_mock.hami.lock import NodeLock
    from tests.integration.fake_api_server import FakeApiServer, api_server

    def bind(server: FakeApiServer, number: int) -> None:
        node, name = f"a-{number % _NODES}", f"p{number}"
        lock = NodeLock(datetime.now(UTC), "default", name).encode()
        server.annotate("nodes", node, {_LOCK: lock})
        server.put("pods", _pod(name, node, cards[node]))

    def end(server: FakeApiServer, number: int) -> None:
        thing = server.objects["pods", "default", f"p{number}"]
        server.put("pods", {**thing, "status": {"phase": "Running"}})
        server.remove("pods", f"p{number}", "default")

    def is_done(server: FakeApiServer, number: int) -> bool:
        annotations = server.annotations("pods", f"p{number}", "default")
        is_locked = _LOCK in server.annotations("nodes", f"a-{number % _NODES}")
        return annotations["hami.io/bind-phase"] == "success" and not is_locked

    cards = json.loads((folder / "cards").read_text())
    async with api_server(folder) as server:
        for name in cards:
            node = {"metadata": {"name": name, "annotations": {}, "managedFields": _FILLER}}
            server.put("nodes", node)
        server._events.clear()
        (folder / "ready").touch()
        await server.wait_until(
            lambda: "watch pods" in server.requests and "watch nodes" in server.requests
        )
        for first in range(0, pods, _AT_ONCE):
            wave = range(first, min(pods, first + _AT_ONCE))
            for number in wave:
                bind(server, number)
            await server.wait_until(lambda wave=wave: all(is_done(server, n) for n in wave))  # type: ignore[misc]
            for number in wave:
                end(server, number)
            await anyio.sleep(0.5)
            server._events.clear()
        await anyio.sleep(60)


async def _measure(folder: Path, pods: int) -> dict[str, float]:
    from hami_mock.cluster.kubernetes import Kubernetes
    from hami_mock.cluster.resources import NODES, PODS
    from hami_mock.fleet.binding import Binder
    from hami_mock.fleet.budget import Budget
    from hami_mock.fleet.fleet import Fleet
    from hami_mock.fleet.paid import Paid
    from hami_mock.fleet.pods import BOUND, FleetPods
    from hami_mock.settings.settings import load_pools

    config = folder / "fleet.yaml"
    config.write_text(_POOLS)
    fleet = Fleet("bench", load_pools(str(config)))
    cards = {name: fleet.state(of).node.cards[0].uuid for name, of in fleet.members.items()}
    (folder / "cards").write_text(json.dumps(cards))

    async def follow(kubernetes: Kubernetes, binder: Binder) -> None:
        async for change in kubernetes.watch_pages(NODES):
            for node in change.things:
                binder.left.see(fleet.members[node["metadata"]["name"]], node)

    words = [sys.executable, "-m", "bench.fleet_binding", "play", str(folder), str(pods)]
    child = subprocess.Popen(words)  # noqa: ASYNC220
    try:
        while not (folder / "ready").exists():  # noqa: ASYNC110
            await anyio.sleep(0.1)
        os.environ["KUBECONFIG"] = str(folder / "kubeconfig")
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            binder = Binder(fleet, Paid(kubernetes, Budget(0)))
            watch = FleetPods(fleet, lambda: kubernetes.watch_pages(PODS, fields=BOUND), binder.see)
            await tasks.start(binder.run)
            tasks.start_soon(follow, kubernetes, binder)
            begun, before = time.monotonic(), time.process_time()
            await tasks.start(watch.run)
            # Not at each change: to look costs time, and that is counted.
            members = fleet.members.values()
            while binder.bound < pods or any(of.pods for of in members):  # noqa: ASYNC110
                await anyio.sleep(0.2)
            spent, lasted = time.process_time() - before, time.monotonic() - begun
            tasks.cancel_scope.cancel()
        return {
            "pods": pods,
            "own_cpu_ms_a_pod": round(1000 * spent / pods, 2),
            "bind_ms_mean": round(1000 * binder.seconds.total / pods, 1),
            "pods_a_second": round(pods / lasted, 1),
        }
    finally:
        child.kill()
        child.wait()


def main(words: list[str]) -> None:
    if words[:1] == ["play"]:
        anyio.run(_play, Path(words[1]), int(words[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        pods = int(words[0]) if words else 500
        print(json.dumps(anyio.run(_measure, Path(folder), pods), indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
