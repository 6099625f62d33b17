"""The kubelet and HAMi mean the same card, also when one fails, and no lock is left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from hami_mock.hami.assignment import BIND_PHASE, AssignedDevice
from hami_mock.vendors.hami_vendor import HamiVendor
from tests.makers import BY_WORD

from .hami_placing import (
    ByHand,
    ByScheduler,
    FillingByHand,
    Placer,
    annotations_of,
    cards_for,
    scheduling,
)
from .hami_seeing import (
    NVIDIA,
    holders_of,
    slots_of,
    wait_for_cards,
    wait_for_success,
    wait_until_unlocked,
)
from .harness.errors import CommandFailed
from .mock import ONLY_NVIDIA, TIMEOUT_S, Mock, container, pod

SPLIT = 4
# Far less memory than there is, in few units: the slots are what a full node lacks.
WANTS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 10, "nvidia.com/gpucores": 5}
MEMORY = ("--nvidia-memory=16000", "--nvidia-memory-factor=100")
NODE = (f"--nvidia-split={SPLIT}", *MEMORY, *ONLY_NVIDIA)
MLU_FLAGS = ("--nvidia-cards=0", "--iluvatar-cards=0", "--ascend-cards=0")


@pytest.fixture
def by_hand(hami_node: Mock) -> ByHand:
    return ByHand(hami_node)


@pytest.fixture(params=["played", "real"])
def placer(hami_node: Mock, request: pytest.FixtureRequest) -> Iterator[Placer]:
    """Who fills one card after the other; the kubelet by itself would spread the pods over them."""
    if request.param == "played":
        yield FillingByHand(hami_node)
        return
    with scheduling(hami_node, gpu_policy="binpack") as found:
        yield found


def lasting(name: str, wants: Mapping[str, int] = WANTS) -> dict[str, Any]:
    """A pod whose container is started again whenever it ends."""
    made = pod(name, container("main", wants))
    made["spec"]["restartPolicy"] = "Always"
    return made


def card(uuid: str) -> tuple[AssignedDevice, ...]:
    return (AssignedDevice(uuid, "NVIDIA", 1000, 5),)


def assigned_to(mock: Mock, name: str) -> str:
    told = annotations_of(mock.cluster.get("pod", name))
    return told[NVIDIA.pods.allocated].partition(",")[0]


def begin(mock: Mock, *flags: str) -> tuple[str, str]:
    """Deploy an agent for HAMi; return its two cards."""
    mock.deploy("--hami=on", *NODE, *flags)
    first, second = wait_for_cards(mock, [True, True])
    mock.wait_until_ready()
    return first, second


def end_container(mock: Mock, name: str) -> None:
    with suppress(CommandFailed):  # what ends the container may end kubectl's shell in it too
        mock.cluster.kubectl("exec", name, "--", "/bin/sh", "-c", "kill -TERM 1")


def wait_for_restart(mock: Mock, name: str) -> None:
    mock.cluster.wait(
        f"pod {name} restarted",
        lambda: mock.cluster.get("pod", name)["status"]["containerStatuses"][0],
        lambda told: told["restartCount"] >= 1 and "running" in told["state"],
        timeout=TIMEOUT_S,
    )


def wait_for_refusal(mock: Mock, name: str, uuid: str) -> None:
    """Wait until a container isn't started, because its card has failed."""
    mock.cluster.wait(
        f"pod {name} waiting for its card",
        # Its status says so only now and then, and that it is tried again for the rest.
        lambda: mock.cluster.kubectl(
            "get", "events", f"--field-selector=involvedObject.name={name}", "-o=json"
        ),
        lambda told: f"the assigned card {uuid} is unhealthy" in told,
        timeout=TIMEOUT_S,
    )
    (told,) = mock.cluster.get("pod", name)["status"]["containerStatuses"]
    assert "running" not in told["state"]


def wait_for_health(mock: Mock, name: str, health: str) -> None:
    """Wait until a pod's status says so of its slot (from 1.36 on)."""
    mock.cluster.wait(
        f"pod {name} {health}",
        lambda: [
            device["health"]
            for told in mock.cluster.get("pod", name)["status"]["containerStatuses"]
            for resource in told.get("allocatedResourcesStatus", ())
            if resource["name"] == "nvidia.com/gpu"
            for device in resource["resources"]
        ],
        lambda found: found == [health],
        timeout=TIMEOUT_S,
    )


def place_until_it_runs(placer: Placer, made: dict[str, Any]) -> None:
    """Do what a controller does: whenever a pod fails, make it again.

    The scheduler hears of a card that failed only some seconds later; until then its pods fail.
    """
    mock, name = placer.mock, made["metadata"]["name"]
    for _ in range(20):
        placer.place(made, NVIDIA)
        told = mock.cluster.wait(
            f"pod {name} running or failed",
            lambda: mock.cluster.get("pod", name),
            lambda told: told["status"]["phase"] in ("Running", "Failed"),
            timeout=TIMEOUT_S,
            show=lambda told: told["status"],
        )
        if told["status"]["phase"] == "Running":
            return
        assert "is unhealthy" in told["status"]["message"]
        mock.delete_pods(name)
    raise AssertionError(f"pod {name} failed again and again")


