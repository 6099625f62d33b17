"""The exporters' ports of a running agent."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hami_mock.node.readings import Usage
from tests.integration.agents import AgentThread, agent_thread, get, run_cli
from tests.unit.views.exporters.rig import named, reading, samples

LISTENS = ("dcgm_listen", "hami_monitor_listen", "vendor_metrics_listen")
ON = dict.fromkeys(LISTENS, "127.0.0.1:0")


def url(agent: AgentThread, name: str) -> str:
    view = next(view for view in agent.agent.views if view.name == name)
    return f"http://{view.status()['address']}"


def show(agent: AgentThread) -> None:
    """Let every card be read, and let nobody hold one."""
    state = agent.agent.state

    def fill() -> None:
        state.readings = {card.uuid: reading(card) for card in state.node.cards}

    agent.call(fill)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    def usages(*_: object) -> list[Usage]:
        return []

    monkeypatch.setattr("hami_mock.node.state.NodeState.usages", usages)


@pytest.mark.usefixtures("idle")
def test_each_exporter_answers_on_its_own_port(socket_folder: Path) -> None:
    with agent_thread(socket_folder, **ON) as agent:
        show(agent)
        dcgm, monitor = url(agent, "dcgm"), url(agent, "hami monitor")
        vendors = url(agent, "vendor metrics")
        assert len({dcgm, monitor, vendors}) == 3
        status, text = get(f"{dcgm}/metrics")
        assert status == 200
        assert len(named(samples(text), "DCGM_FI_DEV_GPU_UTIL")) == 2
        assert get(f"{dcgm}/health") == (200, "OK\n")
        assert get(f"{dcgm}/other")[0] == 404
        found = samples(get(f"{monitor}/metrics")[1])
        assert len(named(found, "hami_host_gpu_utilization_ratio")) == 2
        found = samples(get(f"{vendors}/metrics")[1])
        for name in ("mlu_utilization", "npu_chip_info_utilization", "ix_gpu_utilization"):
            assert len(named(found, name)) == 2
        found = samples(get(f"{vendors}/metrics/cambricon")[1])
        assert {name.partition("_")[0] for name, _ in found} == {"mlu"}
        status, text = get(f"{vendors}/metrics/nobody")
        assert (status, "/metrics/ascend" in text) == (404, True)


def test_without_options_nothing_is_served_or_loaded(socket_folder: Path) -> None:
    with agent_thread(socket_folder) as agent:
        assert {view.name for view in agent.agent.views} & {"dcgm", "hami monitor"} == set()
    code = (
        "import sys, hami_mock.agent; print([name for name in sys.modules if 'exporter' in name])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("option", LISTENS)
def test_a_port_that_is_taken_is_said_with_the_options_name(
    socket_folder: Path, option: str
) -> None:
    flag = f"--{option.replace('_', '-')}"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = run_cli("run", f"--socket-dir={socket_folder}", "--http-listen=", f"{flag}={address}")
    assert ran.returncode != 0
    assert f"{flag}: can't listen on '{address}'" in ran.stderr
