"""NVIDIA's container toolkit writes a CDI specification of our cards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.judges.conftest import Have, MakeRoot
from tests.judges.nodes import NODES


@pytest.mark.parametrize(("model", "cards"), NODES)
def test_writes_a_specification(
    have: Have, root_of: MakeRoot, tmp_path: Path, model: str, cards: int
) -> None:
    program, root = have("nvidia-ctk"), root_of(model, cards)
    target = tmp_path / "nvidia.yaml"
    root.ask(program, "cdi", "generate", f"--driver-root={root.folder}", f"--output={target}")
    written = yaml.safe_load(target.read_text())
    assert written["kind"] == "nvidia.com/gpu"
    devices = {each["name"]: each["containerEdits"] for each in written["devices"]}
    names = [str(card.index) for card in root.cards] + [card.uuid for card in root.cards]
    assert set(devices) == {*names, "all"}
    mounts = [each["hostPath"] for each in written["containerEdits"]["mounts"]]
    assert any(place.startswith(f"{root.folder}/lib64/libnvidia-ml.so.") for place in mounts)
    if not (root.folder / "dev/nvidia0").exists():
        pytest.skip("nvidia-ctk saw the cards, but this user can't make device nodes for it")
    for card in root.cards:
        for name in (str(card.index), card.uuid):
            assert _nodes(devices[name]) == [f"/dev/nvidia{card.index}"]
    assert len(_nodes(devices["all"])) == cards


@pytest.mark.parametrize(("model", "cards"), NODES)
def test_our_own_specification_names_the_same_devices(
    have: Have, root_of: MakeRoot, tmp_path: Path, model: str, cards: int
) -> None:
    program, root = have("nvidia-ctk"), root_of(model, cards)
    folder = tmp_path / "cdi"
    folder.mkdir()
    os.link(root.folder / "cdi/nvidia.yaml", folder / "nvidia.yaml")
    told = root.ask(program, "--quiet", "cdi", "list", f"--spec-dir={folder}")
    ids = [str(card.index) for card in root.cards] + [card.uuid for card in root.cards]
    assert set(told.split()) == {f"nvidia.com/gpu={name}" for name in (*ids, "all")}


def _nodes(edits: dict[str, Any]) -> list[str]:
    """Return the nodes of cards, by their places in a container."""
    found = [each["path"] for each in edits.get("deviceNodes", ())]
    return [path for path in found if path.startswith("/dev/nvidia") and path[-1].isdigit()]
