"""Units in the Node's status: any amount of memory on any kubelet."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.defaults import DEFAULT_COUNTS

from .harness.quantities import whole_number
from .mock import NAMESPACE, ONLY_NVIDIA, Figures, Mock
from .test_recovery import kill_agent, kill_kubelet

# A name of its own: for five minutes after a plugin of another case has gone, the kubelet would
# still take nvidia.com/gpumem for that plugin's.
MEMORY = "example.com/status-gpumem"
MOVING = "example.com/moving-gpumem"
CARD = 183_359
EIGHT_B200 = (
    "--nvidia-cards=8", "--nvidia-model=B200", f"--resource-mem={MEMORY}", *ONLY_NVIDIA,
)  # fmt: skip
COUNTS = {"nvidia.com/gpu": 80, MEMORY: 8 * CARD}


def shown(mock: Mock, name: str = MEMORY) -> tuple[int | None, int | None]:
    """The capacity and the allocatable of a resource; None: the node doesn't have it."""
    status = mock.cluster.get("node", mock.cluster.node_name)["status"]
    found = [status[key].get(name) for key in ("capacity", "allocatable")]
    capacity, allocatable = (None if each is None else whole_number(each) for each in found)
    return capacity, allocatable


def wait_for_shown(mock: Mock, count: int | None, timeout: float = 60) -> float:
    began = time.monotonic()
    mock.cluster.wait(
        f"{MEMORY}: {count}",
        lambda: shown(mock),
        lambda now: now == (count, count),
        timeout=timeout,
    )
    return time.monotonic() - began


@pytest.fixture
def huge(mock: Mock, figures: Figures) -> Iterator[Mock]:
    """A node with a million and a half units of memory."""
    mock.deploy(*EIGHT_B200)
    began = time.monotonic()
    mock.wait_for(COUNTS)
    figures.add(mock.cluster.version, "1,466,872 units allocatable", time.monotonic() - began)
    yield mock
    mock.delete_pods()


def run_pod(mock: Mock, figures: Figures, name: str, cards: int) -> None:
    began = time.monotonic()
    mock.start_pod(name, {"nvidia.com/gpu": cards, MEMORY: cards * CARD})
    mock.wait_for_phase(name, "Running")
    what = f"pod with {cards * CARD:,} units in the status Running"
    figures.add(mock.cluster.version, what, time.monotonic() - began)
    assert len(json.dumps(mock.cluster.get("pod", name))) < 20_000


def test_eight_b200_are_as_easy_as_one_t4(huge: Mock, figures: Figures) -> None:
    run_pod(huge, figures, "all-cards", 8)
    huge.start_pod("late", {MEMORY: 1})
    huge.wait_for_scheduling_message("late", f"Insufficient {MEMORY}")
    huge.delete_pods()
    for number in range(8):
        run_pod(huge, figures, f"card-{number}", 1)
    pods = huge.container_ids()
    began = time.monotonic()
    kill_kubelet(huge)
    huge.wait_for(COUNTS, most=True)
    seconds = time.monotonic() - began
    what = "kubelet restart with 1,466,872 units in the status in use"
    figures.add(huge.cluster.version, what, seconds)
    assert huge.container_ids() == pods


def test_one_node_carries_128_cards_of_288_gb(mock: Mock, figures: Figures) -> None:
    card = 275_040
    whole_node = {"nvidia.com/gpu": 128, MEMORY: 128 * card}
    flags = ("--nvidia-cards=128", "--nvidia-model=B300", f"--resource-mem={MEMORY}")
    mock.deploy(*flags, *ONLY_NVIDIA)
    mock.wait_for({"nvidia.com/gpu": 1280, MEMORY: 128 * card})
    began = time.monotonic()
    mock.start_pod("all-cards", whole_node)
    mock.wait_for_phase("all-cards", "Running")
    what = f"pod with {128 * card:,} units in the status Running"
    figures.add(mock.cluster.version, what, time.monotonic() - began)
    mock.ctl("fail", "nvidia/127")
    # Its pod has the whole node: nothing may be missing while it runs.
    assert resource_told(mock, MEMORY)["healthy"] == 127 * card
    wait_for_shown(mock, 128 * card)
    mock.delete_pods()
    wait_for_shown(mock, 127 * card)


