"""The control groups of one cluster: under a name of its own, so that they can all be removed.

Namespaces take processes, mounts and interfaces with them when they end; control groups stay.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

PREFIX = "hami-mock-e2e-"
# The first process of a sandbox sits in this child group: while it has a member, it lives.
LIVENESS_CHILD = "init"
REMOVE_TIMEOUT_S = 10.0


def hierarchies() -> list[Path]:
    """Where control groups are mounted: one folder with v2, one for each controller with v1."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split(" ")
        if kind in ("cgroup", "cgroup2"):
            found.append(Path(place))
    return found


def create_and_join(name: str) -> None:
    """Make the group `name` in every hierarchy, and put this process into its liveness child."""
    joined = False
    for root in hierarchies():
        group = root / name
        for parent in (root, group):
            group.mkdir(exist_ok=True)
            _delegate_controllers(parent)
        child = group / LIVENESS_CHILD
        child.mkdir(exist_ok=True)
        # A v1 cpuset group without cpus takes no process; one hierarchy that does is enough.
        with suppress(OSError):
            (child / "cgroup.procs").write_text(str(os.getpid()))
            joined = True
    if not joined:
        raise OSError(f"could not join the control group {name} in any hierarchy")


def leave(name: str) -> None:
    """Move this process out of the group, so that the group can be removed."""
    for root in hierarchies():
        child = root / name / LIVENESS_CHILD / "cgroup.procs"
        if child.exists() and str(os.getpid()) in child.read_text().split():
            (root / "cgroup.procs").write_text(str(os.getpid()))


def remove(name: str) -> None:
    """Remove the group `name` everywhere; its last members may take a moment to be gone."""
    deadline = time.monotonic() + REMOVE_TIMEOUT_S
    for root in hierarchies():
        while (root / name).exists():
            try:
                _remove_tree(root / name)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def remove_abandoned() -> list[str]:
    """Remove the groups of sandboxes whose first process is gone; return their names."""
    names = existing()
    dead = sorted(name for name in names if not _alive(name))
    for name in dead:
        remove(name)
    return dead


def existing() -> set[str]:
    return {group.name for root in hierarchies() for group in root.glob(f"{PREFIX}*")}


def _alive(name: str) -> bool:
    for root in hierarchies():
        with suppress(OSError):
            if (root / name / LIVENESS_CHILD / "cgroup.procs").read_text().strip():
                return True
    return False


def _delegate_controllers(group: Path) -> None:
    """With v2 a child group has only the controllers that its parent hands down."""
    available = group / "cgroup.controllers"
    if not available.exists():
        return
    for controller in available.read_text().split():
        with suppress(OSError):  # one that can't be handed down is missed by the kubelet, aloud
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


def _remove_tree(group: Path) -> None:
    for child in group.iterdir():
        if child.is_dir():
            _remove_tree(child)
    group.rmdir()
