"""The program of HAMi's scheduler: the user's own, the cached one, or compiled once into the cache.

Unlike Kubernetes' programs it needs cgo. And not every module proxy serves its module.
"""

from __future__ import annotations

import json
import os
import shutil
from functools import cache
from pathlib import Path

from .cache import appearing_whole, cache_folder, exclusive
from .commands import GO_FLAGS, GO_SETTINGS, run
from .errors import CommandFailed, RequirementsMissing
from .named_program import named_program
from .progress import Progress

PROGRAM_VARIABLE = "E2E_HAMI_SCHEDULER"
MODULE = "github.com/Project-HAMi/HAMi"
# The tag v2.10.0. The module's path lacks the /v2 that Go wants for such a tag, so by its commit.
COMMIT = "4707fb02c91c545bc7343ce26dba4c32919f9a3e"
DOWNLOAD_TIMEOUT_S = 600.0
COMPILE_TIMEOUT_S = 1800.0


def hami_scheduler(progress: Progress | None = None) -> Path:
    """The program: what $E2E_HAMI_SCHEDULER names, or our own of HAMi 2.10.0.

    Raises RequirementsMissing when it can't be had, and HarnessError when the variable names
    something else: who has set it wants it used.
    """
    return named_program(PROGRAM_VARIABLE) or _compiled(progress or Progress())


def _compiled(progress: Progress) -> Path:
    target = cache_folder() / "hami" / COMMIT
    program = target / "scheduler"
    if program.exists():
        return program
    missing = [
        f"{tool} is missing, which HAMi's scheduler is compiled with"
        for tool in ("go", "gcc")
        if shutil.which(tool) is None
    ]
    if missing:
        raise RequirementsMissing([*missing, _or_name_one()])
    version, go = _module_version()
    with exclusive(f"hami-{COMMIT}"):
        if program.exists():  # another run compiled it while this one waited for the lock
            return program
        with appearing_whole(target) as scratch:
            scratch.mkdir()
            module = scratch.parent / "module"
            module.mkdir()
            text = f"module hami.invalid/e2e\ngo {go}\nrequire {MODULE} {version}\n"
            (module / "go.mod").write_text(text)
            with progress.step("compile HAMi's scheduler (once, takes minutes)"):
                run(
                    ["nice", "-n", "10", "go", "build", "-mod=mod", *GO_FLAGS, "-ldflags=-s -w",
                     "-o", scratch / "scheduler", f"{MODULE}/cmd/scheduler"],
                    env={**os.environ, "CGO_ENABLED": "1", **GO_SETTINGS},
                    cwd=module,
                    timeout=COMPILE_TIMEOUT_S,
                )  # fmt: skip
    return program


@cache
def _module_version() -> tuple[str, str]:
    """What Go calls the module's version, and the Go that it is written for."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        told = json.loads(
            run(
                ["go", "mod", "download", "-json", f"{MODULE}@{COMMIT}"],
                cwd=folder,
                timeout=DOWNLOAD_TIMEOUT_S,
            )
        )
    except CommandFailed as error:
        raise RequirementsMissing(
            [f"Go's module proxy doesn't give {MODULE} ({_last_line(str(error))})", _or_name_one()]
        ) from error
    upstream = json.loads(run(["go", "mod", "edit", "-json", told["GoMod"]], cwd=folder))
    return told["Version"], upstream["Go"]


def _or_name_one() -> str:
    return f"or set {PROGRAM_VARIABLE} to the program (cmd/scheduler of HAMi 2.10, with cgo)"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" }\t")]
    return lines[-1] if lines else "no reason given"
