"""Who holds which device, as far as it is known, and how busy that makes cards. Pure."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hami_mock.kit.broadcast import Broadcast
from hami_mock.kubelet.holder import Container, Holder

_GRACE_SECONDS = 30.0
"""The kubelet knows a pod's devices as soon as it has got them. What it doesn't know after this
time belongs to a pod that failed its admission."""


@dataclass(frozen=True)
class Holding:
    """How many devices of one card a container holds, by resource; None: it has no name yet."""

    container: Container | None
    devices: Mapping[str, int]


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


class Holders:
    """The holders that the kubelet has named, and what was given since."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.changes = Broadcast()
        self._clock = clock
        self._named: tuple[Holder, ...] | None = None
        self._given: list[tuple[float, Holder]] = []

    def give(self, resource_name: str, device_ids: Sequence[str]) -> None:
        """Note that devices are held from now on, though nobody knows by whom."""
        self._forget()
        if device_ids:
            held = Holder(None, {resource_name: tuple(device_ids)})
            self._given.append((self._clock(), held))
            self.changes.send()

    def name(self, holders: Iterable[Holder] | None) -> None:
        """Take over who holds what; None: the kubelet can't be asked."""
        self._named = None if holders is None else tuple(holders)
        self._forget()
        if self._given and self._named:
            named = set[str]().union(*(holder.ids for holder in self._named))
            self._given = [given for given in self._given if not given[1].ids <= named]
        self.changes.send()

    @property
    def all(self) -> tuple[Holder, ...] | None:
        """All holders, those that have no name yet last; None if the kubelet can't be asked.

        Without it nobody ever learns that a device is free again.
        """
        if self._named is None:
            return None
        return *self._named, *(holder for _, holder in self._given)

    @property
    def ids(self) -> set[str] | None:
        """The IDs of all devices that are held; None if nobody knows."""
        return None if self.all is None else set[str]().union(*(held.ids for held in self.all))

    @property
    def has_unnamed(self) -> bool:
        return bool(self._given)

    def _forget(self) -> None:
        oldest = self._clock() - _GRACE_SECONDS
        self._given = [given for given in self._given if given[0] > oldest]
