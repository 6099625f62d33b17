"""The kustomizations as they are written, and as kubectl renders them where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from tests.unit.deploy.program import ROOT


def _folders(parent: Path) -> dict[str, Path]:
    return {file.parent.name: file.parent for file in sorted(parent.glob("*/kustomization.yaml"))}


COMPONENTS = _folders(ROOT / "components")
OVERLAYS = _folders(ROOT / "overlays")
FLEET = "nvidia: {cards: 3, model: T4}\nmlu: {cards: 0}\niluvatar: {cards: 0}\nascend: {cards: 0}\n"


def not_with() -> dict[str, frozenset[str]]:
    """Component → those that it doesn't go with, as the README has it."""
    rows = re.findall(
        r"^\| \[([a-z-]+)\]\(\1\) \| .+ \|(?: (.+))? \|$",
        (ROOT / "components" / "README.md").read_text(),
        re.MULTILINE,
    )
    return {name: frozenset(told.split(", ") if told else ()) for name, told in rows}


def sensible_combinations(most: int = 3) -> list[tuple[str, ...]]:
    """Each component alone, and all that go together, up to so many at a time."""
    apart = not_with()
    return [
        names
        for size in range(1, most + 1)
        for names in combinations(COMPONENTS, size)
        if not any(one in apart[other] for one, other in combinations(names, 2))
    ]


def write_combination(folder: Path, names: Iterable[str]) -> Path:
    """Write what a person would who wants these components; return its folder."""
    made: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        # Kustomize takes no absolute paths.
        "resources": [os.path.relpath(ROOT / "manifests", folder)],
        "components": [os.path.relpath(COMPONENTS[name], folder) for name in names],
    }
    if "fleet" in names:
        (folder / "fleet.yaml").write_text(FLEET)
        file = {"name": "hami-mock-fleet", "namespace": "kube-system", "files": ["fleet.yaml"]}
        made["configMapGenerator"] = [file]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(made))
    return folder


def read(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return told


def patches(folder: Path) -> Iterator[dict[str, Any]]:
    """The patches of a kustomization and of all that it is made of, the last to win last."""
    told = read(folder)
    for part in (*told.get("resources", ()), *told.get("components", ())):
        if (folder / part).is_dir():
            yield from patches(folder / part)
    for patch in told.get("patches", ()):
        yield yaml.safe_load((folder / patch["path"]).read_text())


def variables(folder: Path) -> dict[str, str]:
    """The variables of the agent's that its patches set."""
    return {
        entry["name"]: entry["value"]
        for patch in patches(folder)
        for container in patch["spec"]["template"]["spec"].get("containers", ())
        for entry in container["env"]
    }


def renderer() -> list[str] | None:
    """The command that renders a kustomization, where this machine has one."""
    for command in (["kustomize", "build"], ["kubectl", "kustomize"]):
        if shutil.which(command[0]):
            return command
    return None


def rendered(command: list[str], folder: Path) -> list[dict[str, Any]]:
    argv = [*command, str(folder)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return [document for document in yaml.safe_load_all(ran.stdout) if document]
