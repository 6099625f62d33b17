"""A fleet with pods: its nodes at a fake API server, and HAMi's scheduler played."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.resources import NODES, PODS
from hami_mock.fleet.binding import Binder
from hami_mock.fleet.budget import Budget
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.fleet.paid import Paid
from hami_mock.fleet.pods import BOUND, FleetPods
from hami_mock.hami.lock import NodeLock
from hami_mock.settings.settings import load_pools
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.unit.builders import config_file
from tests.unit.views.hami.rig import pod, segment

LOCK = "hami.io/mutex.lock"
GPU = "nvidia.com/gpu"
POOLS = """
hami: true
pools:
  - {name: a, nodes: 3, nvidia: {cards: 2}}
"""


def asking_pod(
    name: str, node: str, *cards: str, asks: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A pod that HAMi's scheduler has bound: its one container gets a part of each card."""
    found = pod(name, node=node, **({"vgpu": segment(*cards)} | more))
    limits = {GPU: str(len(cards))} if asks is None else dict(asks)
    found["spec"]["containers"] = [{"name": "c", "resources": {"limits": limits}}]
    return found


class Rig:
    def __init__(self, server: FakeApiServer, kubernetes: Kubernetes, fleet: Fleet) -> None:
        self.server = server
        self.fleet = fleet
        self.budget = Budget(0)
        self.binder = Binder(fleet, Paid(kubernetes, self.budget))
        self.pods = FleetPods(
            fleet, lambda: kubernetes.watch_pages(PODS, fields=BOUND), self.binder.see
        )
        self._kubernetes = kubernetes

    def member(self, name: str) -> Member:
        return self.fleet.members[name]

    def cards(self, node: str) -> list[str]:
        return [card.uuid for card in self.fleet.state(self.member(node)).node.cards][:2]

    def bind(self, thing: dict[str, Any], *, lock: bool = True) -> None:
        """Do what HAMi's scheduler does when it binds a pod."""
        if lock:
            self.lock(thing["spec"]["nodeName"], thing["metadata"]["name"])
        self.server.put("pods", thing)

    def lock(self, node: str, name: str) -> None:
        value = NodeLock(datetime.now(UTC), "default", name).encode()
        self.server.annotate("nodes", node, {LOCK: value})

    def pod(self, name: str) -> dict[str, Any]:
        return self.server.objects["pods", "default", name]

    def phase(self, name: str) -> str:
        return self.server.annotations("pods", name, "default")["hami.io/bind-phase"]

    def is_locked(self, node: str) -> bool:
        return LOCK in self.server.annotations("nodes", node)

    def is_done(self, name: str) -> bool:
        return self.phase(name) == "success" and not self.is_locked(
            self.pod(name)["spec"]["nodeName"]
        )

    async def until(self, condition: Any) -> None:
        await self.server.wait_until(condition)

    async def follow_locks(self) -> None:
        """Tell of nodes as the controller does."""
        async with aclosing(self._kubernetes.watch_pages(NODES)) as changes:
            async for change in changes:
                for node in change.things:
                    self.binder.left.see(self.member(node["metadata"]["name"]), node)


@asynccontextmanager
async def fleet_rig(folder: Path, pools: str = POOLS) -> AsyncIterator[Rig]:
    """Serve a fleet's nodes; nothing of the fleet runs yet."""
    fleet = Fleet("test", load_pools(config_file(folder, pools)))
    with anyio.fail_after(60):
        async with api_server(folder) as server, Kubernetes() as kubernetes:
            for name in fleet.members:
                server.put("nodes", {"metadata": {"name": name, "annotations": {}}})
            yield Rig(server, kubernetes, fleet)


@asynccontextmanager
async def binding(folder: Path, pools: str = POOLS) -> AsyncIterator[Rig]:
    """Let a fleet follow and bind its pods."""
    async with fleet_rig(folder, pools) as rig, anyio.create_task_group() as tasks:
        await tasks.start(rig.binder.run)
        await tasks.start(rig.pods.run)
        yield rig
        tasks.cancel_scope.cancel()
