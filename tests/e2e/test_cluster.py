"""The cluster itself works: what every other end-to-end test stands on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from .harness import WORKLOAD, Cluster, dra_gates
from .harness.layout import BRIDGE_ADDRESS, KUBELET_ROOT

POD_TIMEOUT_S = 60.0
NODE_TIMEOUT_S = 60.0


@pytest.fixture
def pod(cluster: Cluster) -> Iterator[str]:
    """The name of a running pod of the workload image."""
    name = f"workload-{uuid.uuid4().hex[:8]}"
    container = {"name": "main", "image": WORKLOAD, "env": [{"name": "GREETING", "value": "hi"}]}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [container]},
        }
    )
    cluster.wait(
        f"pod {name} Running",
        lambda: cluster.get("pod", name),
        lambda told: told["status"]["phase"] == "Running",
        timeout=POD_TIMEOUT_S,
        show=lambda told: told["status"],
    )
    yield name
    cluster.kubectl("delete", "pod", name, f"--timeout={POD_TIMEOUT_S:.0f}s")


def container_id(cluster: Cluster, pod: str) -> Any:
    return cluster.get("pod", pod)["status"]["containerStatuses"][0]["containerID"]


def test_node_is_ready_and_of_the_release_asked_for(cluster: Cluster) -> None:
    told = cluster.wait_node_ready(timeout=NODE_TIMEOUT_S)
    assert told["status"]["nodeInfo"]["kubeletVersion"] == cluster.version.tag


def test_pod_runs_and_shows_its_environment(cluster: Cluster, pod: str) -> None:
    assert "GREETING=hi" in cluster.kubectl("logs", pod).splitlines()


def test_pod_reaches_the_api_server_at_its_standard_address(cluster: Cluster, pod: str) -> None:
    dial = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null"
    cluster.kubectl("exec", pod, "--", "sh", "-c", dial)


def test_kubelet_restart_keeps_the_pod(cluster: Cluster, pod: str) -> None:
    before = container_id(cluster, pod)
    cluster.restart_kubelet()
    cluster.wait_node_ready(timeout=NODE_TIMEOUT_S)
    assert container_id(cluster, pod) == before


def test_killed_kubelet_comes_back(cluster: Cluster, pod: str) -> None:
    before = container_id(cluster, pod)
    cluster.kill_kubelet()
    cluster.start_kubelet()
    cluster.wait_node_ready(timeout=NODE_TIMEOUT_S)
    assert container_id(cluster, pod) == before


def test_containerd_restart_keeps_the_pod(cluster: Cluster, pod: str) -> None:
    before = container_id(cluster, pod)
    cluster.restart_containerd()
    cluster.kubectl("exec", pod, "--", "true")
    assert container_id(cluster, pod) == before


def test_kubelet_has_its_usual_path_and_the_machine_keeps_its_own(cluster: Cluster) -> None:
    socket = KUBELET_ROOT / "device-plugins" / "kubelet.sock"
    cluster.run_in_sandbox("test", "-S", socket)
    assert (cluster.device_plugin_dir / "kubelet.sock").is_socket()
    if socket.exists():  # of a kubelet that the machine has by itself
        assert not socket.samefile(cluster.device_plugin_dir / "kubelet.sock")


def test_a_pods_gateway_has_an_address_that_no_other_pod_changes(
    cluster: Cluster, pod: str
) -> None:
    dial = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null"
    neighbours = cluster.kubectl("exec", pod, "--", "sh", "-c", f"{dial}; cat /proc/net/arp")
    assert BRIDGE_ADDRESS in neighbours


def is_kept(cluster: Cluster) -> bool:
    """Whether the API server keeps what only a feature gate lets it know."""
    card = {"name": "card", "allowMultipleAllocations": True}
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gates.example.com", "nodeName": cluster.node_name, "pool": pool}
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "gates"},
        "spec": {**spec, "devices": [card]},
    }
    cluster.apply(slice_)
    (kept,) = cluster.get("resourceslice", "gates")["spec"]["devices"]
    cluster.kubectl("delete", "resourceslice", "gates")
    return bool(kept == card)


def kubelet_has(cluster: Cluster, gate: str) -> bool:
    raw = f"/api/v1/nodes/{cluster.node_name}/proxy/metrics"
    told = cluster.kubectl("get", f"--raw={raw}").splitlines()
    (line,) = (line for line in told if f'kubernetes_feature_enabled{{name="{gate}"' in line)
    return line.split()[-1] == "1"


@pytest.mark.minors(range(36))
def test_gates_are_set_for_as_long_as_a_test_asks_for_them(cluster: Cluster, pod: str) -> None:
    before = container_id(cluster, pod)
    assert not is_kept(cluster)
    with cluster.feature_gates(dra_gates(cluster.version)):
        assert is_kept(cluster)
        assert kubelet_has(cluster, "ResourceHealthStatus")
    assert not is_kept(cluster)
    assert not kubelet_has(cluster, "ResourceHealthStatus")
    assert container_id(cluster, pod) == before


@pytest.mark.minors(range(36, 100))
def test_what_newer_releases_have_on_needs_no_gate(cluster: Cluster) -> None:
    assert dra_gates(cluster.version) == {}
    assert is_kept(cluster)
    assert kubelet_has(cluster, "ResourceHealthStatus")
