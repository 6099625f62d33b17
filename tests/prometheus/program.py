"""Prometheus: the user's own, the cached one, or unpacked once from Debian's package.

Nothing is installed: the package's service and user aren't wanted here.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e.harness.cache import appearing_whole, cache_folder, exclusive
from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import CommandFailed, RequirementsMissing
from tests.e2e.harness.named_program import named_program

PROGRAM_VARIABLE = "PROMETHEUS"
_TOOLS = ("apt-get", "dpkg-deb")


def prometheus() -> Path:
    """The program; promtool lies beside it.

    Raises RequirementsMissing when it can't be had, and HarnessError when the variable names
    something else: who has set it wants it used.
    """
    if given := named_program(PROGRAM_VARIABLE):
        return given
    installed = shutil.which("prometheus")
    if installed:
        return Path(installed)
    target = cache_folder() / "prometheus"
    program = target / "usr" / "bin" / "prometheus"
    if program.exists():
        return program
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise RequirementsMissing(
            [f"{missing[0]} is missing, which gets Prometheus", _or_name_one()]
        )
    with exclusive("prometheus"):
        if not program.exists():  # else another run unpacked it while this one waited for the lock
            with appearing_whole(target) as scratch:
                scratch.mkdir()
                _unpack(scratch)
    return program


def _unpack(folder: Path) -> None:
    package = folder / "package"
    package.mkdir()
    download = ["apt-get", "download", "-qq", "prometheus"]
    try:
        try:
            run(download, cwd=package)
        except CommandFailed:
            # Perhaps apt knows no packages yet.
            run(["apt-get", "update", "-qq"], timeout=300)
            run(download, cwd=package)
        (file,) = package.glob("*.deb")
        run(["dpkg-deb", "-x", file, folder])
    except CommandFailed as error:
        raise RequirementsMissing([f"Prometheus can't be had: {error}", _or_name_one()]) from error
    shutil.rmtree(package)


def _or_name_one() -> str:
    return f"or set {PROGRAM_VARIABLE} to the program"
