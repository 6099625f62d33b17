"""Where the driver's library is: compiled when the package was built, if there was a compiler."""

import platform
from pathlib import Path

import hami_mock
from hami_mock.errors import StartError

_FOLDER = Path(hami_mock.__file__).with_name("_native")
_NAME = "libnvidia-ml.so.1"


def find(machine: str | None = None, folder: Path = _FOLDER) -> Path:
    """Return the library for a kind of machine, this one if none is named.

    Raises StartError if the package was built without it.
    """
    machine = machine or platform.machine()
    path = folder / machine / _NAME
    if not path.is_file():
        raise StartError(
            f"{path} isn't there: this hami-mock was built without a C compiler for {machine}; "
            "install gcc or clang, then hami-mock again from its source, or use an image or a "
            "wheel for this machine"
        )
    return path
