"""What monitoring sees of pods: each container's own load, and one truth under all names."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hami_mock.hami.assignment import AssignedDevice
from hami_mock.hami.kinds import MIG_ALLOCATIONS
from tests.defaults import DEFAULT_COUNTS
from tests.makers import BY_WORD
from tests.unit.deploy import kustomizations

from .hami_placing import ByHand, cards_for
from .mock import OVERLAYS, TIMEOUT_S, Figures, Mock, container, pod

DCGM, MONITOR, VENDORS = 9400, 9394, 9397
MIB = 1024 * 1024
GONE_S = 20.0
"""The kubelet is asked every ten seconds at the latest, and read once a second by the load."""
NVIDIA = BY_WORD["NVIDIA"]

LIMITS = {"first": 3000, "second": 2000, "quiet": 300}
LOADS = {"first": "40:memory=90", "second": "15:memory=100", "chip": "60"}
BUSY = {"first": 40, "second": 15, "quiet": 0}


@dataclass(frozen=True)
class Row:
    """A line of the exposition."""

    labels: dict[str, str]
    value: float

    @property
    def who(self) -> tuple[str, str, str]:
        return self.labels["namespace"], self.labels["pod"], self.labels["container"]


def rows(mock: Mock, port: int) -> dict[str, list[Row]]:
    """What a scrape gives, by the name of the metric."""
    found: dict[str, list[Row]] = {}
    for family in text_string_to_metric_families(mock.agent_says("/metrics", port)):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(Row(sample.labels, sample.value))
    return found


def by_container(found: dict[str, list[Row]], name: str) -> dict[str, float]:
    """Container → value, of rows that are all of the one pod."""
    told = {row.who: row.value for row in found.get(name, ())}
    assert {who[:2] for who in told} <= {("default", "observed")}
    return {who[2]: value for who, value in told.items()}


@dataclass(frozen=True)
class Views:
    """Card → utilization, as each of those that tell it has it."""

    dcgm: dict[str, float]
    monitor: dict[str, float]
    status: dict[str, float]
    page: dict[str, float]
    containers: dict[str, float]
    """The sum of what the containers on a card do."""
    seconds: float
    """How long it took to ask them all."""

    @property
    def agree(self) -> bool:
        busy = {uuid: value for uuid, value in self.dcgm.items() if value}
        cards_agree = self.dcgm == self.monitor == self.status == self.page
        return cards_agree and busy == self.containers


def look_everywhere(mock: Mock) -> Views:
    """Ask all of them at once."""
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        dcgm_answer = pool.submit(rows, mock, DCGM)
        monitor_answer = pool.submit(rows, mock, MONITOR)
        status_answer = pool.submit(mock.ctl, "status", "-o", "json")
        page_answer = pool.submit(mock.page_shows)
        dcgm, monitor = dcgm_answer.result(), monitor_answer.result()
        status, page = json.loads(status_answer.result()), page_answer.result()
    seconds = time.monotonic() - began
    containers: dict[str, float] = {}
    for row in monitor.get("hami_container_device_utilization_ratio", ()):
        uuid = row.labels["device_uuid"]
        containers[uuid] = containers.get(uuid, 0) + row.value
    return Views(
        {row.labels["UUID"]: row.value for row in dcgm["DCGM_FI_DEV_GPU_UTIL"]},
        {
            row.labels["device_uuid"]: row.value
            for row in monitor["hami_host_gpu_utilization_ratio"]
        },
        {
            card["uuid"]: card["reading"]["busy"]
            for card in status["cards"]
            if card["name"].startswith("nvidia/")
        },
        {
            card["uuid"]: card["busy"]
            for name, card in page["cards"].items()
            if name.startswith("nvidia/")
        },
        {uuid: value for uuid, value in containers.items() if value},
        seconds,
    )


def observed_pod() -> dict[str, object]:
    """Three containers on two cards, so that some share one, and one on a card of Cambricon's."""
    containers = [
        container(name, {"nvidia.com/gpu": 1, "nvidia.com/gpumem": memory})
        for name, memory in LIMITS.items()
    ]
    made = pod("observed", *containers, container("chip", {"cambricon.com/vmlu": 1}))
    annotations = {f"hami-mock.io/load.{name}": load for name, load in LOADS.items()}
    made["metadata"]["annotations"] = annotations
    return made


@pytest.fixture
def node(mock: Mock) -> Iterator[Mock]:
    """A node as overlays/metrics makes it, with the pod on it."""
    with mock.applied(OVERLAYS / "metrics"):
        mock.wait_for(DEFAULT_COUNTS)
        mock.wait_until_ready()
        mock.cluster.apply(observed_pod())
        mock.wait_for_phase("observed", "Running")
        yield mock
        mock.delete_pods()


def wait_for_rows(
    mock: Mock, what: str, good: Callable[[dict[str, list[Row]]], bool], timeout: float = TIMEOUT_S
) -> dict[str, list[Row]]:
    return mock.cluster.wait(what, lambda: rows(mock, MONITOR), good, timeout=timeout)


