"""Very many units of device plugins: what each release bears, and what happens beyond."""

from __future__ import annotations

import time

import pytest

from .mock import NAMESPACE, ONLY_NVIDIA, Figures, Mock

# Three A100s of 80 GB and a small card: 262,000 MiB, all but the most that a list can carry.
CONFIG = {
    "nvidia": {
        "groups": [
            {"cards": 3, "model": "A100-SXM4-80GB"},
            {"cards": 1, "model": "T4", "memory": 262_000 - 3 * 81_920},
        ]
    },
    "mlu": {"cards": 0},
    "iluvatar": {"cards": 0},
    "ascend": {"cards": 0},
}


@pytest.mark.minors(range(36))
def test_262000_units_work_and_a_pod_takes_81920(mock: Mock, figures: Figures) -> None:
    mock.deploy(config=CONFIG)
    began = time.monotonic()
    mock.wait_for({"nvidia.com/gpumem": 262_000, "nvidia.com/gpu": 40})
    figures.add(mock.cluster.version, "262,000 units allocatable", time.monotonic() - began)
    began = time.monotonic()
    mock.start_pod("whole-card", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 81_920})
    mock.wait_for_phase("whole-card", "Running")
    figures.add(mock.cluster.version, "pod with 81,920 units Running", time.monotonic() - began)
    mock.delete_pods()


def test_too_many_units_are_a_clear_error_and_not_a_silent_0(mock: Mock) -> None:
    mock.deploy("--units=plugin", "--nvidia-cards=4", "--nvidia-memory=65600", *ONLY_NVIDIA)
    expected = (
        "nvidia.com/gpumem: 262400 devices need a list of 4198400 bytes; the kubelet's limit "
        "is 4194304: the smallest memory factor that fits is 2 (--nvidia-memory-factor)"
    )

    pod = mock.cluster.wait(
        "the agent's pod failed",
        mock.agent_pod,
        lambda pod: expected in str(pod["status"]),
        timeout=60,
        show=lambda pod: pod["status"],
    )
    (status,) = pod["status"]["containerStatuses"]
    ended = status["lastState"].get("terminated") or status["state"].get("terminated")
    assert ended["exitCode"] == 2
    assert expected in ended["message"]
    name = pod["metadata"]["name"]
    mock.cluster.wait(
        "the error in the log",  # the container that was started again may not have said it yet
        lambda: mock.cluster.kubectl("logs", name, f"--namespace={NAMESPACE}"),
        lambda log: expected in log,
        timeout=60,
    )


@pytest.mark.minors(range(36, 100))
def test_auto_makes_units_that_this_kubelet_bears(mock: Mock, figures: Figures) -> None:
    mock.deploy("--units=plugin", "--nvidia-memory-factor=auto", config=CONFIG)
    factor = 64
    counts = {"nvidia.com/gpu": 40, "nvidia.com/gpumem": 3 * 81_920 // factor + 16_240 // factor}
    mock.wait_for(counts)
    name = mock.agent_pod()["metadata"]["name"]
    log = mock.cluster.kubectl("logs", name, f"--namespace={NAMESPACE}")
    assert f"{counts['nvidia.com/gpumem']} x {factor} MiB" in log
    assert "can't find out the kubelet's version" not in log
    whole_card = 81_920 // factor
    for number in range(3):
        mock.start_pod(f"card-{number}", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": whole_card})
        mock.wait_for_phase(f"card-{number}", "Running")
    rest = counts["nvidia.com/gpumem"] - 3 * whole_card
    mock.start_pod("rest", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": rest})
    mock.wait_for_phase("rest", "Running")
    pods = mock.container_ids()
    mock.machine.kill_kubelet()
    began = time.monotonic()
    mock.machine.start_kubelet()
    mock.machine.wait_node_ready(timeout=60)
    mock.wait_for(counts)
    seconds = time.monotonic() - began
    figures.add(mock.cluster.version, "kubelet restart with every unit allocated", seconds)
    assert seconds < 15
    assert mock.container_ids() == pods
    mock.delete_pods()
