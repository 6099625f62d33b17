"""What native/ becomes when the package is built: found, and read for a driver root."""

import platform
from pathlib import Path

import hami_mock
from hami_mock.errors import StartError
from hami_mock.views.driver.root import Programs

_FOLDER = Path(hami_mock.__file__).with_name("_native")
_LIBRARY, _PLACEHOLDER, _PROGRAM = "libnvidia-ml.so.1", "libplaceholder.so", "nvidia-smi"


def find_library(machine: str | None = None, folder: Path = _FOLDER) -> Path:
    """Return the library for a kind of machine, this one if none is named.

    Raises StartError if the package was built without it.
    """
    machine = machine or platform.machine()
    path = folder / machine / _LIBRARY
    if not path.is_file():
        raise StartError(
            f"{path} is missing: this hami-mock was built without a C compiler for {machine}; "
            "install gcc or clang, then hami-mock again from its source, or use an image or a "
            "wheel for this machine"
        )
    return path


def read() -> Programs:
    """Return what was compiled for this machine. Raises StartError if there is no library."""
    library = find_library()
    program = library.with_name(_PROGRAM)
    return Programs(
        library.read_bytes(),
        library.with_name(_PLACEHOLDER).read_bytes(),
        program.read_bytes() if program.exists() else None,
    )
