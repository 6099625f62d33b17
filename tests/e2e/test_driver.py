"""The driver on a real node: NVML in pods that have no rights, and below NVIDIA's own plugin."""

from __future__ import annotations

import os
import platform
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from hami_mock.hami.assignment import AssignedDevice
from tests.makers import BY_WORD
from tests.unit.deploy import kustomizations

from .conftest import progress_shown, skip_or_fail
from .driver_clients import (
    MUSL,
    NvmlInPod,
    client,
    load_musl_client,
    load_nvidia_plugin,
    nvidia_plugin,
    nvml_in,
)
from .hami_placing import ByHand, cards_for
from .harness import RequirementsMissing
from .mock import (
    NAMESPACE,
    OVERLAYS,
    ROOT,
    TIMEOUT_S,
    Figures,
    Mock,
    NotThere,
    nvidia_counts,
    pod,
    workload,
)
from .test_observed import DCGM, rows

GPU = "nvidia.com/gpu"
NVIDIA = BY_WORD["NVIDIA"]
MEMORY = 32768
WAITING = ["sleep", "infinity"]
OUR_SMI = ROOT / "src/hami_mock/_native" / platform.machine() / "nvidia-smi"
MANY = 8


@pytest.fixture
def node(mock: Mock, tmp_path: Path) -> Iterator[Mock]:
    """Two cards, the driver, and what monitoring reads."""
    names = ("driver", "metrics", "nvidia-only", "pods")
    with mock.applied(kustomizations.write_combination(tmp_path, names)):
        mock.wait_for(nvidia_counts(2, MEMORY))
        mock.wait_until_ready()
        yield mock
        mock.delete_pods()


@pytest.fixture
def working(node: Mock) -> Iterator[tuple[Mock, NvmlInPod]]:
    """The same with a pod at work, in which NVML is open."""
    working = pod("working", client("main", node.image, WAITING))
    working["metadata"]["annotations"] = {"hami-mock.io/load": "40:memory=50"}
    node.cluster.apply(working)
    node.wait_for_phase("working", "Running")
    with nvml_in(node.cluster, "working") as nvml:
        wait_for_load(node, nvml, 40)
        yield node, nvml


def wait_for_load(mock: Mock, nvml: NvmlInPod, percent: int) -> None:
    mock.cluster.wait(
        f"{percent} % in NVML",
        nvml.look,
        lambda cards: [card.busy for card in cards] == [percent],
        timeout=TIMEOUT_S,
    )


def held_cards(mock: Mock, name: str) -> dict[str, list[str]]:
    """Container of a pod → the cards that it holds, as the page shows it."""
    held: dict[str, list[str]] = {}
    for card in mock.page_shows()["cards"].values():
        for user in card["containers"].values():
            if user["pod"] == name:
                held.setdefault(user["container"], []).append(card["uuid"])
    return held


def test_each_container_sees_its_own_card_only(node: Mock) -> None:
    try:
        load_musl_client(node.machine)
    except RequirementsMissing as missing:
        skip_or_fail(missing)
    seers = (
        client("debian", node.image, WAITING),
        client("busybox", workload(), WAITING),
        client("musl", MUSL, ["/bin/cards"]),
    )
    node.cluster.apply(pod("seeing", *seers))
    node.wait_for_phase("seeing", "Running")
    held = node.cluster.wait(
        "who holds which card",
        lambda: held_cards(node, "seeing"),
        lambda held: len(held) == len(seers),
        timeout=TIMEOUT_S,
    )
    (own,) = held["debian"]
    with nvml_in(node.cluster, "seeing", "debian") as nvml:
        assert [(card.uuid, card.total) for card in nvml.look()] == [(own, MEMORY)]

    (own,) = held["musl"]
    told = node.cluster.wait(
        "what musl's program says",
        lambda: node.cluster.kubectl("logs", "seeing", "--container=musl"),
        bool,
        timeout=TIMEOUT_S,
    )
    assert told == f"{own} {MEMORY}\n"

    # The program is small and static, so it runs where there is no other library at all.
    assert OUR_SMI.exists(), "make native compiles it, and the image has it"
    (own,) = held["busybox"]
    words = ("--container=busybox", "--", "/usr/bin/nvidia-smi", "-L")
    (line,) = node.cluster.kubectl("exec", "seeing", *words).splitlines()
    assert line == f"GPU 0: Tesla V100-SXM2-32GB (UUID: {own})"


