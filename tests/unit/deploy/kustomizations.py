"""The kustomizations as they are written, and as kubectl renders them where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from tests.unit.deploy.program import ROOT


def _folders(parent: Path) -> dict[str, Path]:
    return {file.parent.name: file.parent for file in sorted(parent.glob("*/kustomization.yaml"))}


COMPONENTS = _folders(ROOT / "components")
OVERLAYS = _folders(ROOT / "overlays")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C, where PyYAML has it: an eighth of the time."""
_MARK = "combination"
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


def fullest_combinations() -> list[tuple[str, ...]]:
    """Those to which no other component could be added."""
    every = {frozenset(names) for names in sensible_combinations(len(COMPONENTS))}
    return sorted(tuple(sorted(one)) for one in every if not any(one < other for other in every))


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
    told: dict[str, Any] = next(_documents((folder / "kustomization.yaml").read_text()))
    return told


def patches(folder: Path) -> Iterator[dict[str, Any]]:
    """The patches of a kustomization and of all that it is made of, the last to win last."""
    told = read(folder)
    for part in (*told.get("resources", ()), *told.get("components", ())):
        if (folder / part).is_dir():
            yield from patches(folder / part)
    for patch in told.get("patches", ()):
        yield next(_documents((folder / patch["path"]).read_text()))


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
    return [document for document in _documents(_render(command, folder)) if document]


def rendered_at_once(
    command: list[str], folder: Path, combinations: Sequence[tuple[str, ...]]
) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Render combinations by one process: to start it takes ten times as long as to render one.

    Each is written as a person would. So that their objects aren't taken for the same, one more
    kustomization around each puts a mark before the names; here it is taken off again.
    """
    for number, names in enumerate(combinations):
        own = folder / "+".join(names)
        own.mkdir()
        write_combination(own, names)
        marked = folder / f"{_MARK}-{number}"
        marked.mkdir()
        around = {"resources": [f"../{own.name}"], "namePrefix": f"{_MARK}-{number}-"}
        (marked / "kustomization.yaml").write_text(yaml.safe_dump(around))
    every = [f"{_MARK}-{number}" for number in range(len(combinations))]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": every}))
    found: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for text in _render(command, folder).split("\n---\n"):
        # Just one: nothing refers to an object of another combination.
        (number,) = map(int, set(re.findall(rf"\b{_MARK}-(\d+)-", text)))
        found[combinations[number]] += _documents(text.replace(f"{_MARK}-{number}-", ""))
    return found


def _render(command: list[str], folder: Path) -> str:
    argv = [*command, str(folder)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _documents(text: str) -> Iterator[Any]:
    return yaml.load_all(text, Loader=_LOADER)
