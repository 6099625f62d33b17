"""A real Prometheus answers every question of the dashboards, and fires the alerts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hami_mock.node.readings import Throttle
from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import RequirementsMissing
from tests.prometheus.expressions import (
    DASHBOARD_12239,
    DASHBOARD_HAMI,
    RULES,
    filled_in,
    our_expressions,
    rules,
)
from tests.prometheus.program import prometheus
from tests.prometheus.server import NODE, Prometheus, running
from tests.prometheus.shown_node import GONE, ShownNode, shown_node


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return prometheus()
    except RequirementsMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShownNode]:
    with shown_node(tmp_path_factory.mktemp("agent")) as served:
        yield served


@pytest.fixture(scope="module")
def server(
    program: Path, node: ShownNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    with running(program, tmp_path_factory.mktemp("prometheus"), node.targets) as server:
        health = {job: "down" if job == GONE else "up" for job in node.targets}
        server.wait("all targets are scraped", lambda: server.targets() == health)
        yield server


def data(server: Prometheus, expression: str) -> list[tuple[dict[str, str], float]]:
    """Wait until an expression has data."""
    rows = server.wait(expression, lambda: server.ask(expression))
    return [(row["metric"], float(row["value"][1])) for row in rows]


@pytest.mark.parametrize("expression", [*DASHBOARD_12239, *DASHBOARD_HAMI, *our_expressions()])
def test_every_panel_has_data(server: Prometheus, expression: str) -> None:
    assert data(server, filled_in(expression))


def test_cards_are_neither_doubled_nor_missing(server: Prometheus) -> None:
    rows = data(server, filled_in(DASHBOARD_12239[0]))
    assert sorted(own["gpu"] for own, _ in rows) == ["0", "1", "2"]
    ((_, power),) = data(server, filled_in(DASHBOARD_12239[3]))
    assert power == pytest.approx(3 * 180.25)


def test_labels_of_pods_arrive_under_both_names(server: Prometheus) -> None:
    rows = data(server, 'DCGM_FI_DEV_GPU_UTIL{pod="single"}')
    ((own, _),) = rows
    assert own["exported_pod"] == own["pod"] == "single"
    assert (own["exported_namespace"], own["exported_container"]) == ("team", "main")
    assert own["node"] == NODE
    # A card that nobody, or more than one, holds has neither.
    free = server.ask('DCGM_FI_DEV_GPU_UTIL{pod="", exported_pod=""}')
    assert len(free) == 2


def test_what_a_row_says_of_itself_beats_what_the_job_says(server: Prometheus) -> None:
    assert data(server, 'hami_host_gpu_utilization_ratio{node!=""}')
    assert server.ask('{job=~"hami-mock.*", exported_node!=""}') == []


def test_two_containers_of_a_pod_have_series_of_their_own(server: Prometheus) -> None:
    rows = data(server, 'hami_container_device_utilization_ratio{pod="trainer"}')
    assert {own["container"]: value for own, value in rows} == {"main": 40, "side": 15}


def test_the_rules_are_well_formed(program: Path) -> None:
    assert "SUCCESS" in run([program.with_name("promtool"), "check", "rules", RULES])


def test_alerts_fire_on_faults_and_are_silent_before(server: Prometheus, node: ShownNode) -> None:
    def fired() -> set[str]:
        # Some last as long as Prometheus remembers the card.
        rows = server.ask('last_over_time(ALERTS{alertstate="firing"}[5m])')
        return {row["metric"]["alertname"] for row in rows}

    # What can't be otherwise here: see `shown_node`.
    always = {"AgentDown", "AgentPartFailing", "ResourceNotWatched"}
    server.wait("rules are evaluated", lambda: always <= fired())
    assert fired() == always
    first, second, third = node.state.node.cards[:3]
    throttles = frozenset({Throttle.HARDWARE_THERMAL, Throttle.POWER_CAP})
    node.act("fail", first.uuid, xid=64)
    node.read(0, last_xid=64, remap_failed=True)
    node.act("degrade", second.uuid, reason="thermal")
    node.read(1, temperature=92.0, throttles=throttles)
    node.act("lose", third.uuid)
    node.call(node.state.hold, second, ("team", "greedy", "main"), 10, 8100)
    server.wait("all alerts fire", lambda: fired() == set(rules()))
