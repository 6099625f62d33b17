"""Monitors of others read what `hami-mock smi` prints where npu-smi is wanted."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness.commands import run
from tests.integration.agents import AgentThread, agent_thread, run_cli
from tests.judges.conftest import Have
from tests.pod_resources import pod_resources

POD = ("ml", "train-0", "main")
RESOURCE = "huawei.com/Ascend910B3"
FAILED = 3
NODES = (("Ascend310P", 1), ("Ascend910A", 8), ("Ascend910B4", 16), ("Ascend910B3", 128))
# It calls the tool for each card again, and reads only numbers of two digits.
NODES_OF_NPUSTAT = [(model, cards) for model, cards in NODES if cards <= 16]
# nputop's own reader of what npu-smi prints, without its screen.
NPUTOP = """
import json, subprocess
from nputop.main import NPUStats
told = subprocess.run(["npu-smi", "info"], capture_output=True, text=True, check=True).stdout
print(json.dumps(NPUStats.parse_npu_info(None, told)))
"""


@pytest.fixture
def agent(socket_folder: Path) -> Iterator[AgentThread]:
    """Eight chips: a container keeps the first busy, and one has failed."""
    pods_socket, control = socket_folder / "pods.sock", socket_folder / "control.sock"
    flags = {"pod_resources_socket": str(pods_socket), "control_socket": str(control),
             "load": "60", "vendors": "ascend", "ascend_cards": "8", "ascend_memory": "60000",
             "ascend_memory_factor": "auto", "ascend_resource_name": RESOURCE}  # fmt: skip
    with pod_resources(pods_socket) as pods, agent_thread(socket_folder, **flags) as found:
        first, state = found.agent.node.cards[0], found.agent.state
        pods.pods[POD] = {RESOURCE: [f"{first.uuid}-0"]}
        found.call(found.agent.holders.refresh)
        found.act("fail", f"ascend/{FAILED}")
        while not state.load(first).busy:
            found.call(state.load_changes.next().wait)
        yield found


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Any]:
    def asked(source: Sequence[str], tool: str, *command: object) -> Any:
        """Run a command that finds the tool as npu-smi; return what it printed as JSON.

        The flags of `source` say whose cards the tool shows.
        """
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "npu-smi"
        words = [sys.executable, "-m", "hami_mock", "smi", *source, "--as", tool]
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        program.chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "TERM": "xterm"}
        return json.loads(run([*map(str, command)], env=environment, timeout=120))

    return asked


def of(agent: AgentThread) -> list[str]:
    return [f"--control-socket={agent.agent.settings.control_socket}"]


def test_npustat(have: Have, agent: AgentThread, ask: Callable[..., Any]) -> None:
    told = ask(of(agent), "npu-smi-21", have("npustat"), "-m", "npustat", "--json", "--use-npu-smi")
    cards = agent.agent.node.cards
    assert [card["type"] for card in told["atlas_cards"]] == [card.model.name for card in cards]
    chips = [chip for card in told["atlas_cards"] for chip in card["chips"]]
    assert [(chip["device_id"], chip["chip_name"]) for chip in chips] == [
        (str(card.index), "Ascend 910") for card in cards
    ]
    assert [chip["health"] for chip in chips] == [
        "Alarm" if card.index == FAILED else "OK" for card in cards
    ]
    assert [chip["ai_core_usage"] for chip in chips] == [60, *[0] * 7]
    used = agent.agent.state.load(cards[0]).memory
    assert [chip["memory_used"] for chip in chips] == [f"{used} MB", *["0 MB"] * 7]
    assert {chip["memory_total"] for chip in chips} == {"60000 MB"}


def test_nputop(have: Have, agent: AgentThread, ask: Callable[..., Any]) -> None:
    cards = agent.agent.node.cards
    chips, processes = ask(of(agent), "npu-smi", have("nputop"), "-c", NPUTOP)
    assert [(chip["id"], chip["name"], chip["bus_id"]) for chip in chips] == [
        (str(card.index), "910B3", card.pci_bus_id[4:]) for card in cards
    ]
    assert [chip["health"] for chip in chips] == [
        "Alarm" if card.index == FAILED else "OK" for card in cards
    ]
    assert [chip["aicore"] for chip in chips] == [60, *[0] * 7]
    used = agent.agent.state.load(cards[0]).memory
    assert [(chip["hbm_used"], chip["hbm_total"]) for chip in chips] == [
        (used, 60000), *[(0, 60000)] * 7,
    ]  # fmt: skip
    running = [each for each in processes if each["pid"] != "-"]
    assert [(each["npu_id"], each["name"], each["memory"]) for each in running] == [
        ("0", "/".join(POD), used)
    ]
    assert len(processes) == len(cards)


def planned(model: str, cards: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the flags of a node, and its cards."""
    source = ["--vendors=ascend", f"--ascend-model={model}", f"--ascend-cards={cards}"]
    told = run_cli("smi", *source, "-o=json")
    assert told.returncode == 0, told.stderr
    return source, json.loads(told.stdout)


@pytest.mark.parametrize(("model", "cards"), NODES_OF_NPUSTAT)
def test_npustat_of_other_nodes(
    have: Have, ask: Callable[..., Any], model: str, cards: int
) -> None:
    source, wanted = planned(model, cards)
    told = ask(source, "npu-smi-21", have("npustat"), "-m", "npustat", "--json", "--use-npu-smi")
    found = told["atlas_cards"]
    assert [card["type"] for card in found] == [card["model"] for card in wanted]
    assert [[chip["memory_total"] for chip in card["chips"]] for card in found] == [
        [f"{card['memory_total']} MB"] for card in wanted
    ]
    assert len(found) == cards


@pytest.mark.parametrize(("model", "cards"), NODES)
def test_nputop_of_other_nodes(have: Have, ask: Callable[..., Any], model: str, cards: int) -> None:
    source, wanted = planned(model, cards)
    chips, _ = ask(source, "npu-smi", have("nputop"), "-c", NPUTOP)
    assert [(chip["id"], chip["name"], chip["bus_id"]) for chip in chips] == [
        (str(card["index"]), card["name"], card["bus"][4:]) for card in wanted
    ]
    assert len(chips) == cards
