"""HAMi's own scheduler reads what a node says of its cards, and gives a pod some of them.

The node's side is played by hand here: its annotation is written, and its lock is let go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .harness import (
    Cluster,
    Hami,
    HarnessError,
    RequirementsMissing,
    default_device_config,
    hami_scheduler,
    managed_resources,
    running_hami,
)
from .harness.hami import NODE_LOCK
from .harness.hami_config import kube_scheduler_config, vendor_flags
from .harness.hami_program import PROGRAM_VARIABLE
from .mock import container, pod

REGISTER = "hami.io/node-nvidia-register"
WANTS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}
TIMEOUT_S = 60.0


def card(uuid: str, index: int = 0, memory: int = 32768) -> dict[str, Any]:
    return {
        "id": uuid,
        "index": index,
        "count": 10,
        "devmem": memory,
        "devcore": 100,
        "type": "NVIDIA-Tesla V100-SXM2-32GB",
        "numa": 0,
        "mode": "hami-core",
        "health": True,
    }


def hami_pod(name: str, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A pod for HAMi's scheduler, on whatever node it likes."""
    made = pod(name, container("main", WANTS))
    made["metadata"]["annotations"] = dict(annotations or {})
    made["spec"]["schedulerName"] = "hami-scheduler"
    made["spec"]["tolerations"] = [{"operator": "Exists"}]
    return made


@contextmanager
def registered(cluster: Cluster, node: str, *cards: Mapping[str, Any]) -> Iterator[None]:
    """The node says that it has these cards."""
    cluster.kubectl("annotate", "--overwrite", "node", node, f"{REGISTER}={json.dumps(cards)}")
    try:
        yield
    finally:
        cluster.kubectl("annotate", "node", node, f"{REGISTER}-")


@contextmanager
def bare_node(cluster: Cluster, name: str) -> Iterator[str]:
    """A node without a kubelet: pods are bound to it and never start."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "10"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": room, "allocatable": room},
    }
    cluster.apply(node)
    try:
        yield name
    finally:
        cluster.kubectl("delete", "node", name, "--timeout=30s")


@contextmanager
def pods_removed(cluster: Cluster, *names: str) -> Iterator[None]:
    try:
        yield
    finally:
        # Without a grace period: on a bare node no kubelet would ever say that they are gone.
        at_once = ("--force", "--grace-period=0", "--ignore-not-found", "--timeout=60s")
        cluster.kubectl("delete", "pod", *names, *at_once)


def assigned(cluster: Cluster, name: str) -> dict[str, str]:
    """Wait until HAMi has bound the pod; return the pod's annotations."""
    told = cluster.wait(
        f"pod {name} bound by HAMi",
        lambda: cluster.get("pod", name),
        lambda told: "hami.io/bind-phase" in told["metadata"].get("annotations", {}),
        timeout=TIMEOUT_S,
        show=lambda told: (told["metadata"].get("annotations"), told["status"]),
    )
    annotations: dict[str, str] = told["metadata"]["annotations"]
    return annotations


def wait_for_both(hami: Hami) -> None:
    hami.wait_for_cards("bare-a", {"GPU-a"})
    hami.wait_for_cards("bare-b", {"GPU-b"})


def lock(cluster: Cluster, node: str) -> str:
    annotations = cluster.get("node", node)["metadata"].get("annotations", {})
    return str(annotations.get(NODE_LOCK, ""))


@pytest.fixture(scope="session")
def hami_program() -> Path:
    try:
        return hami_scheduler()
    except RequirementsMissing as missing:
        # In CI, too: not every module proxy serves it, so CI can't be asked for it.
        pytest.skip(str(missing))


@pytest.fixture
def hami(hami_program: Path, cluster: Cluster) -> Iterator[Hami]:
    with running_hami(cluster, node_policy="spread") as hami:
        yield hami


def test_a_pod_gets_a_card_of_the_node_and_the_node_is_locked(hami: Hami) -> None:
    cluster, node = hami.cluster, hami.cluster.node_name
    small, large = card("GPU-small", 0, memory=2000), card("GPU-large", 1)
    with registered(cluster, node, small, large), pods_removed(cluster, "one"):
        hami.wait_for_cards(node, {"GPU-small", "GPU-large"})
        cluster.apply(hami_pod("one"))
        told = assigned(cluster, "one")
        assert told["hami.io/bind-phase"] == "allocating"
        assert told["hami.io/vgpu-node"] == node
        assert told["hami.io/vgpu-devices-to-allocate"] == "GPU-large,NVIDIA,3000,30:;"
        assert told["hami.io/vgpu-devices-allocated"] == "GPU-large,NVIDIA,3000,30:;"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[^,]+,default,one", lock(cluster, node))
        cluster.wait(
            "the pod on the node",
            lambda: cluster.get("pod", "one")["spec"].get("nodeName"),
            lambda where: where == node,
            timeout=TIMEOUT_S,
        )


