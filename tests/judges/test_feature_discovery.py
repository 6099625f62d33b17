"""NVIDIA's GPU feature discovery writes the labels that we write ourselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.agents import ONLY_NVIDIA, run_cli
from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot
from tests.judges.nodes import NODES

# It looks for the cards' PCI classes in /sys, which is the machine's own.
NOT_OURS = {"nvidia.com/gpu.mode", "nvidia.com/gfd.timestamp"}


def discovered(program: Path, root: DriverRoot, folder: Path, *flags: str) -> dict[str, str]:
    machine, target = folder / "machine", folder / "labels"
    machine.write_text("hami-mock\n")
    root.ask(
        program,
        "--oneshot",
        "--no-timestamp",
        "--use-node-feature-api=false",
        f"--driver-root-ctr-path={root.folder}",
        f"--machine-type-file={machine}",
        f"--output-file={target}",
        *flags,
    )
    return dict(line.split("=", 1) for line in target.read_text().splitlines())


@pytest.mark.parametrize(("model", "cards"), NODES)
def test_writes_our_labels(
    have: Have, root_of: MakeRoot, tmp_path: Path, model: str, cards: int
) -> None:
    program, root = have("gpu-feature-discovery"), root_of(model, cards)
    found = discovered(program, root, tmp_path)
    told = run_cli(
        "plan",
        "-o=json",
        "--labels=gfd",
        "--nvidia-split=1",
        "--nvidia-memory-factor=auto",
        f"--nvidia-model={model}",
        f"--nvidia-cards={cards}",
        *ONLY_NVIDIA,
    )
    ours = json.loads(told.stdout)["labels"]
    assert found.keys() - NOT_OURS == ours.keys() - NOT_OURS
    assert {name: ours[name] for name in found.keys() - NOT_OURS} == {
        name: value for name, value in found.items() if name not in NOT_OURS
    }
    assert found["nvidia.com/gpu.count"] == str(cards)
