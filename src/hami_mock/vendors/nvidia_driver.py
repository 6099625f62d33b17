"""The driver that NVIDIA's cards seem to have: the same in labels, metrics and elsewhere."""

from collections.abc import Iterable
from typing import NamedTuple


class Driver(NamedTuple):
    """The version of a driver, and the newest CUDA that it runs."""

    version: str
    cuda: str


_DRIVER = Driver("550.163.01", "12.4")
# The one before doesn't know these cards.
_OF_BLACKWELL = Driver("580.95.05", "13.0")


def driver(families: Iterable[str]) -> Driver:
    """Return the driver of a node with cards of these families (`Model.family`)."""
    return _OF_BLACKWELL if "blackwell" in families else _DRIVER