@dataclass(frozen=True)
class Views:
    """A card's percent, MiB and W, as each of those that tell them has them."""

    nvml: tuple[float, ...]
    dcgm: tuple[float, ...]
    page: tuple[float, ...]
    seconds: float
    """How long it took to ask them all."""

    @property
    def agree(self) -> bool:
        # NVML and DCGM have whole percents.
        near = pytest.approx(self.nvml, abs=1)
        return bool(self.dcgm == near and self.page == near)


def look_everywhere(mock: Mock, nvml: NvmlInPod) -> Views:
    """Ask all of them at once about the one card that the pod has."""
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        dcgm_answer = pool.submit(rows, mock, DCGM)
        page_answer = pool.submit(mock.page_shows)
        dcgm, page = dcgm_answer.result(), page_answer.result()
    (card,) = nvml.look()
    seconds = time.monotonic() - began
    scraped = [
        row.value
        for name in ("GPU_UTIL", "FB_USED", "POWER_USAGE")
        for row in dcgm[f"DCGM_FI_DEV_{name}"]
        if row.labels["UUID"] == card.uuid
    ]
    (shown,) = (each for each in page["cards"].values() if each["uuid"] == card.uuid)
    return Views(
        (card.busy, card.used, card.power),
        tuple(scraped),
        (shown["busy"], shown["memory_used"], shown["power"]),
        seconds,
    )


def test_nvml_dcgm_and_the_page_agree_as_the_load_changes(
    working: tuple[Mock, NvmlInPod], figures: Figures
) -> None:
    node, nvml = working
    seen = []
    for percent, memory in ((75, 20), (10, 80)):
        began = time.monotonic()
        node.ctl("load", "default/working", f"{percent}:memory={memory}")
        wait_for_load(node, nvml, percent)
        figures.add(node.cluster.version, "ctl load to NVML in a pod", time.monotonic() - began)
        views = node.cluster.wait(
            "the same load everywhere",
            lambda: look_everywhere(node, nvml),
            lambda views: views.agree,
            timeout=TIMEOUT_S,
        )
        assert views.nvml[:2] == pytest.approx((percent, MEMORY * memory / 100), abs=1)
        figures.add(node.cluster.version, "NVML, DCGM and the page read", views.seconds)
        seen.append(views.nvml[2])
    busy, idle = seen
    assert busy > idle + 50, "Watts follow the load"


def test_the_last_state_outlives_a_killed_agent(
    working: tuple[Mock, NvmlInPod], figures: Figures
) -> None:
    node, nvml = working
    killed, pods = node.agent_pid(), node.container_ids()
    # Stopped first, so that it can't write any more after this look.
    os.kill(killed, signal.SIGSTOP)
    before = nvml.look()
    began = time.monotonic()
    os.kill(killed, signal.SIGKILL)
    node.cluster.wait(
        "the agent gone", Path(f"/proc/{killed}").exists, lambda there: not there, timeout=TIMEOUT_S
    )
    assert nvml.look() == before
    with nvml_in(node.cluster, "working") as another:
        assert [(card.uuid, card.total) for card in another.look()] == [(before[0].uuid, MEMORY)]

    def other_agent() -> int:
        found = node.agent_pid()
        if found == killed:
            raise NotThere("the old agent")
        return found

    node.cluster.wait("another agent", other_agent, bool, timeout=TIMEOUT_S)
    node.wait_for(nvidia_counts(2, MEMORY))
    node.ctl("load", "default/working", "90")
    wait_for_load(node, nvml, 90)
    figures.add(
        node.cluster.version, "agent killed to its next load in NVML", time.monotonic() - began
    )
    assert node.container_ids() == pods


