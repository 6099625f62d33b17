"""Where the library and the program of the driver are: compiled when the package was built."""

import platform
from pathlib import Path

import hami_mock
from hami_mock.errors import StartError

_FOLDER = Path(hami_mock.__file__).with_name("_native")
_LIBRARY = "libnvidia-ml.so.1"
_PROGRAM = "nvidia-smi"


def find(machine: str | None = None, folder: Path = _FOLDER) -> Path:
    """Return the library for a kind of machine, this one if none is named.

    Raises StartError if the package was built without it.
    """
    return _find(_LIBRARY, machine, folder)


def find_program(machine: str | None = None, folder: Path = _FOLDER) -> Path:
    """Return the static nvidia-smi; else as `find`."""
    return _find(_PROGRAM, machine, folder)


def _find(name: str, machine: str | None, folder: Path) -> Path:
    machine = machine or platform.machine()
    path = folder / machine / name
    if not path.is_file():
        raise StartError(
            f"{path} isn't there: this hami-mock was built without a C compiler for {machine}; "
            "install gcc or clang, then hami-mock again from its source, or use an image or a "
            "wheel for this machine"
        )
    return path
