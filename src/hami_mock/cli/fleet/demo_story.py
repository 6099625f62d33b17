"""What happens in the demo: nodes, pods, a rack that loses its power, and its return."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio

from hami_mock.cli.ctl.client import ask
from hami_mock.cli.fleet.demo_view import View
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.resources import PODS
from hami_mock.control.protocol import Request
from hami_mock.errors import Away, Conflict
from hami_mock.fleet import names
from hami_mock.kit.broadcast import Broadcast
from hami_mock.vendors import VENDORS

_LARGEST_RACK = 20
_DOWN = "a100-r2"
_WATCHED_SECONDS = 4.0
"""How long something is to be seen before the next happens."""
_SENDERS = 8
"""How many pods are sent at once."""
_MOST_TRIES = 10
_KINDS = json.loads(Path(__file__).with_name("demo.json").read_text())
"""Pools, each with its share of all nodes, and what pods ask for; 24 lines show three pools."""


def rack_of(nodes: int) -> int:
    """Return how many nodes a rack has: half of all are A100, and even 20 of them fill three."""
    return min(_LARGEST_RACK, nodes // 10)


def pools_text(nodes: int) -> str:
    """Return a file with so many nodes in all. JSON is YAML."""
    kinds = _KINDS["pools"]
    counts = {name: int(nodes * kind["share"]) for name, kind in kinds.items()}
    counts[next(iter(counts))] += nodes - sum(counts.values())
    pools = [
        {"name": name, "nodes": counts[name], "rack": rack_of(nodes), **kind["node"]}
        for name, kind in kinds.items()
    ]
    # What a pool doesn't name it hasn't got, whatever a node has by default.
    none = {vendor.prefix: {"cards": 0} for vendor in VENDORS if vendor.cards}
    return json.dumps({"hami": True, **none, "pools": pools})


class Story:
    """Tells it to a view, and does it to the fleet."""

    def __init__(self, view: View, socket: str, nodes: int) -> None:
        self._view = view
        self._socket = socket
        self._nodes = nodes
        self._pods = nodes
        self._rack = rack_of(nodes)
        self._phases: dict[str, str] = {}
        self._changed = Broadcast()
        self._since = 0.0

    async def tell(self) -> None:
        """Let it happen, one after the other."""
        self._begin(f"1/5  {self._nodes:,} nodes are created, and KWOK makes them ready")
        await self._view.until(lambda seen: _sum(seen, "ready") == self._nodes)
        self._done(f"{self._nodes:,} nodes ready")
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, kubernetes)
            self._begin(f"2/5  {self._pods:,} pods arrive, and kube-scheduler places them")
            async with anyio.create_task_group() as senders:
                for first in range(_SENDERS):
                    senders.start_soon(self._arrive, kubernetes, first)
            await self._until(lambda seen: seen["Running"] + seen["Succeeded"] == self._pods)
            self._done(f"{self._pods:,} pods running")
            await self._fail()
            self._begin("5/5  The pods end: each has its duration in an annotation")
            await self._until(lambda seen: seen["Succeeded"] == self._pods)
            self._done("all pods have succeeded")
            tasks.cancel_scope.cancel()
        await anyio.sleep(_WATCHED_SECONDS)

    async def _follow(self, kubernetes: Kubernetes) -> None:
        """Keep the phases of all pods."""
        async with aclosing(kubernetes.watch_pages(PODS)) as changes:
            async for change in changes:
                for pod in change.things:
                    name = pod["metadata"]["name"]
                    self._phases[name] = "" if change.is_gone else pod["status"]["phase"]
                self._changed.send()

    async def _until(self, good: Callable[[Counter[str]], bool]) -> None:
        await self._changed.wait_until(lambda: good(Counter(self._phases.values())))

    async def _fail(self) -> None:
        self._begin(f"3/5  Rack {_DOWN} loses its power, and XID 79 hits some L4")
        self._order("stop-node", targets=[f"rack={_DOWN}"], reason="no power")
        self._order("fail", targets=["l4-?:nvidia/3"], xid=79)
        await self._view.until(lambda seen: _sum(seen, "ready") == self._nodes - self._rack)
        self._done(f"{self._rack} nodes not ready")
        await anyio.sleep(_WATCHED_SECONDS)
        self._begin("4/5  The power is back, and the cards are repaired")
        self._order("start-node", targets=[f"rack={_DOWN}"])
        self._order("recover", targets=["l4"])
        await self._view.until(lambda seen: _sum(seen, "ready") == self._nodes)
        self._done("all nodes ready again")
        await anyio.sleep(_WATCHED_SECONDS)

    async def _arrive(self, kubernetes: Kubernetes, first: int) -> None:
        for number in range(first, self._pods, _SENDERS):
            pod = demo_pod(number, shortest=20 + self._pods // 40)
            await _create(kubernetes, pod)

    def _order(self, verb: str, **arguments: Any) -> None:
        next(ask(self._socket, Request(verb, arguments)))

    def _begin(self, text: str) -> None:
        self._since = time.monotonic()
        self._view.caption(text)

    def _done(self, text: str) -> None:
        self._view.tell(f"{text} after {time.monotonic() - self._since:.1f} s")


async def _create(kubernetes: Kubernetes, pod: dict[str, Any]) -> None:
    """Make a pod; a machine that has much to do may need more than one try."""
    for left in reversed(range(_MOST_TRIES)):
        try:
            await kubernetes.create(PODS, pod)
        except Conflict:
            return  # the answer to an earlier try was late
        except Away:
            if not left:
                raise
        else:
            return


def demo_pod(number: int, shortest: int) -> dict[str, Any]:
    """Return one of the pods, which runs for at least so many seconds, and at most twice as long:
    the first mustn't end before the last has come, and a rack has failed."""
    chance = random.Random(number)
    kind, wants = chance.choices([*_KINDS["pods"].items()], (50, 20, 20, 10))[0]
    limits = {name: str(amount) for name, amount in wants.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{kind}-{number}",
            "namespace": "default",
            "annotations": {names.DURATION: f"{chance.randint(shortest, 2 * shortest)}s"},
        },
        "spec": {
            "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}],
            "restartPolicy": "Never",
        },
    }


def _sum(snapshot: Any, key: str) -> int:
    return sum(pool[key] for pool in snapshot["pools"])
