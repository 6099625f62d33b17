"""What a cluster could leave behind on the machine: to be compared before and after."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from . import cgroups

# Where the daemons of a cluster write by default, and where a careless one would.
WATCHED_FOLDERS = (
    "/etc",
    "/etc/cni",
    "/opt",
    "/run",
    "/run/containerd",
    "/run/netns",
    "/usr/libexec",
    "/var/lib",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/etcd",
    "/var/lib/kubelet",
    "/var/log",
    "/var/log/pods",
)


@dataclass(frozen=True)
class Traces:
    """Each field holds what was seen of one kind."""

    namespaces: frozenset[str]
    mounts: frozenset[str]
    interfaces: frozenset[str]
    control_groups: frozenset[str]
    files: frozenset[str]

    @classmethod
    def now(cls) -> Traces:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return cls(
            namespaces=frozenset(_other_namespaces()),
            mounts=frozenset(mounts),
            interfaces=frozenset(entry.name for entry in Path("/sys/class/net").iterdir()),
            control_groups=frozenset(cgroups.existing()),
            files=frozenset(_files()),
        )

    def new_since(self, before: Traces) -> list[str]:
        """What is here now and was not before, one line each."""
        lines = []
        for field in fields(self):
            added = getattr(self, field.name) - getattr(before, field.name)
            lines += [f"{field.name}: {one}" for one in sorted(added)]
        return lines


def _other_namespaces() -> Iterator[str]:
    """The PID and network namespaces that processes are in, and processes that lead into one.

    Not every process there: others may be busy in theirs meanwhile, such as a compiler.
    """
    own = {kind: (Path("/proc/self/ns") / kind).readlink() for kind in ("pid", "net")}
    for entry in Path("/proc").iterdir():
        # A process may end while it is looked at.
        with suppress(OSError):
            if not entry.name.isdecimal():
                continue
            found = {kind: (entry / "ns" / kind).readlink() for kind in own}
            yield from (str(found[kind]) for kind in own if found[kind] != own[kind])
            command = (entry / "comm").read_text().strip()
            if command in ("unshare", "nsenter"):
                yield f"{entry.name} {command}"


def _files() -> Iterator[str]:
    for folder in WATCHED_FOLDERS:
        with suppress(OSError):
            yield from map(str, Path(folder).iterdir())
    for path in Path(tempfile.gettempdir()).glob(f"{cgroups.PREFIX}*"):
        yield str(path)
    for pattern in ("containerd-mount*", "buildah*", "debootstrap*"):
        for path in Path(tempfile.gettempdir()).glob(pattern):
            yield str(path)
