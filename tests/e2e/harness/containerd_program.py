"""A containerd that reads CDI specs: the cached one, or compiled once into the cache.

Debian's is older than CDI. It stays the one for all other cases, since that is what people have
who have an old runtime, and nothing needs to be compiled for it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .cache import appearing_whole, cache_folder, exclusive
from .commands import GO_FLAGS, GO_SETTINGS, run
from .errors import CommandFailed, RequirementsMissing
from .progress import Progress

VERSION = "v2.4.2"
MODULE = "github.com/containerd/containerd/v2"
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr")
COMPILE_TIMEOUT_S = 1800.0


def containerd_with_cdi(progress: Progress | None = None) -> Path:
    """The folder with containerd, its shim and ctr.

    Raises RequirementsMissing when they can't be had.
    """
    target = cache_folder() / "containerd" / VERSION
    if target.exists():
        return target
    if shutil.which("go") is None:
        raise RequirementsMissing([f"go is missing, which containerd {VERSION} is compiled with"])
    with exclusive(f"containerd-{VERSION}"):
        if not target.exists():  # else another run compiled it while this one waited for the lock
            with appearing_whole(target) as scratch:
                scratch.mkdir()
                label = f"compile containerd {VERSION} (once, takes minutes)"
                with (progress or Progress()).step(label):
                    _compile(scratch)
    return target


def _compile(folder: Path) -> None:
    own = {"CGO_ENABLED": "0", "GOBIN": str(folder), "GOTMPDIR": str(folder.parent), **GO_SETTINGS}
    packages = [f"{MODULE}/cmd/{program}@{VERSION}" for program in PROGRAMS]
    try:
        run(
            ["nice", "-n", "10", "go", "install", *GO_FLAGS, "-ldflags=-s -w", *packages],
            env={**os.environ, **own},
            cwd=folder,
            timeout=COMPILE_TIMEOUT_S,
        )
    except CommandFailed as error:
        raise RequirementsMissing([f"containerd {VERSION} can't be compiled: {error}"]) from error