def test_a_card_fails_under_full_load_and_all_pods_of_the_other_go_on(placer: Placer) -> None:
    mock = placer.mock
    mock.deploy("--hami=on", *NODE)
    placer.wait_for(NVIDIA, 2)
    mock.wait_until_ready()
    names = [f"p{number}" for number in range(2 * SPLIT)]
    for name in names:
        placer.place(lasting(name), NVIDIA)
    for name in names:
        wait_for_success(mock, name)
    assigned = {name: assigned_to(mock, name) for name in names}
    assert set(Counter(assigned.values()).values()) == {SPLIT}
    assert {name: slots_of(mock, name) for name in names} == {
        name: {"main": {uuid}} for name, uuid in assigned.items()
    }
    failed, well = cards_for(mock, NVIDIA)
    mock.ctl("fail", "nvidia/0", "--xid", "79")
    wait_for_cards(mock, [False, True])
    for name in names:
        end_container(mock, name)
    for name, uuid in assigned.items():
        if uuid == well:
            wait_for_restart(mock, name)
        else:
            wait_for_refusal(mock, name, failed)
    replaced = [name for name, uuid in assigned.items() if uuid == well]
    mock.delete_pods(*replaced)
    for name in replaced:
        place_until_it_runs(placer, lasting(f"{name}-again"))
        wait_for_success(mock, f"{name}-again")
        assert assigned_to(mock, f"{name}-again") == well
    if isinstance(placer, ByScheduler):
        placer.place(lasting("too-many"), NVIDIA)
        mock.wait_for_scheduling_message("too-many", "CardNotHealth")
    wait_until_unlocked(mock)


def test_slots_are_those_of_the_container_that_keeps_them(by_hand: ByHand) -> None:
    mock = by_hand.mock
    first, second = begin(mock)
    init = container("init", WANTS)
    init["command"] = ["/bin/env"]
    containers = container("a", WANTS), container("b", WANTS)
    # The kubelet gives the init container's slot to the first of the others, whatever it is of.
    by_hand.assign(
        pod("pod", *containers, init=init), NVIDIA, [card(first), card(second), card(first)]
    )
    wait_for_success(mock, "pod")
    found = slots_of(mock, "pod")
    assert (found["a"], found["b"]) == ({second}, {first})
    assert mock.environment("pod", "init")["NVIDIA_VISIBLE_DEVICES"] == first


def test_slots_of_other_cards_stand_for_those_that_hami_assigned(by_hand: ByHand) -> None:
    """Without HAMi the kubelet had other cards in mind than HAMi has now."""
    mock = by_hand.mock
    # Pods hold devices from one agent to the next: units would stay with their plugins anyhow.
    more = ("--nvidia-split=2", "--units=plugin")
    mock.deploy(*NODE, *more)
    mock.wait_for({"nvidia.com/gpu": 4})
    for name in ("x", "y"):
        mock.cluster.apply(lasting(name))
        mock.wait_for_phase(name, "Running")
    had = {name: slots_of(mock, name)["main"].pop() for name in ("x", "y")}
    assert had["x"] != had["y"]
    mock.remove()
    first = had["x"]
    for name in ("x", "y"):  # HAMi means the first card for both
        word = f"{NVIDIA.pods.allocated}={first},NVIDIA,1000,5:;"
        mock.cluster.kubectl("annotate", "pod", name, word)
    begin(mock, *more)
    mock.wait_for({"nvidia.com/gpu": 4})
    (index,) = {
        told.index for uuid, told in wait_for_cards(mock, [True, True]).items() if uuid == first
    }
    mock.cluster.wait(
        "both on one card",
        lambda: holders_of(mock),
        lambda found: [held[0] for held in found.get(f"nvidia/{index}", ())] == ["x", "y"],
        timeout=TIMEOUT_S,
    )
    mock.ctl("fail", f"nvidia/{index}", "--xid", "79")
    wait_for_cards(mock, [number != index for number in range(2)])
    # One slot of the other card is y's. A slot of the failed one stands in for it.
    (other,) = set(cards_for(mock, NVIDIA)) - {first}
    for name in ("one", "two"):
        by_hand.assign(lasting(name), NVIDIA, [card(other)])
        wait_for_success(mock, name)
    assert sorted(slots_of(mock, name)["main"].pop() for name in ("one", "two")) == sorted(
        (first, other)
    )
    if mock.cluster.version.minor >= 36:
        for name in ("x", "y", "one", "two"):
            wait_for_health(mock, name, "Unhealthy" if name in ("x", "y") else "Healthy")
    for name in ("x", "y", "one", "two"):
        end_container(mock, name)
    for name in ("x", "y"):
        wait_for_refusal(mock, name, first)
    for name in ("one", "two"):
        wait_for_restart(mock, name)


@pytest.mark.parametrize("word", ["NVIDIA", "MLU"])
def test_a_pod_that_the_kubelet_refuses_leaves_no_lock(by_hand: ByHand, word: str) -> None:
    mock, vendor = by_hand.mock, BY_WORD[word]
    mock.deploy("--hami=on", *(NODE if word == "NVIDIA" else MLU_FLAGS))
    mock.wait_until_ready()
    by_hand.wait_for(vendor, 2)
    refused, fits = ({vendor.resources.count: count} for count in (1000, 1))
    by_hand.assign(pod("refused", container("main", refused)), vendor, [_device(mock, vendor)])
    told = mock.wait_for_phase("refused", "Failed")
    assert told["status"]["reason"] == "UnexpectedAdmissionError"
    wait_until_unlocked(mock, vendor.lock)
    told = annotations_of(mock.cluster.get("pod", "refused"))
    assert "UnexpectedAdmissionError" in told["hami-mock.io/bind-failed-reason"]
    assert told[BIND_PHASE] == ("failed" if vendor.scheduling.sets_bind_phase else "allocating")
    by_hand.assign(pod("next", container("main", fits)), vendor, [_device(mock, vendor)])
    wait_for_success(mock, "next", vendor)


def _device(mock: Mock, vendor: HamiVendor) -> tuple[AssignedDevice, ...]:
    return (AssignedDevice(cards_for(mock, vendor)[0], vendor.word, 1000, 5),)
