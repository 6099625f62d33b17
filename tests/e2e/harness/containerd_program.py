"""A containerd that reads CDI specs: the cached one, or compiled once into the cache.

Debian's is older than CDI. It stays the one for all other cases, since that is what people have
who have an old runtime, and nothing needs to be compiled for it.
"""

from __future__ import annotations

from pathlib import Path

from .go_install import GoProgram
from .progress import Progress

PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr")
CONTAINERD = GoProgram(
    "containerd",
    "github.com/containerd/containerd/v2",
    "v2.4.2",
    tuple(f"cmd/{program}" for program in PROGRAMS),
)


def containerd_with_cdi(progress: Progress | None = None) -> Path:
    """The folder with containerd, its shim and ctr.

    Raises RequirementsMissing when they can't be had.
    """
    return CONTAINERD.folder(progress)
