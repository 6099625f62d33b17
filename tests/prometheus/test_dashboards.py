"""A real Prometheus answers every question of the dashboards from a running agent."""

from __future__ import annotations

import pytest

from tests.prometheus.expressions import (
    DASHBOARD_12239,
    DASHBOARD_HAMI,
    filled_in,
    our_expressions,
)
from tests.prometheus.observed_node import GPU, ObservedNode
from tests.prometheus.server import NODE, Prometheus

MIB = 1024 * 1024
OF_A_CARD = {
    "DCGM_FI_DEV_GPU_UTIL": "busy",
    "DCGM_FI_DEV_FB_USED": "memory_used",
    "DCGM_FI_DEV_FB_FREE": "memory_free",
    "DCGM_FI_DEV_FB_RESERVED": "memory_reserved",
    "DCGM_FI_DEV_POWER_USAGE": "power",
    "DCGM_FI_DEV_SM_CLOCK": "sm_clock",
}
"""DCGM's names, and those of `ctl status`."""


@pytest.mark.parametrize("expression", [*DASHBOARD_12239, *DASHBOARD_HAMI, *our_expressions()])
def test_every_panel_has_data(server: Prometheus, expression: str) -> None:
    assert server.data(filled_in(expression))


def test_cards_are_neither_doubled_nor_missing(server: Prometheus) -> None:
    rows = server.data(filled_in(DASHBOARD_12239[0]))
    assert sorted(own["gpu"] for own, _ in rows) == ["0", "1", "2"]
    ((_, cards),) = server.data("count(hami_mock_card_healthy)")
    assert cards == 9


def by_card(server: Prometheus, metric: str, label: str = "UUID") -> dict[str, float]:
    return {
        own[label]: float(value[1])
        for own, value in ((row["metric"], row["value"]) for row in server.ask(metric))
    }


def by_container(server: Prometheus, metric: str) -> dict[tuple[str, ...], float]:
    labels = ("namespace", "pod", "container", "device_uuid")
    return {
        tuple(row["metric"][label] for label in labels): float(row["value"][1])
        for row in server.ask(metric)
    }


def told(server: Prometheus) -> dict[str, object]:
    """What Prometheus has of cards and containers."""
    return {
        **{metric: by_card(server, metric) for metric in OF_A_CARD},
        "monitor": by_card(server, "hami_host_gpu_utilization_ratio", "device_uuid"),
        "monitor, memory": by_card(server, "hami_host_gpu_memory_used_bytes", "device_uuid"),
        "mlu": by_card(server, "mlu_utilization", "uuid"),
        "healthy": by_card(server, "hami_mock_card_healthy", "uuid"),
        "containers": by_container(server, "hami_container_device_utilization_ratio"),
        "containers, memory": by_container(server, "hami_vgpu_memory_used_bytes"),
    }


def expected(node: ObservedNode) -> dict[str, object]:
    """The same, from what `ctl status` says."""
    cards = node.status()["cards"]
    gpus = {card["uuid"]: card["reading"] for card in cards if card["name"].startswith("nvidia/")}
    held = [
        ((holder["namespace"], holder["pod"], holder["container"], uuid), holder["load"])
        for card in cards
        if (uuid := card["uuid"]) in gpus
        for holder in card["holders"]
    ]
    return {
        **{
            metric: {uuid: reading[name] for uuid, reading in gpus.items()}
            for metric, name in OF_A_CARD.items()
        },
        "monitor": {uuid: reading["busy"] for uuid, reading in gpus.items()},
        "monitor, memory": {u: reading["memory_used"] * MIB for u, reading in gpus.items()},
        "mlu": {c["uuid"]: c["reading"]["busy"] for c in cards if c["name"].startswith("mlu/")},
        "healthy": {card["uuid"]: int(card["health"] == "healthy") for card in cards},
        "containers": {who: load["busy"] for who, load in held},
        "containers, memory": {who: load["memory"] * MIB for who, load in held},
    }


def test_prometheus_has_what_ctl_status_says_also_after_a_change(
    server: Prometheus, node: ObservedNode
) -> None:
    server.wait("all agree", lambda: told(server) == expected(node))
    node.ctl("load", "team/single", "80:memory=70")
    now = expected(node)
    server.wait("all agree again", lambda: told(server) == now)
    for metric in ("DCGM_FI_DEV_GPU_UTIL", "hami_container_device_utilization_ratio"):
        ((_, busy),) = server.data(f'{metric}{{pod="single"}}')
        assert busy == 80


def test_labels_of_pods_arrive_under_both_names(server: Prometheus) -> None:
    ((own, _),) = server.data('DCGM_FI_DEV_GPU_UTIL{pod="single"}')
    assert own["exported_pod"] == own["pod"] == "single"
    assert (own["exported_namespace"], own["exported_container"]) == ("team", "main")
    assert own["node"] == NODE
    # A card that nobody, or more than one, holds has neither.
    free = server.ask('DCGM_FI_DEV_GPU_UTIL{pod="", exported_pod=""}')
    assert len(free) == 2


def test_what_a_row_says_of_itself_beats_what_the_job_says(server: Prometheus) -> None:
    assert server.data('hami_host_gpu_utilization_ratio{node!=""}')
    assert server.ask('{job=~"hami-mock.*", exported_node!=""}') == []


def test_two_containers_of_a_pod_have_series_of_their_own(server: Prometheus) -> None:
    rows = server.data('hami_container_device_utilization_ratio{pod="trainer"}')
    assert {own["container"]: value for own, value in rows} == {"main": 40, "side": 15}


def holders(node: ObservedNode) -> set[tuple[str, str]]:
    """The pods of `ctl status`, which asks the kubelet; by itself the agent does so every 10 s."""
    cards = node.status()["cards"]
    return {(held["namespace"], held["pod"]) for card in cards for held in card["holders"]}


def test_when_a_pod_ends_its_series_are_gone(server: Prometheus, node: ObservedNode) -> None:
    brief, series = ("team", "brief", "main"), '{pod="brief"}'
    counted = f'hami_mock_allocations_total{{resource="{GPU}"}}'
    ((_, before),) = server.data(counted)
    node.admit(brief, GPU, card=2, memory=1000)
    node.ctl("load", "team/brief", "30")
    for awaited in (
        f"DCGM_FI_DEV_GPU_UTIL{series} == 30",
        f"hami_container_device_utilization_ratio{series} == 30",
        f"hami_vgpu_memory_limit_bytes{series} == {1000 * MIB}",
        f"{counted} == {before + 1}",
    ):
        assert server.data(awaited)
    del node.pods.pods[brief]
    server.wait("no holder", lambda: ("team", "brief") not in holders(node))
    server.wait("none of its series", lambda: server.ask(series) == [])
    assert server.data('DCGM_FI_DEV_GPU_UTIL{gpu="2", pod=""} == 0')
