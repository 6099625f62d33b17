"""How busy cards are. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """Percent of a card's compute that is busy, and MiB of its memory that are used."""

    busy: int = 0
    memory: int = 0

    @classmethod
    def total(cls, loads: Iterable["Load"]) -> "Load":
        """Return the load of several containers on one card: no card is more than busy."""
        found = [*loads]
        return cls(min(100, sum(load.busy for load in found)), sum(load.memory for load in found))