def test_ten_rounds_of_random_kills_lose_nothing(huge: Mock) -> None:
    for number in range(3):
        huge.start_pod(f"p{number}", {"nvidia.com/gpu": 2, MEMORY: 2 * CARD})
    for number in range(3):
        huge.wait_for_phase(f"p{number}", "Running")
    pods = huge.container_ids()
    chance = random.Random(21)
    for _ in range(10):
        chance.choice((kill_kubelet, kill_agent))(huge)
        huge.wait_for(COUNTS, most=True)
        assert huge.container_ids() == pods
    huge.start_pod("rest", {MEMORY: 2 * CARD})
    huge.wait_for_phase("rest", "Running")
    huge.start_pod("late", {MEMORY: 1})
    huge.wait_for_scheduling_message("late", f"Insufficient {MEMORY}")


def test_what_pods_have_of_a_failed_card_is_not_missing_elsewhere(huge: Mock) -> None:
    huge.start_pod("a", {"nvidia.com/gpu": 1, MEMORY: CARD})
    huge.wait_for_phase("a", "Running")
    status = json.loads(huge.ctl("status", "-o", "json"))
    (card,) = (each["name"] for each in status["cards"] if each["holders"])
    (holder,) = (h for each in status["cards"] for h in each["holders"])
    assert holder["memory"] == CARD
    idle = next(each["name"] for each in status["cards"] if not each["holders"])
    huge.ctl("fail", idle, "--xid", "79")
    assert wait_for_shown(huge, 7 * CARD) < 15
    huge.ctl("fail", card)
    # Six cards are usable, and the pod keeps what it has of the seventh.
    huge.cluster.wait(
        "six usable cards",
        lambda: resource_told(huge, MEMORY),
        lambda told: told["healthy"] == 6 * CARD,
        timeout=30,
    )
    wait_for_shown(huge, 7 * CARD)
    pods = huge.container_ids()
    kill_kubelet(huge)
    wait_for_shown(huge, 7 * CARD)
    assert huge.container_ids() == pods
    huge.start_pod("rest", {MEMORY: 6 * CARD})
    huge.wait_for_phase("rest", "Running")
    huge.ctl("recover", "nvidia")
    wait_for_shown(huge, 8 * CARD)


def test_the_status_is_put_right_and_taken_away_at_the_end(huge: Mock, figures: Figures) -> None:
    node = huge.cluster.node_name
    reset = json.dumps({"status": {"capacity": {MEMORY: "0"}, "allocatable": {MEMORY: "0"}}})
    huge.cluster.kubectl(
        "patch", "node", node, "--subresource=status", "--type=merge", f"--patch={reset}"
    )
    figures.add(huge.cluster.version, "reset by hand, put right", wait_for_shown(huge, 8 * CARD))
    for _ in range(5):
        huge.ctl("fail", "nvidia/0")
        seconds = wait_for_shown(huge, 7 * CARD)
        figures.add(huge.cluster.version, "a card failed: the Node's status has it", seconds)
        huge.ctl("recover", "nvidia/0")
        wait_for_shown(huge, 8 * CARD)
    huge.ctl("down", MEMORY)
    wait_for_shown(huge, None)
    huge.ctl("up", MEMORY)
    wait_for_shown(huge, 8 * CARD)
    huge.remove()
    wait_for_shown(huge, None)
    annotations = huge.cluster.get("node", node)["metadata"].get("annotations", {})
    assert "hami-mock.io/units-in-status" not in annotations