def test_each_container_shows_its_own_load_until_its_pod_is_gone(
    node: Mock, figures: Figures
) -> None:
    utilization = "hami_container_device_utilization_ratio"
    # What the annotations say; the one without is idle, and has no room for a whole context.
    used = {"first": 2700 * MIB, "second": 2000 * MIB, "quiet": 300 * MIB}
    told = wait_for_rows(
        # A container's memory is allocated after its slot: it is known a moment later.
        node,
        "the containers' loads",
        lambda found: (
            by_container(found, utilization) == BUSY
            and by_container(found, "hami_vgpu_memory_used_bytes") == used
        ),
    )
    limits = by_container(told, "hami_vgpu_memory_limit_bytes")
    assert limits == {name: memory * MIB for name, memory in LIMITS.items()}
    on_cards = sum(row.value for row in told["hami_host_gpu_memory_used_bytes"])
    assert on_cards == sum(used.values())

    # Within a second, unless the machine is very busy; a steady load is the same for longer.
    views = look_everywhere(node)
    assert views.agree, views
    assert sum(views.dcgm.values()) == 55
    figures.add(node.cluster.version, "all views of the load read", views.seconds)
    node.cluster.wait(
        # The container on it may be the last one whose name is known.
        "the chip's load",
        lambda: [row.value for row in rows(node, VENDORS)["mlu_utilization"] if row.value],
        lambda found: found == [60],
        timeout=TIMEOUT_S,
    )
    node.ctl("load", "default/observed/first", "25")
    node.cluster.wait(
        "another load everywhere",
        lambda: look_everywhere(node),
        lambda views: views.agree and sum(views.dcgm.values()) == 40,
        timeout=TIMEOUT_S,
    )

    began = time.monotonic()
    node.delete_pods("observed")
    figures.add(node.cluster.version, "pod deleted", time.monotonic() - began)
    wait_for_rows(node, "no series", lambda found: utilization not in found, timeout=GONE_S)
    figures.add(node.cluster.version, "pod deleted to its series gone", time.monotonic() - began)
    for port in (DCGM, MONITOR, VENDORS):
        assert "observed" not in node.agent_says("/metrics", port)
    assert not any(card["containers"] for card in node.page_shows()["cards"].values())
    idle = look_everywhere(node)
    assert idle.agree
    assert set(idle.dcgm.values()) == {0}


def test_a_pod_of_hamis_is_seen_on_its_card_within_its_limits(mock: Mock, tmp_path: Path) -> None:
    names = ("hami", "metrics", "nvidia-only")
    with mock.applied(kustomizations.write_combination(tmp_path, names)):
        placer = ByHand(mock)
        placer.wait_for(NVIDIA, 2)
        mock.wait_until_ready()
        _, card = cards_for(mock, NVIDIA)
        wants = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}
        asked = pod("observed", container("main", wants))
        # More than it may have of both.
        asked["metadata"]["annotations"] = {"hami-mock.io/load": "80:memory=100"}
        placer.assign(asked, NVIDIA, [(AssignedDevice(card, "NVIDIA", 3000, 30),)])
        mock.wait_for_phase("observed", "Running")
        told = wait_for_rows(
            mock,
            "the container's load",
            lambda found: (
                by_container(found, "hami_container_device_utilization_ratio") == {"main": 30}
            ),
        )
        assert by_container(told, "hami_vgpu_memory_limit_bytes") == {"main": 3000 * MIB}
        assert by_container(told, "hami_vgpu_memory_used_bytes")["main"] <= 3000 * MIB
        of_the_pod = [row for found in told.values() for row in found if "pod" in row.labels]
        assert {row.labels["device_uuid"] for row in of_the_pod} == {card}
        named = [row for row in rows(mock, DCGM)["DCGM_FI_DEV_GPU_UTIL"] if "pod" in row.labels]
        assert [(row.who, row.labels["UUID"], row.value) for row in named] == [
            (("default", "observed", "main"), card, 30)
        ]
        mock.delete_pods()


def test_a_card_that_is_cut_shows_its_instances(mock: Mock, tmp_path: Path) -> None:
    names = ("hami", "metrics", "nvidia-only")
    with mock.applied(kustomizations.write_combination(tmp_path, names)):
        placer = ByHand(mock)
        placer.wait_for(NVIDIA, 2)
        mock.wait_until_ready()
        mock.ctl("set", "nvidia-mode=mig", "nvidia-model=A100-SXM4-40GB")
        card, other = cards_for(mock, NVIDIA)
        asked = pod("observed", container("main", {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 4000}))
        reserved = [
            {
                "containerIndex": 0,
                "deviceIndex": number,
                "gpuUUID": card,
                "profile": "1g.5gb",
                "placement": {"start": number, "size": 1},
            }
            for number in range(2)
        ]
        asked["metadata"]["annotations"] = {
            MIG_ALLOCATIONS: json.dumps(reserved),
            "hami-mock.io/load": "100:memory=50",
        }
        devices = (AssignedDevice(card, "NVIDIA", 4864, 15),) * 2
        placer.assign(asked, NVIDIA, [devices])
        mock.wait_for_phase("observed", "Running")
        told = wait_for_rows(
            mock, "the container's load", lambda found: "hami_mig_device_info" in found
        )
        visible = mock.environment("observed")["NVIDIA_VISIBLE_DEVICES"].split(",")
        assert [row.labels["mig_uuid"] for row in told["hami_mig_device_info"]] == visible
        dcgm = rows(mock, DCGM)
        parts = [row for row in dcgm["DCGM_FI_DEV_FB_USED"] if "GPU_I_ID" in row.labels]
        assert [
            (row.labels["GPU_I_ID"], row.labels["GPU_I_PROFILE"], row.who) for row in parts
        ] == [(number, "1g.5gb", ("default", "observed", "main")) for number in ("7", "8")]
        (whole,) = dcgm["DCGM_FI_DEV_GPU_UTIL"]
        assert whole.labels["UUID"] == other
        mock.delete_pods()
