"""Cards fail, recover and change under pods that run, on a real kubelet.

These come last: a kubelet from 1.36 on remembers what pods held, and would take minutes for the
lists of a whole default node after them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from .mock import ONLY_NVIDIA, ROOT, TIMEOUT_S, Figures, Mock, nvidia_counts

WANTS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000, "nvidia.com/gpucores": 20}
TWO_CARDS, ONE_CARD = nvidia_counts(2, 4000), nvidia_counts(1, 4000)
CHAOS_SECONDS = float(os.environ.get("E2E_CHAOS_SECONDS", "30"))


@pytest.fixture
def full(mock: Mock) -> Iterator[Mock]:
    """A node with two cards, four pods that hold all of its memory, and one that waits."""
    mock.deploy("--nvidia-memory=4000", *ONLY_NVIDIA)
    mock.wait_for(TWO_CARDS)
    mock.wait_until_ready()
    for number in range(4):
        mock.start_pod(f"p{number}", WANTS)
    for number in range(4):
        mock.wait_for_phase(f"p{number}", "Running")
    yield mock
    mock.delete_pods()


# What four pods hold stays in the Node's status, whatever becomes of the cards: the kubelet and the
# scheduler go on counting it.
HELD: Mapping[str, int | range] = {
    "nvidia.com/gpumem": 8000,
    "nvidia.com/gpucores": range(100, 181),
}


def wait_for_node(
    mock: Mock,
    allocatable: Mapping[str, int],
    capacity: Mapping[str, int],
    held: Mapping[str, int | range] = MappingProxyType({}),
) -> float:
    """Wait until the node shows both; return the seconds.

    Of units in the status, capacity and allocatable are one; `held` is what pods keep of those.
    """
    began = time.monotonic()
    in_status = mock.in_status()
    kept = {name: held.get(name, allocatable[name]) for name in in_status & allocatable.keys()}
    wanted = {**allocatable, **kept}, {**capacity, **kept}
    mock.cluster.wait(
        "allocatable and capacity",
        lambda: (mock.cluster.allocatable(), mock.cluster.capacity()),
        lambda now: (
            all(is_shown(now[0].get(n), c) for n, c in wanted[0].items())
            and all(is_shown(now[1].get(n), c) for n, c in wanted[1].items())
        ),
        timeout=60,
    )
    return time.monotonic() - began


def is_shown(count: int | None, wanted: int | range) -> bool:
    return count in wanted if isinstance(wanted, range) else count == wanted


def cards(mock: Mock) -> dict[str, Any]:
    return {card["name"]: card for card in json.loads(mock.ctl("status", "-o", "json"))["cards"]}


def holders_of(cards: dict[str, Any]) -> set[tuple[str, str]]:
    held = (holder for card in cards.values() for holder in card["holders"])
    return {(holder["namespace"], holder["pod"]) for holder in held}


def test_a_card_fails_and_recovers_while_pods_hold_it_and_one_waits(
    full: Mock, figures: Figures
) -> None:
    full.start_pod("late", WANTS)
    full.wait_for_scheduling_message("late", "Insufficient nvidia.com/gpumem")
    pods = full.container_ids()
    before = full.cluster.wait(
        # Whose devices are that were given a moment ago, the kubelet is asked a second later.
        "the holders by name",
        lambda: cards(full),
        lambda found: holders_of(found) == {("default", f"p{number}") for number in range(4)},
        timeout=TIMEOUT_S,
    )
    held = sum(
        holder["devices"].get("nvidia.com/gpumem", 0)
        for card in before.values()
        for holder in card["holders"]
    )
    assert held == 8000

    full.ctl("fail", "nvidia/0", "--xid", "79")
    seconds = wait_for_node(full, ONE_CARD, TWO_CARDS, HELD)
    figures.add(full.cluster.version, "a card failed: the node shows it", seconds)
    assert cards(full)["nvidia/0"]["health"] == "unhealthy"
    assert full.container_ids() == pods, "a pod was lost with the card"
    full.wait_for_scheduling_message("late", "Insufficient nvidia.com/gpumem")

    full.ctl("recover", "nvidia/0")
    wait_for_node(full, TWO_CARDS, TWO_CARDS)
    assert full.container_ids() == pods
    full.delete_pods("p0")
    full.wait_for_phase("late", "Running")


def test_an_application_error_leaves_the_card_healthy(full: Mock) -> None:
    full.ctl("fail", "nvidia/1", "--xid", "31")
    assert cards(full)["nvidia/1"]["health"] == "healthy"
    assert cards(full)["nvidia/1"]["xids"] == {"31": 1}
    assert 'hami_mock_xids_total{card="nvidia/1"' in full.agent_says("/metrics")
    wait_for_node(full, TWO_CARDS, TWO_CARDS)


# From 1.36 on a pod's status tells the health of what it holds.
@pytest.mark.minors(range(36, 99))
def test_a_pod_is_told_that_its_card_failed(full: Mock) -> None:
    def health_of_slot() -> set[str]:
        status = full.cluster.get("pod", "p0")["status"]["containerStatuses"][0]
        told = {r["name"]: r["resources"] for r in status.get("allocatedResourcesStatus", ())}
        return {device["health"] for device in told.get("nvidia.com/gpu", ())}

    full.cluster.wait("a healthy slot", health_of_slot, lambda h: h == {"Healthy"}, timeout=60)
    full.ctl("fail", "nvidia")
    full.cluster.wait("an unhealthy slot", health_of_slot, lambda h: h == {"Unhealthy"}, timeout=60)
    full.ctl("recover", "nvidia")
    full.cluster.wait("a healthy slot", health_of_slot, lambda h: h == {"Healthy"}, timeout=60)


def test_a_lost_card_leaves_the_node_and_comes_back(full: Mock) -> None:
    pods = full.container_ids()
    full.ctl("lose", "nvidia/1")
    wait_for_node(full, ONE_CARD, ONE_CARD, HELD)
    full.ctl("return", "nvidia/1")
    wait_for_node(full, TWO_CARDS, TWO_CARDS)
    assert full.container_ids() == pods


def test_a_changed_config_map_grows_and_shrinks_the_node(mock: Mock) -> None:
    def config(cards: int) -> str:
        others = {vendor: {"cards": 0} for vendor in ("mlu", "iluvatar", "ascend")}
        return yaml.safe_dump({"nvidia": {"cards": cards, "memory": 4000}, **others})

    mock.deploy(config=yaml.safe_load(config(1)))
    mock.wait_for(ONE_CARD)
    mock.wait_until_ready()
    agent = mock.agent_pod()["metadata"]["name"]
    mock.start_pod("first", WANTS | {"nvidia.com/gpumem": 4000})
    mock.wait_for_phase("first", "Running")

    mock.change_config(config(3))
    mock.wait_for(nvidia_counts(3, 4000))
    for name in ("second", "third"):
        mock.start_pod(name, WANTS | {"nvidia.com/gpumem": 4000})
        mock.wait_for_phase(name, "Running")
    pods = mock.container_ids()

    # A mistake changes nothing, and says so.
    mock.change_config(config(3).replace("cards: 3", "cards: many"))
    told = mock.cluster.wait(
        "the mistake in /readyz",
        lambda: json.loads(mock.agent_says("/readyz"))["configuration"]["error"],
        bool,
        timeout=90,
    )
    assert "'many' is not allowed" in told[0]
    assert "hami_mock_configuration_error 1.0" in mock.agent_says("/metrics")
    wait_for_node(mock, nvidia_counts(3, 4000), nvidia_counts(3, 4000))

    # Below what pods hold: allocatable shrinks at once, held devices go when their pods do.
    mock.change_config(config(1))
    by_plugins = ONE_CARD.keys() - mock.in_status()
    mock.cluster.wait(
        "one card's allocatable",
        mock.cluster.allocatable,
        lambda now: all(now.get(name) == ONE_CARD[name] for name in by_plugins),
        timeout=90,
    )
    assert mock.cluster.capacity()["nvidia.com/gpumem"] > 4000
    assert mock.container_ids() == pods, "a pod was lost with its card"
    mock.delete_pods("first", "second", "third")
    wait_for_node(mock, ONE_CARD, ONE_CARD)
    assert mock.agent_pod()["metadata"]["name"] == agent, "nothing was restarted for this"
    mock.start_pod("last", WANTS | {"nvidia.com/gpumem": 4000})
    mock.wait_for_phase("last", "Running")


def test_an_allocate_that_hangs_does_not_hurt_other_resources(mock: Mock) -> None:
    mock.deploy("--nvidia-memory=4000", "--iluvatar-cards=0", "--ascend-cards=0")
    counts = TWO_CARDS | {"cambricon.com/vmlu": 20}
    mock.wait_for(counts)
    mock.wait_until_ready()
    mock.ctl("hang", "allocate", "10m", "nvidia.com/gpu")
    mock.start_pod("stuck", WANTS)
    mock.cluster.wait(
        "the call that hangs",
        lambda: mock.cluster.get("pod", "stuck")["spec"].get("nodeName"),
        bool,
        timeout=60,
    )
    # The lists of the others, and of this one, go on.
    mock.ctl("fail", "mlu/1")
    wait_for_node(mock, TWO_CARDS | {"cambricon.com/vmlu": 10}, counts)
    mock.ctl("fail", "nvidia/1")
    wait_for_node(mock, ONE_CARD | {"cambricon.com/vmlu": 10}, counts)
    mock.ctl("recover", "all")
    wait_for_node(mock, counts, counts)
    mock.start_pod("other", {"cambricon.com/vmlu": 1})
    assert mock.cluster.get("pod", "stuck")["status"]["phase"] == "Pending"
    mock.ctl("clear")
    mock.wait_for_phase("stuck", "Running")
    mock.wait_for_phase("other", "Running")


def test_an_allocate_that_fails_says_why(mock: Mock) -> None:
    mock.deploy("--nvidia-memory=4000", *ONLY_NVIDIA)
    mock.wait_for(TWO_CARDS)
    mock.wait_until_ready()
    mock.ctl("break", "allocate", "nvidia.com/gpu", "--reason", "the driver is gone")
    mock.start_pod("unlucky", WANTS)
    failed = mock.wait_for_phase("unlucky", "Failed")
    assert failed["status"]["reason"] == "UnexpectedAdmissionError"
    assert "the driver is gone" in failed["status"]["message"]
    mock.ctl("clear")
    mock.start_pod("lucky", WANTS)
    mock.wait_for_phase("lucky", "Running")


def test_what_happens_is_told_as_events_of_the_node(mock: Mock) -> None:
    rbac = ROOT / "components" / "events" / "rbac.yaml"
    mock.cluster.kubectl("apply", "-f", rbac)
    try:
        events = {"HAMI_MOCK_KUBERNETES_EVENTS": "on"}
        mock.deploy("--nvidia-memory=4000", *ONLY_NVIDIA, env=events)
        mock.wait_until_ready()
        mock.ctl("fail", "nvidia/0", "--xid", "48")
        mock.cluster.wait(
            "the event in kubectl describe node",
            lambda: mock.cluster.kubectl("describe", "node", mock.cluster.node_name),
            lambda text: "CardFailed" in text and "Xid 48" in text,
            timeout=60,
        )
    finally:
        mock.cluster.kubectl("delete", "-f", rbac, "--ignore-not-found")


def test_seeded_chaos_ends_with_the_right_node_and_no_leaked_memory(
    full: Mock, figures: Figures
) -> None:
    pods = full.container_ids()
    pid = full.agent_pid()
    chaos = (Path(__file__).with_name("chaos.yaml")).read_text()
    before = resident_mib(pid)
    full.ctl("scenario", "play", "-", "--seed", "7", stdin=chaos)
    time.sleep(CHAOS_SECONDS)  # the scenario runs by the clock
    full.ctl("scenario", "stop")
    full.ctl("clear")
    full.wait_for(TWO_CARDS)
    after = resident_mib(pid)
    print(f"{CHAOS_SECONDS:.0f} s of chaos: {before:.1f} MiB before, {after:.1f} MiB after")
    figures.add(full.cluster.version, "agent's memory before the chaos", before, "MiB")
    figures.add(full.cluster.version, "agent's memory after the chaos", after, "MiB")
    # What the agent did, not what the node showed: the kubelet reports too seldom for short faults.
    told = full.ctl("events", "-o", "json").splitlines()
    happened = {json.loads(line)["kind"] for line in told}
    assert happened >= {"CardFailed", "CardRecovered", "CardLost", "CardReturned"}
    assert full.container_ids() == pods, "a pod was lost"
    assert full.agent_pid() == pid, "the agent died"
    # Python keeps a few MiB of what it once used; a leak of lists would be hundreds.
    assert after - before < 24


def resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (resident,) = [line for line in lines if line.startswith("VmRSS:")]
    return int(resident.split()[1]) / 1024
