"""Programs that know only fixed places of the machine, in a mount namespace with others there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import CommandFailed, RequirementsMissing

# Folders are laid over others; the parent of one that isn't there becomes an empty one first.
_SCRIPT = """
set -e
while [ "$1" != -- ]; do
    if [ ! -d "$2" ]; then
        mount -t tmpfs none "$3"
        mkdir -p "$2"
    fi
    mount --bind "$1" "$2"
    shift 3
done
shift
exec "$@"
"""


def with_folders(folders: Mapping[str, Path], *argv: str | Path) -> list[str]:
    """Return the command that runs `argv` with these folders at those places.

    It is one process, whose ID is that of `argv`. Nothing of it is seen outside.
    """
    words = []
    for place, folder in folders.items():
        words += [str(folder), place, str(_existing(Path(place).parent))]
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", "--mount", *own, "sh", "-c", _SCRIPT, "sh", *words, "--"]
    return [*command, *map(str, argv)]


def need_namespaces() -> None:
    """Raise RequirementsMissing unless this user may have one."""
    try:
        run(with_folders({}, "true"))
    except (CommandFailed, FileNotFoundError) as error:
        raise RequirementsMissing(["this needs a mount namespace: run it as root"]) from error


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    return folder if folder.is_dir() else _existing(folder.parent)
