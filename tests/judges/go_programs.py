"""NVIDIA's own Go programs, compiled once from their modules; and one of ours on go-nvml."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.harness.cache import cache_folder
from tests.e2e.harness.commands import GO_FLAGS, GO_SETTINGS, run
from tests.e2e.harness.errors import CommandFailed
from tests.judges.having import NotServed, given, made_once, mark_of, need

GO_NVML = "go-nvml"
_PROJECT = Path(__file__).parent / "go"
_FILES = ("go.mod", "go.sum", "main.go")
_DOWNLOAD_TIMEOUT = 600.0
_COMPILE_TIMEOUT = 1800.0


@dataclass(frozen=True)
class Module:
    path: str
    version: str
    programs: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.path.rpartition('/')[2]}-{self.version}"


TOOLKIT = Module("github.com/NVIDIA/nvidia-container-toolkit", "v1.20.1", ("nvidia-ctk",))
PLUGIN = Module(
    "github.com/NVIDIA/k8s-device-plugin",
    "v0.19.3",
    ("nvidia-device-plugin", "gpu-feature-discovery"),
)


def go_program(module: Module, name: str) -> Path:
    """Return a program of a module.

    Raises RequirementsMissing when it can't be had, and HarnessError when it doesn't compile.
    """
    return given(name) or _compiled(module, name) / name


def go_nvml() -> Path:
    """Return our program on go-nvml; another one for other sources. Raises as `go_program`."""
    own = given(GO_NVML, is_installed_one_good=False)
    mark = mark_of(_PROJECT / name for name in _FILES)
    return own or made_once(f"{GO_NVML}-{mark}", _compile_own) / GO_NVML


def _compile_own(folder: Path) -> None:
    _find_go()
    need(GO_NVML, ("go", "gcc"))
    try:
        run(["go", "mod", "download"], cwd=_PROJECT, timeout=_DOWNLOAD_TIMEOUT)
    except CommandFailed as error:
        raise NotServed.by("the Go module of go-nvml", error) from error
    _build(_PROJECT, folder / GO_NVML, ".")


def _compiled(module: Module, name: str) -> Path:
    def compile_it(folder: Path) -> None:
        _find_go()
        need(name, ("go", "gcc"))
        # The programs of a module are compiled where its own go.sum says what belongs to them:
        # in the module itself. Go's cache of modules is read-only.
        sources = folder.parent / "sources"
        shutil.copytree(_downloaded(module), sources)
        for place in (sources, *sources.rglob("*")):
            place.chmod(place.stat().st_mode | 0o200)
        _build(sources, f"{folder}/", *(f"./cmd/{program}" for program in module.programs))

    return made_once(module.name, compile_it)


def _build(sources: Path, target: Path | str, *packages: str) -> None:
    go = ["nice", "-n", "10", "go", "build", *GO_FLAGS, "-ldflags=-s -w"]
    run(
        [*go, "-o", target, *packages],
        env={**os.environ, "CGO_ENABLED": "1", **GO_SETTINGS},
        cwd=sources,
        timeout=_COMPILE_TIMEOUT,
    )


def _find_go() -> None:
    """Use the Go that the end-to-end tests got for themselves, where the machine has none."""
    own = cache_folder() / "go" / "go" / "bin"
    if shutil.which("go") is None and own.is_dir():
        os.environ["PATH"] += f":{own}"


def _downloaded(module: Module) -> Path:
    """Return the module's folder in Go's own cache."""
    try:
        told = run(
            ["go", "mod", "download", "-json", f"{module.path}@{module.version}"],
            cwd=cache_folder(),
            timeout=_DOWNLOAD_TIMEOUT,
        )
    except CommandFailed as error:
        raise NotServed.by(f"the Go module {module.path} {module.version}", error) from error
    return Path(json.loads(told)["Dir"])
