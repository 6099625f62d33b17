"""A program from Debian's packages, unpacked into the cache.

Nothing is installed: a package's services, users and scripts aren't wanted here, and who isn't
root can have the program too.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .cache import appearing_whole, cache_folder, exclusive
from .commands import run
from .errors import CommandFailed, RequirementsMissing

_TOOLS = ("apt-get", "dpkg-deb")
_TIMEOUT_S = 600.0
# "Inst NAME (VERSION …": what has an older version in brackets before that is here already.
_NEW = re.compile(r"^Inst (\S+) \(", re.MULTILINE)


def unpacked(package: str, variable: str | None = None, *, with_dependencies: bool = False) -> Path:
    """The folder with the package's files, and with those of the packages that this machine lacks.

    Raises RequirementsMissing when it can't be had; `variable` is where a user may name their own,
    if they may.
    """
    target = cache_folder() / package
    if target.exists():
        return target
    instead = [f"or set {variable} to the program"] if variable else []
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise RequirementsMissing([f"{missing[0]} is missing, which gets {package}", *instead])
    with exclusive(package):
        if not target.exists():  # else another run unpacked it while this one waited for the lock
            try:
                with appearing_whole(target) as scratch:
                    _unpack(package, scratch, with_dependencies)
            except CommandFailed as error:
                raise RequirementsMissing([f"{package} can't be had: {error}", *instead]) from error
    return target


def _unpack(package: str, folder: Path, with_dependencies: bool) -> None:
    downloads = folder.with_name("downloads")
    for made in (folder, downloads):
        made.mkdir()
    try:
        _download(package, downloads, with_dependencies)
    except CommandFailed:
        # Perhaps apt knows no packages yet, or only old ones.
        run(["apt-get", "update", "-qq"], timeout=_TIMEOUT_S)
        _download(package, downloads, with_dependencies)
    for file in downloads.glob("*.deb"):
        run(["dpkg-deb", "-x", file, folder])


def _download(package: str, folder: Path, with_dependencies: bool) -> None:
    names = [package]
    if with_dependencies:
        plan = ["apt-get", "install", "--simulate", "--no-install-recommends", package]
        names = _NEW.findall(run(plan))
    run(["apt-get", "download", "-qq", *names], cwd=folder, timeout=_TIMEOUT_S)