def test_a_pod_of_hamis_sees_its_card_and_its_limit(mock: Mock, tmp_path: Path) -> None:
    names = ("driver", "hami", "nvidia-only")
    with mock.applied(kustomizations.write_combination(tmp_path, names)):
        placer = ByHand(mock)
        placer.wait_for(NVIDIA, 2)
        mock.wait_until_ready()
        _, card = cards_for(mock, NVIDIA)
        for name, limit, used in (("limited", 3000, 50), ("neighbour", 2000, 100)):
            asked = pod(name, client("main", mock.image, WAITING, gpu=1, gpumem=limit))
            asked["metadata"]["annotations"] = {"hami-mock.io/load": f"10:memory={used}"}
            placer.assign(asked, NVIDIA, [(AssignedDevice(card, "NVIDIA", limit, 0),)])
            mock.wait_for_phase(name, "Running")
        with nvml_in(mock.cluster, "limited") as nvml:
            # Its own memory, and nothing of the other pod's on the same card.
            mock.cluster.wait(
                "what the container uses itself",
                lambda: [(seen.uuid, seen.total, seen.used) for seen in nvml.look()],
                lambda seen: seen == [(card, 3000, 1500)],
                timeout=TIMEOUT_S,
            )
        mock.delete_pods()


@pytest.fixture
def below(mock: Mock, pytestconfig: pytest.Config) -> Iterator[Mock]:
    """Eight cards, the driver only, and NVIDIA's plugin and discovery on it."""
    machine = mock.machine
    try:
        with progress_shown(pytestconfig) as progress, progress.step("load NVIDIA's plugin"):
            load_nvidia_plugin(machine, progress)
    except RequirementsMissing as missing:
        skip_or_fail(missing)
    with mock.applied(OVERLAYS / "below-nvidia-plugin"):
        mock.wait_until_ready()
        mock.ctl("set", f"nvidia-cards={MANY}")
        plugin = nvidia_plugin()
        machine.apply(plugin)
        try:
            yield mock
        finally:
            name = plugin["metadata"]["name"]
            words = ("--cascade=foreground", "--timeout=60s")
            machine.kubectl("delete", "daemonset", name, f"--namespace={NAMESPACE}", *words)


def test_nvidias_own_plugin_and_discovery_run_on_it(below: Mock, figures: Figures) -> None:
    cluster, plugin = below.cluster, "daemonset/nvidia-device-plugin"

    def in_plugin(*words: str) -> str:
        return cluster.kubectl(*words[:1], plugin, f"--namespace={NAMESPACE}", *words[1:])

    def wait_for_cards(count: int) -> None:
        cluster.wait(
            f"{count} cards of NVIDIA's plugin",
            lambda: cluster.allocatable().get(GPU),
            lambda found: found == count,
            timeout=TIMEOUT_S,
        )

    wait_for_cards(MANY)
    # Ours would have more of them, and other names too; of earlier ones, only the names are left.
    offered = {name for name, count in cluster.allocatable().items() if count}
    assert {name for name in offered if name.startswith("nvidia.com/")} == {GPU}
    text = cluster.wait(
        "the labels of discovery",
        lambda: in_plugin("exec", "--container=discovery", "--", "cat", "/features/gfd"),
        bool,
        timeout=TIMEOUT_S,
    )
    labels = dict(line.split("=", 1) for line in text.splitlines())
    assert labels["nvidia.com/gpu.count"] == str(MANY)
    assert labels["nvidia.com/gpu.product"] == "Tesla-V100-SXM2-32GB"
    assert labels["nvidia.com/gpu.memory"] == str(MEMORY)

    # A pod that their plugin gave a card is a holder of it, and as busy as it says.
    held = pod("working", client("main", below.image, WAITING))
    held["metadata"]["annotations"] = {"hami-mock.io/load": "40"}
    cluster.apply(held)
    below.wait_for_phase("working", "Running")

    def shown() -> list[float]:
        (uuid,) = held_cards(below, "working")["main"]
        return [
            card["busy"] for card in below.page_shows()["cards"].values() if card["uuid"] == uuid
        ]

    cluster.wait(
        "who holds which card",
        lambda: held_cards(below, "working"),
        bool,
        timeout=TIMEOUT_S,
    )
    cluster.wait("its load", shown, lambda busy: busy == [40], timeout=TIMEOUT_S)
    below.delete_pods()

    began = time.monotonic()
    below.ctl("fail", "nvidia/1", "--xid", "79")
    wait_for_cards(MANY - 1)
    figures.add(cluster.version, "Xid to the kubelet's allocatable", time.monotonic() - began)
    assert cluster.capacity()[GPU] == MANY
    failed = list(below.page_shows()["cards"].values())[1]["uuid"]
    log = in_plugin("logs", "--container=plugin")
    told = [line for line in log.splitlines() if "unhealthy" in line.lower()]
    assert set(re.findall(r"GPU-[0-9a-f-]+", "\n".join(told))) == {failed}
