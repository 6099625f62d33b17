"""Our alerts fire when `ctl` strikes a running agent, and stop when all is well again."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import anyio
from anyio.abc import TaskStatus

from hami_mock.faults.stage import Stage
from tests.e2e.harness.commands import run
from tests.integration.agents import AgentThread, agent_thread
from tests.prometheus.expressions import RULES, rules
from tests.prometheus.observed_node import ObservedNode, observed_node, scraped
from tests.prometheus.server import Prometheus, running

STRIKES = {
    "fail nvidia/0 --xid 64": {"CardFailed", "GpuXid", "GpuRowsNotRemapped"},
    "degrade nvidia/1 --reason thermal": {"CardDegraded", "GpuHot"},
    "lose nvidia/2": {"CardLost", "GpuVanished"},
    "down nvidia.com/gpucores": {"ResourceNotWatched"},
    "load team/trainer/side 15:memory=100": {"ContainerNearMemoryLimit"},
}
MENDS = ("recover all", "return all", "up all", "load team/trainer/side 15:memory=50")
LASTING = {"GpuXid", "GpuRowsNotRemapped"}
"""A card remembers its last Xid, and a row that couldn't be replaced."""
SILENT = {"AgentDown"}
"""Also for a moment whenever a busy machine takes a second for a scrape."""

SAMPLED = {
    "load team/single 100": {"GpuAtPowerLimit"},
    "degrade nvidia/0 --reason thermal": {"GpuSlowedDownByHeat"},
}
"""What dcgm-exporter counts in samples, one every 30 s."""
PART_FAILS = {"AgentPartFailing"}


def test_each_alert_is_tried_here() -> None:
    tried = set().union(*STRIKES.values(), *SAMPLED.values(), SILENT, PART_FAILS)
    assert tried == set(rules())


def test_the_rules_are_well_formed(program: Path) -> None:
    assert "SUCCESS" in run([program.with_name("promtool"), "check", "rules", RULES])


def test_alerts_fire_when_ctl_strikes_and_stop_when_all_is_mended(
    server: Prometheus, node: ObservedNode
) -> None:
    assert server.fired() - SILENT == set()
    for words in STRIKES:
        node.ctl(*words.split())
    wanted = set().union(*STRIKES.values())
    server.wait("all alerts fire", lambda: server.fired() - SILENT == wanted)
    for words in MENDS:
        node.ctl(*words.split())
    server.wait("they stop", lambda: server.firing() == LASTING)
    node.agent.process.send_signal(signal.SIGSTOP)
    try:
        server.wait("nobody answers", lambda: server.firing() >= SILENT)
    finally:
        node.agent.process.send_signal(signal.SIGCONT)
    server.wait("it answers again", lambda: server.firing() == LASTING)


@contextmanager
def _with_a_broken_part(folder: Path, flags: Mapping[str, str]) -> Iterator[AgentThread]:
    """An agent that samples often, and one of whose parts fails again and again."""

    async def trip(
        _stage: Stage, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        task_status.started()
        raise RuntimeError("broken on purpose")

    often = patch("hami_mock.views.exporters.view.SAMPLE_SECONDS", 0.2)
    named = {name.replace("-", "_"): value for name, value in flags.items()}
    listening = {**named, "http_listen": "127.0.0.1:0"}
    with often, patch.object(Stage, "run", trip), agent_thread(folder, **listening) as agent:
        yield agent


def test_alerts_on_what_is_sampled_and_on_a_part_that_fails(
    program: Path, google_messages: ModuleType, tmp_path: Path
) -> None:
    with (
        observed_node(_with_a_broken_part, google_messages) as node,
        scraped(node) as targets,
        running(program, tmp_path, targets) as server,
    ):
        server.wait_until_scraped(targets)
        assert server.fired() - SILENT == PART_FAILS
        for words in SAMPLED:
            node.ctl(*words.split())
        wanted = set().union(*SAMPLED.values())
        server.wait("all alerts fire", lambda: wanted <= server.firing())
        node.ctl("load", "team/single", "20")
        node.ctl("recover", "all")
        server.wait("they stop", lambda: server.firing() == PART_FAILS)
