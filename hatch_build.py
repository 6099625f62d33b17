"""Compile native/ into the package, when a wheel is built or hami-mock is installed from source.

Without a C compiler the wheel is a pure one: all works but the driver, which says what it lacks.
`python hatch_build.py` does the same for every machine that it can, and is strict.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
PACKAGE = Path("src/hami_mock/_native")
LIBRARY = "libnvidia-ml.so.1"
PLACEHOLDER = "libplaceholder.so"
"""Stands in for all other libraries of the driver, under their names."""
PROGRAM = "nvidia-smi"
MACHINES = ("x86_64", "aarch64")

# They need nothing of the machine but its kernel, so that they run with any C library, or none.
FLAGS = (
    "-std=gnu11", "-ffreestanding", "-nostdlib", "-fvisibility=hidden",
    "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-Wall", "-Wextra", "-Werror", "-s",
)  # fmt: skip
LIBRARY_FLAGS = ("-O2", "-fPIC", "-shared", "-Wl,-z,defs", "-Wl,--hash-style=both")
PROGRAM_FLAGS = (
    "-Os", "-static", "-fno-pie", "-no-pie", "-ffunction-sections", "-fdata-sections",
    "-Wl,--gc-sections",
)  # fmt: skip


def own_compiler() -> list[str] | None:
    """Return the command of this machine's compiler: $CC, or the first one there is."""
    if named := os.environ.get("CC"):
        return named.split()
    return next(([path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)


def compiler(machine: str) -> list[str] | None:
    """Return the command that compiles for a machine, maybe another than this."""
    if machine == platform.machine():
        return own_compiler()
    if cross := shutil.which(f"{machine}-linux-gnu-gcc"):
        return [cross]
    try:
        import ziglang  # noqa: F401
    except ImportError:
        return None
    return [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-musl"]


def place(machine: str) -> Path:
    """Return where the package has the library for a machine."""
    return ROOT / PACKAGE / machine / LIBRARY


def build(command: list[str], target: Path) -> None:
    """Compile the library, and beside it the placeholder and the program, which has it in it.

    Raises CalledProcessError if the compiler fails; it says why.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    native = ROOT / "native"
    library, program = [*command, *FLAGS, *LIBRARY_FLAGS], [*command, *FLAGS, *PROGRAM_FLAGS]
    compile_folders([*library, f"-Wl,-soname,{LIBRARY}"], [native], target)
    compile_folders(library, [native / "placeholder"], target.with_name(PLACEHOLDER))
    compile_folders(program, [native, native / "smi"], target.with_name(PROGRAM))


def compile_folders(command: list[str], folders: list[Path], target: Path) -> None:
    """Make one file of all that is in some folders."""
    fresh = target.with_suffix(".new")
    sources = [str(path) for folder in folders for path in sorted(folder.glob("*.c"))]
    subprocess.run([*command, "-o", str(fresh), *sources], check=True)  # noqa: S603
    fresh.replace(target)


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """What hatchling calls before it packs a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say that the wheel is for this kind of machine."""
        machine = platform.machine()
        command = own_compiler()
        if sys.platform != "linux" or machine not in MACHINES:
            return
        if command:
            build(command, place(machine))
        elif not place(machine).exists():
            self.app.display_warning("no C compiler: this wheel will have no driver")
            return
        if version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-manylinux2014_{machine}.musllinux_1_1_{machine}"


def main() -> None:
    """Compile for all machines."""
    for machine in MACHINES:
        command = compiler(machine)
        if command is None:
            sys.exit(f"no compiler for {machine}: set CC, or install gcc-{machine}-linux-gnu")
        build(command, place(machine))
        for made in (place(machine), place(machine).with_name(PROGRAM)):
            print(made.relative_to(ROOT))


if __name__ == "__main__":
    main()
