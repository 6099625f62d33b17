"""`hami-mock smi` against a running agent: the numbers of its state, live."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hami_mock.cli.smi_cards import of_agent
from tests.integration.agents import AgentThread, agent_thread, run_cli
from tests.integration.terminals import terminal
from tests.pod_resources import pod_resources

POD = ("ml", "train-0", "main")
PROGRAM = "/".join(POD)


@pytest.fixture
def path(socket_folder: Path) -> str:
    return str(socket_folder / "control.sock")


@pytest.fixture
def agent(socket_folder: Path, path: str) -> Iterator[AgentThread]:
    """A node on which one container keeps both NVIDIA cards busy."""
    pods_socket = socket_folder / "pods.sock"
    flags = {"pod_resources_socket": str(pods_socket), "control_socket": path, "load": "60"}
    with pod_resources(pods_socket) as pods, agent_thread(socket_folder, **flags) as found:
        held = [f"{card.uuid}-0" for card in found.agent.node.cards[:2]]
        pods.pods[POD] = {"nvidia.com/gpu": held}
        found.call(found.agent.holders.refresh)
        while not all(found.agent.state.load(card).busy for card in found.agent.node.cards[:2]):
            found.call(found.agent.state.load_changes.next().wait)
        yield found


def smi(path: str, *words: str) -> str:
    done = run_cli("smi", "--control-socket", path, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_fields_are_what_the_state_says(agent: AgentThread, path: str) -> None:
    fields = "card,uuid,utilization.gpu,memory.used,power.draw,temperature.gpu"

    def rows() -> list[str]:
        state = agent.agent.state
        readings = agent.call(lambda: state.readings)
        every = [(card, readings[card.uuid]) for card in state.node.cards]
        return [
            f"{card.name}, {card.uuid}, {now.busy:.0f}, {now.memory_used}, {now.power:.2f}, "
            f"{now.temperature:.0f}"
            for card, now in every
        ]

    while True:
        before = rows()
        told = smi(path, "--query", fields, "--format", "csv,noheader,nounits").splitlines()
        # Between two equal looks nothing has changed.
        if before == rows():
            break
    assert told == before
    assert ", 60, " in told[0]
    assert ", 0, 0, " in told[2]


def test_the_programs_are_the_containers(agent: AgentThread, path: str) -> None:
    table = smi(path, "nvidia")
    memory = agent.agent.state.load(agent.agent.node.cards[0]).memory
    found = re.findall(r"\| +(\d+) +N/A +N/A +(\d+) +C +(\S+) +(\d+)MiB \|", table)
    assert [(card, name, int(used)) for card, _, name, used in found] == [
        ("0", PROGRAM, memory), ("1", PROGRAM, memory),
    ]  # fmt: skip
    # One container has one PID, wherever it is seen.
    assert len({pid for _, pid, _, _ in found}) == 1
    (data,) = json.loads(smi(path, "nvidia/0", "-o", "json"))
    assert [each["process"] for each in data["processes"]] == [PROGRAM]


@pytest.mark.parametrize(
    ("verb", "parameters", "health"),
    [
        ("fail", {"xid": 94}, "unhealthy"),
        ("degrade", {"reason": "ecc"}, "degraded"),
        ("lose", {}, "lost"),
        ("fail", {"xid": 79}, "lost"),
    ],
)
def test_faults_are_seen(
    agent: AgentThread, path: str, verb: str, parameters: dict[str, Any], health: str
) -> None:
    state, (_, second, *_) = agent.agent.state, agent.agent.node.cards
    agent.act(verb, "nvidia/1", **parameters)
    while (second.uuid in agent.call(lambda: state.readings)) == (verb == "lose"):
        agent.call(state.load_changes.next().wait)
    told = smi(path, "--query=health", "--format=csv,noheader", "nvidia").split()
    assert told == ["healthy", health]
    assert ("ERR!" in smi(path, "nvidia/1")) == (health == "lost")


def test_a_card_that_is_cut_is_listed_with_its_parts(socket_folder: Path, path: str) -> None:
    config = socket_folder / "config.yaml"
    config.write_text(
        "nvidia: {groups: [{cards: 1, model: A100-SXM4-80GB, mig: [3g.40gb, 1g.10gb]}]}\n"
    )
    flags = {"config": str(config), "vendors": "nvidia", "nvidia_memory_factor": "auto"}
    with agent_thread(socket_folder, control_socket=path, **flags):
        whole, *parts = smi(path, "--as", "nvidia-smi", "-L").splitlines()
        assert "A100" in whole
        assert sorted(part.split()[1] for part in parts) == ["1g.10gb", "3g.40gb"]
        assert all("(UUID: MIG-" in part for part in parts)
        assert " Enabled |" in smi(path)


def test_the_drivers_version_is_the_agents(socket_folder: Path, path: str) -> None:
    flags = {"vendors": "nvidia", "driver_version": "550.54.15"}
    with agent_thread(socket_folder, control_socket=path, **flags):
        assert {card.values["driver_version"] for card in of_agent(path).cards} == {"550.54.15"}
        assert "NVIDIA-SMI 550.54.15" in smi(path)
        assert "CUDA Version: 12.4" in smi(path)


@pytest.mark.usefixtures("agent")
def test_it_repeats_until_ctrl_c(path: str) -> None:
    with terminal("smi", "--control-socket", path, "-L", "-l", "0.1") as screen:
        while screen.output.count("nvidia/1: ") < 3:
            assert screen.read(), screen.output
        screen.process.send_signal(signal.SIGINT)
        screen.read_all()
        assert screen.process.wait(timeout=10) == -signal.SIGINT
        assert "Traceback" not in screen.output
