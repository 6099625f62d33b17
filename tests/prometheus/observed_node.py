"""An agent beside a kubelet, with pods on its cards, and the ports that Prometheus scrapes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from anyio.from_thread import start_blocking_portal

from hami_mock.views.http.scrapes import CONTENT_TYPE
from hami_mock.views.http.server import Answer
from hami_mock.views.http.view import HttpView
from tests.integration.agents import run_cli
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.pod_resources import FakePodResources, pod_resources
from tests.prometheus.expressions import SCHEDULER
from tests.prometheus.server import NODE

GPU, GPU_MEMORY, MLU = "nvidia.com/gpu", "nvidia.com/gpumem", "cambricon.com/vmlu"
Who = tuple[str, str, str]
TRAINER, SIDE = ("team", "trainer", "main"), ("team", "trainer", "side")
WHOLE, CHIP = ("team", "single", "main"), ("team", "chip", "main")
LOADS = {TRAINER: "40:memory=80", SIDE: "15:memory=50", WHOLE: "55:memory=60", CHIP: "60"}

JOBS = {
    "http": "hami-mock",
    "dcgm": "hami-mock-dcgm",
    "hami monitor": "hami-mock-monitor",
    "vendor metrics": "hami-mock-vendors",
}
_MAKERS = ("mlu", "iluvatar", "ascend", "hygon", "metax", "amd")
_FLAGS = {
    "node-name": NODE,
    **{f"{maker}-cards": "1" for maker in _MAKERS},
    **{f"{name}-listen": "127.0.0.1:0" for name in ("dcgm", "hami-monitor", "vendor-metrics")},
    "dcgm-extras": "on",
    # Nobody wants to wait until a card is hot.
    "time-factor": "100",
}

# From Ampere on, a card remaps rows of its memory; one before it retires pages. Dashboards show
# both.
_FILE = """\
nvidia:
  groups:
    - {cards: 1, model: A100-SXM4-40GB}
    - {cards: 2, model: V100-SXM2-32GB}
"""

Start = Callable[[Path, Mapping[str, str]], AbstractContextManager[Any]]
"""Starts an agent in a kubelet's folder, with flags; it runs when this is entered."""


@dataclass
class ObservedNode:
    agent: Any
    control: Path
    kubelet: GrpcioKubelet
    pods: FakePodResources

    def ctl(self, *words: str) -> str:
        result = run_cli("ctl", f"--control-socket={self.control}", *words)
        assert result.returncode == 0, result
        return result.stdout

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ctl("status", "-o", "json"))
        return found

    def admit(self, who: Who, resource: str, card: int, memory: int = 0) -> None:
        """Give a container a slot of a card and MiB of memory, as the kubelet does."""
        devices = {resource: [self._free_slot(resource, card)]}
        if memory:
            taken = self._taken(GPU_MEMORY)
            units = (unit for unit in self.kubelet.devices(GPU_MEMORY) if unit not in taken)
            devices[GPU_MEMORY] = [next(units) for _ in range(memory)]
        for name, ids in devices.items():
            self.kubelet.plugin(name).allocate(ids)
        self.pods.pods[who] = devices

    def _free_slot(self, resource: str, card: int) -> str:
        slots = [*self.kubelet.devices(resource)]
        cards = [*dict.fromkeys(slot.rpartition("-")[0] for slot in slots)]
        taken = self._taken(resource)
        return next(s for s in slots if s.startswith(f"{cards[card]}-") and s not in taken)

    def _taken(self, resource: str) -> set[str]:
        return {one for held in self.pods.pods.values() for one in held.get(resource, ())}


@contextmanager
def observed_node(start: Start, messages: ModuleType) -> Iterator[ObservedNode]:
    """Run an agent and a kubelet that share no code, and admit the pods."""
    with tempfile.TemporaryDirectory(prefix="hm-") as name:
        folder = Path(name)
        pods_socket, control = folder / "pods.sock", folder / "c" / "s"
        file = folder / "c.yaml"
        file.write_text(_FILE)
        paths = {
            "config": str(file),
            "pod-resources-socket": str(pods_socket),
            "control-socket": str(control),
        }
        with (
            pod_resources(pods_socket) as pods,
            GrpcioKubelet(folder, messages) as kubelet,
            start(folder, {**_FLAGS, **paths}) as agent,
        ):
            node = ObservedNode(agent, control, kubelet, pods)
            kubelet.wait_for_lists({resource["name"] for resource in node.status()["resources"]})
            node.admit(TRAINER, GPU, card=0, memory=2048)
            node.admit(SIDE, GPU, card=0, memory=512)
            node.admit(WHOLE, GPU, card=1, memory=3000)
            node.admit(CHIP, MLU, card=0)
            for who, load in LOADS.items():
                node.ctl("load", "/".join(who), load)
            yield node


@contextmanager
def scraped(node: ObservedNode) -> Iterator[dict[str, str]]:
    """Return the addresses by job: the agent's ports, and a stand-in for HAMi's scheduler."""
    status = node.status()
    text = _scheduler([card["uuid"] for card in status["cards"][:3]])
    answer = Answer(text.encode(), content_type=CONTENT_TYPE)
    scheduler = HttpView("127.0.0.1:0", {"/metrics": lambda: answer})
    with start_blocking_portal() as portal:
        future, _ = portal.start_task(scheduler.run)
        targets = {
            JOBS[name]: view["address"] for name, view in status["views"].items() if name in JOBS
        }
        try:
            yield {**targets, "hami-scheduler": scheduler.status()["address"]}
        finally:
            future.cancel()


def _scheduler(uuids: list[str]) -> str:
    """HAMi's scheduler knows the same cards by the same UUIDs, and sits on another node."""
    rows = [
        f'{name}{{node="{NODE}",device_uuid="{uuid}",device_index="{index}"}} 7\n'
        for name in SCHEDULER
        for index, uuid in enumerate(uuids)
    ]
    return "".join(rows)
