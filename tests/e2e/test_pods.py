"""Pods, as people write them: they run until the node is full, and quotas hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .harness import CommandFailed
from .mock import (
    EXAMPLES,
    ONLY_NVIDIA,
    OVERLAYS,
    Mock,
    container,
    example_pods,
    nvidia_counts,
    pod,
)

(ONE_SLICE,) = example_pods("one-slice")
WANTS = ONE_SLICE["spec"]["containers"][0]["resources"]["limits"]


@pytest.fixture
def node(mock: Mock) -> Iterator[Mock]:
    """A node with two cards of 4,000 units each: room for four pods that want 2,000."""
    mock.deploy("--nvidia-memory=4000", *ONLY_NVIDIA)
    mock.wait_for(nvidia_counts(2, 4000))
    yield mock
    mock.delete_pods()


def visible_cards(mock: Mock, name: str, container: str = "main") -> list[str]:
    return mock.environment(name, container)["NVIDIA_VISIBLE_DEVICES"].split(",")


def test_pods_run_until_memory_is_used_up_and_the_next_waits(node: Mock) -> None:
    for number in range(4):
        node.cluster.apply(ONE_SLICE | {"metadata": {"name": f"p{number}"}})
    for number in range(4):
        node.wait_for_phase(f"p{number}", "Running")
    node.start_pod("late", WANTS)
    node.wait_for_scheduling_message("late", "Insufficient nvidia.com/gpumem")
    node.delete_pods("p2")
    node.wait_for_phase("late", "Running")


def test_a_container_sees_whole_cards_and_different_ones(node: Mock) -> None:
    node.start_pod("two", WANTS | {"nvidia.com/gpu": 2})
    node.wait_for_phase("two", "Running")
    cards = visible_cards(node, "two")
    assert len(set(cards)) == 2
    assert all(card.startswith("GPU-") for card in cards)


def test_containers_and_init_containers_get_devices_of_their_own(node: Mock) -> None:
    first = container("first", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000})
    second = container("second", {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 5000})
    init = container("init", {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 8000})
    init["command"] = ["/bin/env"]
    node.cluster.apply(pod("many", first, second, init=init))
    node.wait_for_phase("many", "Running")
    assert len(visible_cards(node, "many", "init")) == 2
    assert len(visible_cards(node, "many", "first")) == 1
    assert len(visible_cards(node, "many", "second")) == 2
    node.start_pod("late", WANTS)
    node.wait_for_scheduling_message("late", "Insufficient nvidia.com/gpumem")


def test_a_slice_and_two_containers_fit_beside_each_other(node: Mock) -> None:
    node.cluster.apply(*example_pods("one-slice", "two-containers"))
    node.wait_for_phase("one-slice", "Running")
    node.wait_for_phase("two-containers", "Running")
    assert len(visible_cards(node, "one-slice")) == 1
    assert len(set(visible_cards(node, "two-containers", "trainer"))) == 2
    assert len(visible_cards(node, "two-containers", "server")) == 1


def test_a_node_has_as_many_whole_cards_as_cards(node: Mock) -> None:
    (whole,) = example_pods("whole-card")
    for number in range(3):
        node.cluster.apply(whole | {"metadata": {"name": f"whole-{number}"}})
        if number < 2:
            node.wait_for_phase(f"whole-{number}", "Running")
    node.wait_for_scheduling_message("whole-2", "Insufficient nvidia.com/gpucores")


def test_the_example_of_every_vendor_runs_where_all_have_cards(mock: Mock) -> None:
    files = sorted((EXAMPLES / "vendors").glob("*.yaml"))
    pods = example_pods(*(f"vendors/{file.stem}" for file in files))
    assert len(pods) > len(files) > 12
    with mock.applied(OVERLAYS / "all-vendors"):
        mock.wait_until_ready()
        mock.cluster.apply(*pods)
        for made in pods:
            mock.wait_for_phase(made["metadata"]["name"], "Running")
        assert "MLU_VISIBLE_DEVICES" in mock.environment("cambricon")
        assert "ILUVATAR_COREX_VISIBLE_DEVICES" in mock.environment("iluvatar")
        assert "ROCR_VISIBLE_DEVICES" in mock.environment("amd")
        mock.delete_pods()


def test_a_resource_quota_holds(node: Mock) -> None:
    quota = {"requests.nvidia.com/gpumem": "5000", "requests.nvidia.com/gpu": "10"}
    metadata = {"name": "devices", "namespace": "default"}
    spec = {"hard": quota}
    node.cluster.apply(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}
    )
    try:
        node.cluster.wait(
            "the quota in force",
            lambda: node.cluster.get("resourcequota", "devices"),
            lambda told: "requests.nvidia.com/gpumem" in told.get("status", {}).get("used", {}),
            timeout=30,
        )
        node.start_pod("a", WANTS)
        node.start_pod("b", WANTS)
        with pytest.raises(CommandFailed, match=r"exceeded quota: devices.*gpumem"):
            node.start_pod("c", WANTS)
        node.wait_for_phase("b", "Running")
    finally:
        node.cluster.kubectl("delete", "resourcequota", "devices")


def test_a_limit_range_holds(node: Mock) -> None:
    limits = [{"type": "Container", "max": {"nvidia.com/gpumem": "2500"}}]
    metadata = {"name": "devices", "namespace": "default"}
    node.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": metadata,
            "spec": {"limits": limits},
        }
    )
    try:
        node.start_pod("small", WANTS)
        with pytest.raises(CommandFailed, match=r"maximum nvidia.com/gpumem usage per Container"):
            node.start_pod("large", WANTS | {"nvidia.com/gpumem": 2501})
        node.wait_for_phase("small", "Running")
    finally:
        node.cluster.kubectl("delete", "limitrange", "devices")
