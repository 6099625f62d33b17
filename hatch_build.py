"""Compile native/ into the package, when a wheel is built or hami-mock is installed from source.

Without a C compiler that works, the wheel is a pure one: all works but the driver, which says what
it lacks. `python hatch_build.py` does the same for every machine, or says for which it can't.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
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
# Records are copied word by word, which strict aliasing forbids.
FLAGS = (
    "-std=gnu11", "-ffreestanding", "-nostdlib", "-fvisibility=hidden", "-fno-strict-aliasing",
    "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-Wall", "-Wextra", "-s",
)  # fmt: skip
# The functions call each other, not what a preloaded library (HAMi's) has put in their place.
LIBRARY_FLAGS = (
    "-O2", "-fPIC", "-shared", "-Wl,-z,defs", "-Wl,-Bsymbolic", "-Wl,--hash-style=both",
)  # fmt: skip
STRICT = ("-Werror",)
"""For us alone: another compiler's new warning is no reason not to install."""
PROGRAM_FLAGS = (
    "-Os", "-static", "-fno-pie", "-no-pie", "-ffunction-sections", "-fdata-sections",
    "-Wl,--gc-sections",
)  # fmt: skip


def own_compiler() -> list[str] | None:
    """Return the command of this machine's compiler: $CC, or the first one that works."""
    named = os.environ.get("CC")
    commands = [named.split()] if named else [["cc"], ["gcc"], ["clang"]]
    return next((command for command in commands if _works(command)), None)


def _works(command: list[str]) -> bool:
    """Tell whether a command compiles and links: it may be there without all that it needs."""
    if shutil.which(command[0]) is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        (source := Path(folder, "empty.c")).touch()
        made = [*command, *FLAGS, *LIBRARY_FLAGS, "-o", f"{folder}/empty.so", str(source)]
        return subprocess.run(made, check=False, capture_output=True).returncode == 0  # noqa: S603


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
        build([*command, *STRICT], place(machine))
        for made in (place(machine), place(machine).with_name(PROGRAM)):
            print(made.relative_to(ROOT))


if __name__ == "__main__":
    main()
