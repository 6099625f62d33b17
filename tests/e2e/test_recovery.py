"""Whatever is killed, the node is right again and no pod is lost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest

from tests.defaults import DEFAULT_COUNTS

from .mock import ONLY_NVIDIA, Figures, Mock, nvidia_counts

WANTS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000, "nvidia.com/gpucores": 20}
COUNTS = nvidia_counts(2, 4000)
ROUNDS = 10


@pytest.fixture
def busy(mock: Mock) -> Iterator[Mock]:
    """A node with two cards and three running pods."""
    mock.deploy("--nvidia-memory=4000", *ONLY_NVIDIA)
    mock.wait_for(COUNTS)
    mock.wait_until_ready()
    for number in range(3):
        mock.start_pod(f"p{number}", WANTS)
    for number in range(3):
        mock.wait_for_phase(f"p{number}", "Running")
    yield mock
    mock.delete_pods()


def kill_kubelet(mock: Mock) -> None:
    mock.machine.kill_kubelet()
    mock.machine.start_kubelet()
    mock.machine.wait_node_ready(timeout=60)


def restart_kubelet(mock: Mock) -> None:
    mock.machine.restart_kubelet()
    mock.machine.wait_node_ready(timeout=60)


def kill_agent(mock: Mock) -> None:
    before = mock.agent_pid()
    mock.kill_agent()
    mock.cluster.wait("another agent", mock.agent_pid, lambda pid: pid != before, timeout=120)


def remove_a_socket(mock: Mock) -> None:
    sockets = sorted(mock.machine.device_plugin_dir.glob("hami-mock-*.sock"))
    assert len(sockets) == len(COUNTS.keys() - mock.in_status())
    victim = sockets[len(sockets) // 2]
    victim.unlink()
    mock.cluster.wait(
        "a new socket",
        lambda: sorted(mock.machine.device_plugin_dir.glob("hami-mock-*.sock")),
        lambda now: len(now) == len(sockets) and victim not in now,
        timeout=30,
    )


HARM: dict[str, Callable[[Mock], None]] = {
    "kubelet killed": kill_kubelet,
    "kubelet restarted": restart_kubelet,
    "agent killed": kill_agent,
    "one socket removed": remove_a_socket,
}


def recover(mock: Mock, harm: str, figures: Figures) -> float:
    """Do harm and wait until the node is right again; return the seconds."""
    pods = mock.container_ids()
    began = time.monotonic()
    HARM[harm](mock)
    mock.wait_for(COUNTS, most=True)
    seconds = time.monotonic() - began
    figures.add(mock.cluster.version, f"recovery: {harm}", seconds)
    assert mock.container_ids() == pods
    return seconds


@pytest.mark.parametrize("harm", HARM)
def test_the_node_recovers_and_pods_keep_their_devices(
    busy: Mock, harm: str, figures: Figures
) -> None:
    recover(busy, harm, figures)
    # Three pods hold 6,000 of 8,000 units: were they forgotten, both of these would run.
    busy.start_pod("p3", WANTS)
    busy.wait_for_phase("p3", "Running")
    busy.start_pod("late", WANTS)
    busy.wait_for_scheduling_message("late", "Insufficient nvidia.com/gpumem")


def test_a_restart_of_containerd_hurts_nobody(busy: Mock) -> None:
    pods = busy.container_ids()
    busy.machine.restart_containerd()
    busy.wait_for(COUNTS)
    busy.start_pod("p3", WANTS)
    busy.wait_for_phase("p3", "Running")
    assert {name: busy.container_ids()[name] for name in pods} == pods


def test_a_rolling_update_changes_the_counts(busy: Mock) -> None:
    pods = busy.container_ids()
    busy.deploy("--nvidia-cards=3", "--nvidia-memory=4000", "--mlu-cards=2", *ONLY_NVIDIA[1:])
    busy.wait_for(nvidia_counts(3, 4000) | {"cambricon.com/vmlu": 20})
    busy.cluster.kubectl(
        "rollout", "status", "daemonset/hami-mock", "--namespace=kube-system", "--timeout=60s"
    )
    assert busy.container_ids() == pods


def test_ten_rounds_of_random_kills(busy: Mock, figures: Figures) -> None:
    chance = random.Random(20)
    for number in range(ROUNDS):
        harm = chance.choice(("kubelet killed", "agent killed", "one socket removed"))
        seconds = recover(busy, harm, figures)
        print(f"round {number + 1}: {harm}: right again after {seconds:.1f} s")


# From 1.36 on the kubelet looks up each listed device among all allocated ones, even those of pods
# that are gone: 196,608 units on a node where pods have run would take it minutes.
@pytest.mark.minors(range(36))
def test_all_defaults_come_back_after_a_kubelet_restart(mock: Mock, figures: Figures) -> None:
    mock.deploy()
    mock.wait_for(DEFAULT_COUNTS)
    restart_kubelet(mock)
    seconds = mock.wait_for(DEFAULT_COUNTS)
    figures.add(mock.cluster.version, "all eight back after a kubelet restart", seconds)
