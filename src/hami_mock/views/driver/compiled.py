"""What native/ compiles, read for a driver root."""

from hami_mock.views.driver import library
from hami_mock.views.driver.root import Programs

_PLACEHOLDER, _PROGRAM = "libplaceholder.so", "nvidia-smi"


def read() -> Programs:
    """Return what was compiled for this machine. Raises StartError if there is no library."""
    found = library.find()
    program = found.with_name(_PROGRAM)
    return Programs(
        found.read_bytes(),
        found.with_name(_PLACEHOLDER).read_bytes(),
        program.read_bytes() if program.exists() else None,
    )
