"""KWOK, which keeps thousands of nodes and pods alive, and Kueue, a client of such a cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .commands import run
from .go_install import GoProgram
from .progress import Progress

KWOK = GoProgram(
    "kwok",
    "sigs.k8s.io/kwok",
    "v0.8.0",
    ("cmd/kwok",),
    link="-X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0",
)
KUEUE_MODULE = "sigs.k8s.io/kueue"
KUEUE = GoProgram("kueue", KUEUE_MODULE, "v0.14.0", ("cmd/kueue",))
CRDS = "crd"


def kwok(progress: Progress | None = None) -> Path:
    """The program. Raises RequirementsMissing when it can't be had."""
    return KWOK.folder(progress) / "kwok"


def kueue(progress: Progress | None = None) -> Path:
    """The folder with the program `kueue`, and in `crd` what the API server must know first.

    Raises RequirementsMissing when it can't be had.
    """
    return KUEUE.folder(progress, _copy_crds)


def _copy_crds(folder: Path) -> None:
    words = ["go", "mod", "download", "-json", f"{KUEUE_MODULE}@{KUEUE.version}"]
    module = Path(json.loads(run(words, cwd=folder))["Dir"])
    # Go's own copy may not be written to, which would stay so.
    shutil.copytree(
        module / "config/components/crd/bases", folder / CRDS, copy_function=shutil.copyfile
    )
    (folder / CRDS).chmod(0o755)
