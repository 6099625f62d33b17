"""Programs of Debian's packages: unpacked into the cache, neither installed nor kept in the tree.

Other releases, and other parts of them, are asked of the archive that this machine itself uses.
"""

from __future__ import annotations

import platform
from pathlib import Path

from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import CommandFailed, RequirementsMissing
from tests.judges.having import NotServed, given, made_once, need

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# What apt says when an archive lacks something or doesn't answer.
_NOT_THERE = ("Failed to fetch", "Unable to locate", "was not found", "a Release file")


def nvidia_smi(branch: int) -> Path:
    """Return NVIDIA's own program, of a branch of the driver."""
    release = {535: "bookworm", 550: "trixie"}[branch]
    name = f"nvidia-smi-{branch}"
    # An installed one may be of any branch, or ours.
    own = given(name, is_installed_one_good=False)
    return own or _unpacked(name, "nvidia-smi", release, "non-free") / (
        "usr/lib/nvidia/current/nvidia-smi"
    )


def nvtop() -> Path:
    own = given("nvtop")
    if own:
        return own
    program = _unpacked("nvtop", "nvtop", "bookworm", "contrib") / "usr/bin/nvtop"
    try:
        run([program, "--version"])
    except CommandFailed as error:
        raise RequirementsMissing([f"nvtop lacks a library: {error.output}"]) from error
    return program


def _unpacked(name: str, package: str, release: str, component: str) -> Path:
    def unpack(folder: Path) -> None:
        need(name, ("apt-get", "dpkg-deb"))
        deb = _download(folder.parent, name, package, release, component)
        run(["dpkg-deb", "-x", deb, folder])

    return made_once(name, unpack)


def _download(folder: Path, name: str, package: str, release: str, component: str) -> Path:
    """Download a package into a folder, with lists and settings that are in there too."""
    sources = folder / "sources"
    for needed in (sources, folder / "lists/partial", folder / "cache/archives/partial"):
        needed.mkdir(parents=True)
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    line = f"deb {signed}{_archive(name)} {release} {component}\n"
    (sources / "judges.list").write_text(line)
    places = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": sources,
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        # Its own user can't read a folder that is ours alone.
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(f"--option={key}={value}" for key, value in places.items())]
    try:
        run([*apt, "update"], timeout=300)
        run([*apt, "download", f"{package}/{release}"], cwd=folder)
    except CommandFailed as error:
        if not any(words in error.output for words in _NOT_THERE):
            raise
        raise NotServed.by(f"Debian's package {package} of {release}", error) from error
    (deb,) = folder.glob("*.deb")
    return deb


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
