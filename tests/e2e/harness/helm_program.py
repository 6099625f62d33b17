"""Helm: the user's own, the cached one, or compiled once into the cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .cache import appearing_whole, cache_folder, exclusive
from .commands import GO_FLAGS, GO_SETTINGS, run
from .errors import CommandFailed, RequirementsMissing
from .named_program import named_program
from .progress import Progress

PROGRAM_VARIABLE = "E2E_HELM"
VERSION = "v4.3.1"
PACKAGE = f"helm.sh/helm/v4/cmd/helm@{VERSION}"
COMPILE_TIMEOUT_S = 1800.0


def helm(progress: Progress | None = None) -> Path:
    """The program: what $E2E_HELM names, or our own.

    Raises RequirementsMissing when it can't be had, and HarnessError when the variable names
    something else: who has set it wants it used.
    """
    if given := named_program(PROGRAM_VARIABLE):
        return given
    target = cache_folder() / "helm" / VERSION
    program = target / "helm"
    if program.exists():
        return program
    if shutil.which("go") is None:
        raise RequirementsMissing(["go is missing, which helm is compiled with", _or_name_one()])
    with exclusive(f"helm-{VERSION}"):
        if not program.exists():  # else another run compiled it while this one waited for the lock
            with appearing_whole(target) as scratch:
                scratch.mkdir()
                with (progress or Progress()).step(f"compile helm {VERSION} (once, takes minutes)"):
                    _compile(scratch)
    return program


def _compile(folder: Path) -> None:
    own = {"CGO_ENABLED": "0", "GOBIN": str(folder), "GOTMPDIR": str(folder.parent), **GO_SETTINGS}
    try:
        run(
            ["nice", "-n", "10", "go", "install", *GO_FLAGS, "-ldflags=-s -w", PACKAGE],
            env={**os.environ, **own},
            cwd=folder,
            timeout=COMPILE_TIMEOUT_S,
        )
    except CommandFailed as error:
        raise RequirementsMissing([f"helm can't be compiled: {error}", _or_name_one()]) from error


def _or_name_one() -> str:
    return f"or set {PROGRAM_VARIABLE} to the program (helm 3 or 4)"
