"""The DRA driver on a release with its own feature gates, where some that it needs are off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .harness import dra_gates
from .mock import NAMESPACE, TIMEOUT_S, Mock
from .test_dra import (
    HAMI,
    MODEL,
    NO_DEVICE,
    deployed,
    devices,
    request,
    start,
    template,
    wait_for_all,
    wait_for_held,
)

SHARING, TAINTS, EXTENDED = "DRAConsumableCapacity", "DRADeviceTaints", "DRAExtendedResource"
KINDS = "nodes,pods,resourceslices,resourceclaims,resourceclaimtemplates,deviceclasses"


def gates_off(mock: Mock) -> list[str]:
    driver: dict[str, Any] = json.loads(mock.ctl("status", "-o", "json"))["views"]["dra"][HAMI]
    off: list[str] = driver["gates_off"]
    return off


def log_errors(mock: Mock) -> list[str]:
    """The lines of the agent's log that name a gate."""
    name = mock.agent_pod()["metadata"]["name"]
    log = mock.cluster.kubectl("logs", name, f"--namespace={NAMESPACE}")
    return [line for line in log.splitlines() if "dropped what needs the feature gate" in line]


def test_gates_that_are_off_are_named_and_whole_cards_are_given(mock: Mock, tmp_path: Path) -> None:
    if not dra_gates(mock.machine.version):
        pytest.skip("this release has all gates on by itself")
    with deployed(mock, tmp_path, MODEL) as node:
        node.cluster.wait("the gate", lambda: gates_off(node), bool, timeout=TIMEOUT_S)
        assert gates_off(node) == [SHARING]
        (line,) = log_errors(node)
        assert "ERROR" in line
        assert f"the feature gate {SHARING}: claims get whole cards, not parts of them" in line
        assert SHARING in json.loads(node.agent_says("/readyz"))["notices"]["dra"]
        assert not any(each.get("allowMultipleAllocations") for each in devices(node).values())

        node.cluster.apply(template("part", request(HAMI, memory="30Gi", cores="30")))
        start(node, "a", "b", template="part")
        wait_for_all(node, "a", "b")
        start(node, "third", template="part")
        node.wait_for_scheduling_message("third", NO_DEVICE)
        found = wait_for_held(node, "a", "b")
        assert {card for card, *_ in found.values()} == {"nvidia/0", "nvidia/1"}
        assert [(memory, cores) for _, memory, cores in found.values()] == [(81920, 100)] * 2

        # A taint would be dropped too, so a card that isn't healthy isn't there.
        card, *_ = found["a"]
        node.ctl("fail", card, "--xid", "79")
        healthy = {"hami-gpu-0", "hami-gpu-1"} - {f"hami-gpu-{card[-1]}"}
        node.cluster.wait(
            "the slices without the card", lambda: {*devices(node)}, lambda told: told == healthy,
            timeout=TIMEOUT_S,
        )  # fmt: skip
        assert gates_off(node) == [SHARING, TAINTS]
        assert any(TAINTS in line for line in log_errors(node))

        # Nobody but who applied the classes can tell that one of them lost a line.
        ran = subprocess.run(
            [sys.executable, "-m", "hami_mock", "doctor", "-f", "-", "-o", "json"],
            input=json.dumps(node.cluster.get(KINDS)),
            text=True, capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        told = [each["what"] for each in json.loads(ran.stdout) if each["where"] == HAMI]
        assert any(text.startswith(f"the feature gate {SHARING} is off ") for text in told)
        assert any(
            text.startswith(f"the feature gate {EXTENDED} is off (DeviceClass {HAMI} came without")
            for text in told
        )