def test_pods_spread_over_nodes_unless_one_says_so_and_also_after_a_restart(hami: Hami) -> None:
    cluster = hami.cluster
    with (
        bare_node(cluster, "bare-a"),
        bare_node(cluster, "bare-b"),
        registered(cluster, "bare-a", card("GPU-a")),
        registered(cluster, "bare-b", card("GPU-b")),
        pods_removed(cluster, "first", "packed", "spread"),
    ):
        wait_for_both(hami)
        cluster.apply(hami_pod("first"))
        first = assigned(cluster, "first")["hami.io/vgpu-node"]
        # As a node does once it has given the pod its cards.
        cluster.kubectl("annotate", "node", first, f"{NODE_LOCK}-")
        cluster.apply(hami_pod("packed", {"hami.io/node-scheduler-policy": "binpack"}))
        assert assigned(cluster, "packed")["hami.io/vgpu-node"] == first
        hami.restart()
        wait_for_both(hami)
        cluster.apply(hami_pod("spread"))
        (other,) = {"bare-a", "bare-b"} - {first}
        assert assigned(cluster, "spread")["hami.io/vgpu-node"] == other


def test_it_leaves_nothing_on_the_node(hami_program: Path, cluster: Cluster) -> None:
    before = cluster.get("node", cluster.node_name)["metadata"]["annotations"]
    only_nvidia = {"nvidia": default_device_config()["nvidia"]}
    with running_hami(cluster, device_config=only_nvidia) as other:
        cluster.wait(
            "HAMi's mark on the node",
            lambda: cluster.get("node", cluster.node_name)["metadata"]["annotations"],
            lambda told: "hami.io/node-handshake" in told,
            timeout=TIMEOUT_S,
        )
    after = cluster.get("node", cluster.node_name)["metadata"]["annotations"]
    assert set(after) == set(before)
    assert not other.scheduler.running
    assert not other.kube_scheduler.running


def test_a_scheduler_that_does_not_start_is_told_at_once(
    hami_program: Path, cluster: Cluster
) -> None:
    with (
        pytest.raises(HarnessError, match=r"hami-scheduler ended by itself[^$]*are empty"),
        running_hami(cluster, device_config={}),
    ):
        pass
    cluster.check()


def test_all_resources_of_all_vendors_are_left_to_hami() -> None:
    names = managed_resources(default_device_config())
    assert len(names) == len(set(names))
    assert {
        "nvidia.com/gpu",
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
        "cambricon.com/mlu.smlu.vmemory",
        "hygon.com/dcucores",
        "enflame.com/drs-gcu",
        "iluvatar.ai/MR-V100.vCore",
        "huawei.com/Ascend910B3",
        "huawei.com/Ascend910B3-memory",
    } <= set(names)
    assert all("/" in name for name in names)


def test_a_config_of_one_vendor_manages_only_its_resources() -> None:
    config = {"hygon": default_device_config()["hygon"]}
    assert managed_resources(config) == [
        "hygon.com/dcucores",
        "hygon.com/dcumem",
        "hygon.com/dcunum",
    ]
    assert vendor_flags(config) == []
    assert vendor_flags(default_device_config()) == ["--enable-ascend", "--enable-iluvatar"]
    made = kube_scheduler_config(config, extender_url="http://here", kubeconfig=Path("/there"))
    (extender,) = made["extenders"]
    assert {"name": "hygon.com/dcunum", "ignoredByScheduler": True} in extender["managedResources"]


def test_where_the_program_can_not_be_had_it_says_why_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(PROGRAM_VARIABLE, raising=False)
    monkeypatch.setenv("E2E_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(RequirementsMissing) as missing:
        hami_scheduler()
    assert "Go's module proxy doesn't give" in str(missing.value)
    assert f"set {PROGRAM_VARIABLE}" in str(missing.value)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RequirementsMissing, match="go is missing"):
        hami_scheduler()
    monkeypatch.setenv(PROGRAM_VARIABLE, str(tmp_path))
    with pytest.raises(HarnessError, match="there is no program"):
        hami_scheduler()
