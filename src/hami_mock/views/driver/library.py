"""Finds what was compiled from native/ for this machine."""

import platform
from pathlib import Path

import hami_mock
from hami_mock.errors import StartError

NAME = "libnvidia-ml.so"


def find() -> Path:
    """Return the library. Raises StartError if it wasn't compiled."""
    path = Path(hami_mock.__file__).parent / "_native" / platform.machine() / NAME
    if not path.is_file():
        raise StartError(
            f"--driver: the library {NAME} wasn't compiled for {platform.machine()}: install a C "
            "compiler and then hami-mock again, or use its image"
        )
    return path
