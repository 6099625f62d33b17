"""100 pods through HAMi's whole protocol: assigned, locked, bound, answered by the fleet, unlocked.

Once with HAMi's own scheduler, where it can be had, and once with its part played by the test.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hami_mock.fleet.sandbox import Sandbox
from hami_mock.hami.assignment import AssignedDevice, Assignment
from tests.fleet.api import NODES, PODS, Api, Object, phase, readiness
from tests.fleet.hami_program import hami_running
from tests.fleet.pods import pod
from tests.fleet.program import Fleet

FILE = """\
hami: true
nvidia: {cards: 0}
mlu: {cards: 0}
iluvatar: {cards: 0}
ascend: {cards: 0}
pools:
  - {name: a, nodes: 20, nvidia: {cards: 8, model: A100-SXM4-80GB}}
"""
COUNT = 100
LOCK = "hami.io/mutex.lock"
BIND_PHASE = "hami.io/bind-phase"
WANTS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 16000, "nvidia.com/gpucores": 20}


@pytest.fixture(scope="module", autouse=True)
def running(api: Api, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("hami") / "fleet.yaml"
    file.write_text(FILE)
    fleet.start(file, "--writes", "0")
    api.wait("nodes", NODES, readiness, lambda seen: +seen == {"True": 20}, seconds=120)


@pytest.fixture
def hami(cluster: Sandbox, tmp_path: Path) -> Iterator[str]:
    """HAMi's scheduler and the kube-scheduler that asks it; yields what a pod calls them."""
    with hami_running(cluster, tmp_path) as name:
        yield name


def test_100_pods_with_hamis_scheduler(api: Api, hami: str) -> None:
    for number in range(COUNT):
        api.post(PODS, pod(f"real-{number}", WANTS, schedulerName=hami))
    _all_served(api, "app=real")


def test_100_pods_of_a_scheduler_that_does_as_hamis(api: Api) -> None:
    nodes = {node["metadata"]["name"]: _cards(node) for node in api.all(NODES)}
    for first in range(0, COUNT, len(nodes)):
        for number, (node, cards) in enumerate(nodes.items(), first):
            _assign(api, f"played-{number}", node, cards[first % len(cards)])
        # A node is locked until its pod has been served: only then comes the next.
        api.wait("unlocked", NODES, _lock, lambda seen: set(+seen) == {""}, seconds=60)
    _all_served(api, "app=played")


def test_another_pods_lock_is_left_alone(api: Api) -> None:
    (card, *_) = _cards(api.get(f"{NODES}/a-5"))
    _assign(api, "robbed-0", "a-5", card, owner="somebody-else")
    _wait_for_phase(api, "app=robbed", {"success"})
    assert _lock(api.get(f"{NODES}/a-5")).endswith(",default,somebody-else")


def _all_served(api: Api, selector: str) -> None:
    api.wait(
        "running", PODS, phase, lambda s: +s == {"Running": COUNT}, selector=selector, seconds=180
    )
    _wait_for_phase(api, selector, {"success"})
    api.wait("unlocked", NODES, _lock, lambda seen: set(+seen) == {""}, seconds=30)


def _wait_for_phase(api: Api, selector: str, wanted: set[str]) -> None:
    def see(seen: Object) -> str:
        return str(seen["metadata"]["annotations"].get(BIND_PHASE, ""))

    api.wait(BIND_PHASE, PODS, see, lambda seen: {*+seen} == wanted, selector=selector, seconds=60)


def _assign(api: Api, name: str, node: str, card: str, owner: str = "") -> None:
    """Do what HAMi's scheduler does for a pod: lock the node, assign a card, bind."""
    now = datetime.now(UTC)
    lock = f"{now:%Y-%m-%dT%H:%M:%SZ},default,{owner or name}"
    device = AssignedDevice(card, "NVIDIA", 16000, 20)
    assigned = Assignment(((device,),)).encode()
    made = pod(name, WANTS, schedulerName="played")
    made["metadata"]["annotations"] |= {
        "hami.io/vgpu-node": node,
        "hami.io/vgpu-time": str(int(now.timestamp())),
        "hami.io/vgpu-devices-to-allocate": assigned,
        "hami.io/vgpu-devices-allocated": assigned,
        "hami.io/bind-time": str(int(now.timestamp())),
        BIND_PHASE: "allocating",
    }
    api.post(PODS, made)
    api.merge(f"{NODES}/{node}", {"metadata": {"annotations": {LOCK: lock}}})
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    api.post(f"{PODS}/{name}/binding", body)


def _cards(node: Object) -> list[str]:
    register = json.loads(node["metadata"]["annotations"]["hami.io/node-nvidia-register"])
    return [card["id"] for card in register]


def _lock(node: Object) -> str:
    return str(node["metadata"].get("annotations", {}).get(LOCK, ""))
