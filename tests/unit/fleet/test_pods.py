"""The pods of all nodes: what is kept of them, and who forgets which."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from hami_mock.cluster.objects import Change, Object
from hami_mock.fleet import pods as module
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.fleet.pods import FleetPods
from hami_mock.settings.settings import load_pools
from tests.unit.builders import config_file

POOLS = "pools: [{name: a, nodes: 2}]"


async def nothing() -> AsyncGenerator[Change, None]:
    return
    yield


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet("f", load_pools(config_file(tmp_path, POOLS)))


def pod(name: str, node: str = "a-0", phase: str = "Running", **annotations: str) -> Object:
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
            "annotations": {key.replace("_", "/"): text for key, text in annotations.items()},
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": limits}]},
        "status": {"phase": phase},
    }


def names(fleet: Fleet, node: str = "a-0") -> list[str]:
    return [name for _, name in fleet.members[node].pods or {}]


def test_pods_are_given_to_their_nodes_and_forgotten_when_they_are_over(fleet: Fleet) -> None:
    told: list[tuple[Member, Any, bool]] = []
    pods = FleetPods(fleet, nothing, lambda *seen: told.append(seen))
    for thing in (pod("p1"), pod("p2", "a-1"), pod("elsewhere", "b-0"), pod("p3")):
        pods.follow(Change([thing]))
    assert (names(fleet), names(fleet, "a-1")) == (["p1", "p3"], ["p2"])
    assert [(member.name, thing["metadata"]["name"]) for member, thing, _ in told] == [
        ("a-0", "p1"), ("a-1", "p2"), ("a-0", "p3"),
    ]  # fmt: skip
    pods.follow(Change([pod("p1", phase="Succeeded")]))
    pods.follow(Change([pod("p2", "a-1")], is_gone=True))
    assert names(fleet) == ["p3"]
    assert fleet.members["a-1"].pods is None
    assert told[-1][2]


def test_what_a_list_in_pages_does_not_have_is_gone(fleet: Fleet) -> None:
    pods = FleetPods(fleet, nothing)
    for name in ("p1", "p2", "p3"):
        pods.follow(Change([pod(name)]))
    was_read = [pods.is_read]
    pods.follow(Change([pod("p1")], is_all=True, has_more=True))
    assert names(fleet) == ["p1", "p2", "p3"]
    pods.follow(Change([pod("p3")]))
    was_read.append(pods.is_read)
    assert was_read == [False, True]
    assert names(fleet) == ["p1", "p3"]
    pods.follow(Change([pod("p4")]))
    assert names(fleet) == ["p1", "p3", "p4"]


def test_a_pod_that_is_on_another_node_when_all_are_read_again_is_on_that_alone(
    fleet: Fleet,
) -> None:
    pods = FleetPods(fleet, nothing)
    pods.follow(Change([pod("web-0", "a-0")]))
    pods.follow(Change([pod("web-0", "a-1")], is_all=True))
    assert (names(fleet, "a-0"), names(fleet, "a-1")) == ([], ["web-0"])


def test_nobody_is_told_of_what_makes_no_difference(fleet: Fleet) -> None:
    pods = FleetPods(fleet, nothing)
    changed = fleet.changes.next()
    pods.follow(Change([pod("p1")]))
    assert changed.is_set()
    changed = fleet.changes.next()
    pods.follow(Change([pod("p1", **{"hami.io_bind-phase": "success"})]))
    assert not changed.is_set()
    pods.follow(Change([pod("p1", **{"hami-mock.io_load": "80"})]))
    assert changed.is_set()


def test_a_node_with_a_fault_is_looked_at_when_its_pods_change(fleet: Fleet) -> None:
    pods = FleetPods(fleet, nothing)
    fleet.act("fail", fleet.find(["a-0"]))
    fleet.changed.clear()
    ordered = fleet.orders.next()
    pods.follow(Change([pod("p1"), pod("p2", "a-1")], is_all=True))
    # Of all that are read at first only the end is told.
    assert ordered.is_set()
    assert fleet.changed == set()
    pods.follow(Change([pod("p2", "a-1")], is_gone=True))
    assert fleet.changed == set()
    pods.follow(Change([pod("p1", phase="Succeeded")]))
    assert fleet.changed == {"a-0"}


def test_little_is_kept_of_a_pod_and_what_is_alike_is_kept_once(fleet: Fleet) -> None:
    pods = FleetPods(fleet, nothing)
    told = {
        "hami.io_vgpu-devices-allocated": "GPU-1,NVIDIA,1,1:;",
        "hami.io_vgpu-devices-to-allocate": ";",
        "hami.io_bind-time": "1",
        "hami-mock.io_load.c": "20-60",
        "run.ai_simulated-gpu-utilization": "10",
    }
    for name in ("p1", "p2"):
        pods.follow(Change([pod(name, **told)]))
    one, two = (fleet.members["a-0"].pods or {}).values()
    assert one.annotations == {
        "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,1,1:;",
        "hami-mock.io/load.c": "20-60",
        "run.ai/simulated-gpu-utilization": "10",
    }
    assert one.requests is two.requests
    assert one.containers is two.containers
    assert one.requests == {"c": {"nvidia.com/gpu": 1}}


def test_a_node_has_room_for_so_many_pods(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PODS", 2)
    pods = FleetPods(fleet, nothing)
    for name in ("p1", "p2", "p3"):
        pods.follow(Change([pod(name)]))
    assert names(fleet) == ["p1", "p2"]
