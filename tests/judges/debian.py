"""Programs of Debian's packages: unpacked into the cache, neither installed nor kept in the tree.

Other releases, and other parts of them, are asked of the archive that this machine itself uses.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import CommandFailed, RequirementsMissing
from tests.judges.having import NotServed, given, made_once, need

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# What apt says when an archive lacks something or doesn't answer.
_NOT_THERE = ("Failed to fetch", "Unable to locate", "was not found", "a Release file")


class Packages(NamedTuple):
    """Some packages of a release, for this machine or another."""

    names: Sequence[str]
    release: str
    component: str = "main"
    architecture: str | None = None


_QEMU = Packages(["qemu-user-static"], "bookworm")
# Python with all that ctypes needs, and another C library beside its own.
_ARM64 = Packages(
    [
        "python3.11-minimal",
        "libpython3.11-minimal",
        "libpython3.11-stdlib",
        "libc6",
        "libffi8",
        "zlib1g",
        "libexpat1",
        "musl",
    ],
    "bookworm",
    architecture="arm64",
)
_SCRIPTS = {
    "run": 'exec "$here/qemu/usr/bin/qemu-aarch64-static" -L "$here/root" "$@"',
    "python": 'PYTHONHOME="$here/root/usr" exec "$here/run" "$here/root/usr/bin/python3.11" "$@"',
}


def nvidia_smi(branch: int) -> Path:
    """Return NVIDIA's own program, of a branch of the driver."""
    release = {535: "bookworm", 550: "trixie"}[branch]
    name = f"nvidia-smi-{branch}"
    # An installed one may be of any branch, or ours.
    own = given(name, is_installed_one_good=False)
    return own or _unpacked(name, Packages(["nvidia-smi"], release, "non-free")) / (
        "usr/lib/nvidia/current/nvidia-smi"
    )


def nvtop() -> Path:
    own = given("nvtop")
    if own:
        return own
    program = _unpacked("nvtop", Packages(["nvtop"], "bookworm", "contrib")) / "usr/bin/nvtop"
    try:
        run([program, "--version"])
    except CommandFailed as error:
        raise RequirementsMissing([f"nvtop lacks a library: {error.output}"]) from error
    return program


def qemu_aarch64() -> Path:
    """Return a Python of arm64; `run` beside it runs other programs of arm64, in the same root."""

    def unpack(folder: Path) -> None:
        for part, packages in (("qemu", _QEMU), ("root", _ARM64)):
            _unpack(name, packages, folder.parent / part, folder / part)
        for program in (folder / "qemu/usr/bin").iterdir():
            if program.name != "qemu-aarch64-static":
                program.unlink()  # those of thirty other machines, of 10 MB each
        for script, line in _SCRIPTS.items():
            path = folder / script
            path.write_text(f'#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\n{line}\n')
            path.chmod(0o755)

    name = "qemu-aarch64"
    # An installed qemu alone has no Python of arm64.
    return given(name, is_installed_one_good=False) or made_once(name, unpack) / "python"


def _unpacked(name: str, packages: Packages) -> Path:
    return made_once(name, lambda folder: _unpack(name, packages, folder.parent / "apt", folder))


def _unpack(name: str, packages: Packages, scratch: Path, target: Path) -> None:
    need(name, ("apt-get", "dpkg-deb"))
    for deb in _download(scratch, name, packages):
        run(["dpkg-deb", "-x", deb, target])


def _download(folder: Path, name: str, packages: Packages) -> Sequence[Path]:
    """Download packages into a new folder, with lists and settings that are in there too."""
    sources = folder / "sources"
    for needed in (sources, folder / "lists/partial", folder / "cache/archives/partial"):
        needed.mkdir(parents=True)
    architecture = packages.architecture or run(["dpkg", "--print-architecture"]).strip()
    signed = f" signed-by={_KEYRING}" if _KEYRING.exists() else ""
    origin = f"{_archive(name)} {packages.release} {packages.component}"
    (sources / "judges.list").write_text(f"deb [arch={architecture}{signed}] {origin}\n")
    places = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": sources,
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "APT::Architecture": architecture,
        "APT::Architectures::": architecture,
        # Its own user can't read a folder that is ours alone.
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(f"--option={key}={value}" for key, value in places.items())]
    try:
        run([*apt, "update"], timeout=300)
        wanted = (f"{each}/{packages.release}" for each in packages.names)
        run([*apt, "download", *wanted], cwd=folder, timeout=300)
    except CommandFailed as error:
        if not any(words in error.output for words in _NOT_THERE):
            raise
        told = f"Debian's package {' or '.join(packages.names)} of {packages.release}"
        raise NotServed.by(told, error) from error
    return sorted(folder.glob("*.deb"))


def _archive(name: str) -> str:
    """Return the archive that this machine gets its own release from."""
    release = platform.freedesktop_os_release()
    if release["ID"] != "debian":
        raise RequirementsMissing([f"{name} comes from Debian, and this is {release['ID']}"])
    told = run(["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)"])
    for line in told.splitlines():
        named, _, archive = line.partition(" ")
        if named == release["VERSION_CODENAME"]:
            return archive
    raise RequirementsMissing([f"{name} needs apt sources of {release['VERSION_CODENAME']}"])
