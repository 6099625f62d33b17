from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from tests.e2e.harness.errors import RequirementsMissing
from tests.integration.agents import AgentProcess, agent_process
from tests.prometheus.observed_node import ObservedNode, observed_node, scraped
from tests.prometheus.program import prometheus
from tests.prometheus.server import Prometheus, running


@pytest.fixture(scope="session")
def program() -> Path:
    try:
        return prometheus()
    except RequirementsMissing as missing:
        pytest.skip(str(missing))


@contextmanager
def _process(folder: Path, flags: Mapping[str, str]) -> Iterator[AgentProcess]:
    words = [f"--{name}={value}" for name, value in flags.items()]
    with agent_process(folder, *words, http="127.0.0.1:0") as agent:
        # The last of its ports.
        agent.wait_for_log("vendor metrics: metrics at")
        yield agent


@pytest.fixture(scope="session")
def node(program: Path, google_messages: ModuleType) -> Iterator[ObservedNode]:
    """`hami-mock run`, a process of its own."""
    with observed_node(_process, google_messages) as node:
        yield node


@pytest.fixture(scope="session")
def server(
    program: Path, node: ObservedNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    with scraped(node) as targets, running(program, folder, targets) as server:
        server.wait_until_scraped(targets)
        yield server
