"""What HAMi's scheduler does for a pod, done by a test: lock the node, assign a card, bind."""

import json
from datetime import UTC, datetime
from typing import Any

from hami_mock.hami.assignment import AssignedDevice, Assignment
from tests.fleet.api import NODES, PODS, Api, Object

LOCK = "hami.io/mutex.lock"
BIND_PHASE = "hami.io/bind-phase"


def assign(api: Api, pod: dict[str, Any], node: str, card: str, owner: str = "") -> None:
    """Make a pod, with a card of a node assigned; the lock is the pod's, or that of an `owner`."""
    name = pod["metadata"]["name"]
    now = datetime.now(UTC)
    lock = f"{now:%Y-%m-%dT%H:%M:%SZ},default,{owner or name}"
    device = AssignedDevice(card, "NVIDIA", 16000, 20)
    assigned = Assignment(((device,),)).encode()
    pod["metadata"]["annotations"] |= {
        "hami.io/vgpu-node": node,
        "hami.io/vgpu-time": str(int(now.timestamp())),
        "hami.io/vgpu-devices-to-allocate": assigned,
        "hami.io/vgpu-devices-allocated": assigned,
        "hami.io/bind-time": str(int(now.timestamp())),
        BIND_PHASE: "allocating",
    }
    api.post(PODS, pod)
    api.merge(f"{NODES}/{node}", {"metadata": {"annotations": {LOCK: lock}}})
    bind_pod(api, name, node)


def bind_pod(api: Api, name: str, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    api.post(f"{PODS}/{name}/binding", body)


def cards(node: Object) -> list[str]:
    register = json.loads(node["metadata"]["annotations"]["hami.io/node-nvidia-register"])
    return [card["id"] for card in register]


def lock_of(node: Object) -> str:
    return str(node["metadata"].get("annotations", {}).get(LOCK, ""))