def test_a_node_that_is_made_anew_gets_its_units_again(huge: Mock) -> None:
    node = huge.cluster.node_name
    huge.machine.kill_kubelet()
    huge.cluster.kubectl("delete", "node", node)
    huge.machine.start_kubelet()
    huge.machine.wait_node_ready(timeout=60)
    huge.wait_for(COUNTS, timeout=120)


@pytest.mark.slow  # the kubelet takes five minutes to forget a plugin
def test_units_move_between_plugin_and_status_under_running_pods(
    mock: Mock, figures: Figures
) -> None:
    flags = ("--nvidia-memory=2000", f"--resource-mem={MOVING}", "--kubelet-version=1.37")
    counts = {"nvidia.com/gpu": 20, MOVING: 4000}
    mock.deploy(*flags, *ONLY_NVIDIA, without="nodes/status")
    mock.wait_for(counts)
    log = mock.cluster.kubectl("logs", mock.agent_pod()["metadata"]["name"], f"-n{NAMESPACE}")
    assert "the role needs the verb patch for nodes/status" in log
    mock.start_pod("first", {"nvidia.com/gpu": 1, MOVING: 1000})
    mock.wait_for_phase("first", "Running")
    mock.deploy(*flags, *ONLY_NVIDIA, forgets_plugins=False)  # the role now has the right
    mock.cluster.wait(
        "the agent sees its right",
        lambda: resource_told(mock, MOVING),
        lambda told: "moves to the Node's status" in told["why"],
        timeout=90,
    )
    # The plugin goes on for as long as somebody holds a device of it.
    mock.start_pod("second", {"nvidia.com/gpu": 1, MOVING: 1000})
    mock.wait_for_phase("second", "Running")
    mock.delete_pods()
    began = time.monotonic()
    mock.cluster.wait(
        "the agent sees that no pod holds a device",
        lambda: resource_told(mock, MOVING),
        lambda told: told["way"] == "status",
        timeout=60,
    )
    # Not before: the plugin, too, would take a pod that comes in time, and stay for it.
    mock.start_pod("third", {"nvidia.com/gpu": 1, MOVING: 3000})
    mock.wait_for(counts, timeout=420, most=True)
    figures.add(mock.cluster.version, "plugin to status", time.monotonic() - began)
    mock.wait_for_phase("third", "Running")
    pods = mock.container_ids()
    mock.deploy(*flags, "--units=plugin", *ONLY_NVIDIA)
    mock.cluster.wait(
        "a plugin again",
        lambda: resource_told(mock, MOVING),
        lambda told: (told["way"], told["phase"]) == ("plugin", "watched"),
        timeout=90,
    )
    mock.wait_for(counts, most=True)
    kill_kubelet(mock)
    mock.wait_for(counts, most=True)
    assert mock.container_ids() == pods
    mock.start_pod("late", {"nvidia.com/gpu": 1, MOVING: 1001})
    mock.wait_for_scheduling_message("late", f"Insufficient {MOVING}")
    mock.start_pod("rest", {"nvidia.com/gpu": 1, MOVING: 1000})
    mock.wait_for_phase("rest", "Running")
    assert {name: mock.container_ids()[name] for name in pods} == pods


def resource_told(mock: Mock, name: str) -> Any:
    """What the agent says of a resource."""
    status = json.loads(mock.ctl("status", "-o", "json"))
    return next(each for each in status["resources"] if each["name"] == name)


@pytest.mark.minors(range(36, 100))
def test_the_manifests_as_they_are_give_full_counts_and_no_warning(mock: Mock) -> None:
    mock.deploy()
    mock.wait_for(DEFAULT_COUNTS)
    name = mock.agent_pod()["metadata"]["name"]
    log = mock.cluster.kubectl("logs", name, f"--namespace={NAMESPACE}")
    assert "WARNING" not in log
    assert "131072 x 1 MiB, in the Node's status" in log
