"""Programs for musl, the C library of Alpine, by Debian's packages of it and this machine's gcc."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

from .commands import run
from .debian_package import unpacked
from .errors import RequirementsMissing

_MACHINE = platform.machine()
LOADER = f"lib/ld-musl-{_MACHINE}.so.1"
"""Where programs look for it: loader and library are one file."""


def musl_loader() -> Path:
    """Return the file that belongs there. Raises RequirementsMissing when it can't be had."""
    return unpacked("musl") / f"lib/{_MACHINE}-linux-musl/libc.so"


def compile_for_musl(source: Path, target: Path) -> None:
    """Compile a program that loads its libraries as those of Alpine do.

    Raises RequirementsMissing when that can't be done here.
    """
    gcc = shutil.which("gcc")
    if gcc is None:
        raise RequirementsMissing(["gcc is missing, which compiles for musl: apt-get install gcc"])
    package = unpacked("musl-dev")
    headers = package / f"usr/include/{_MACHINE}-linux-musl"
    parts = package / f"usr/lib/{_MACHINE}-linux-musl"
    run(
        [gcc, "-nostdinc", "-isystem", headers, "-nostdlib", "-no-pie", "-fno-stack-protector",
         f"-Wl,--dynamic-linker=/{LOADER}", "-o", target,
         parts / "crt1.o", parts / "crti.o", source, f"-L{musl_loader().parent}", "-lc",
         parts / "crtn.o"]
    )  # fmt: skip
