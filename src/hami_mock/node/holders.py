"""Who holds which device, as far as it is known, and how busy that makes cards. Pure."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hami_mock.kit.broadcast import Broadcast
from hami_mock.kubelet.holder import Container, Holder

if TYPE_CHECKING:
    from hami_mock.node.instances import Instance

_GRACE_SECONDS = 30.0
"""The kubelet knows a pod's devices as soon as it has got them. What it doesn't know after this
time belongs to a pod that failed its admission."""
_MOST_GIVEN = 300_000
"""More IDs aren't remembered: whoever calls Allocate again and again could fill the memory."""


@dataclass(frozen=True)
class Holding:
    """What a container holds of one card; None: it has no name yet.

    - devices: how many it got for this card, by resource
    - memory, cores: MiB, and percent of its compute; all of the card if it asked for no part
    - slots: how many of the card's; 0 if it has only units
    - instances: what was cut out of the card for it
    - owner: what HAMi's library in the container knows it by
    """

    container: Container | None
    devices: Mapping[str, int]
    memory: int = 0
    cores: int = 100
    slots: int = 0
    instances: "tuple[Instance, ...]" = ()
    owner: str = ""


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
        self.given = Broadcast()
        """Told after devices were given: `changes` tells of names too."""
        self._clock = clock
        self._named: tuple[Holder, ...] | None = None
        self._named_last: tuple[Holder, ...] = ()
        """What the kubelet said when it could be asked."""
        self._given: dict[tuple[str, str], tuple[float, Holder]] = {}
        """By resource and the first ID: when what was given to a container, the oldest first."""
        self._ids_given = 0

    def give(
        self, resource_name: str, device_ids: Sequence[str], cards: Sequence[str] = ()
    ) -> None:
        """Note that devices are held from now on, though nobody knows by whom.

        `cards` are those that somebody has assigned, whatever cards the devices are of.
        """
        if not device_ids:
            return
        # Whoever had one of them holds nothing any more: containers give all back at once. A pod
        # may take 80,000 units, so it is asked from the side that has less to ask.
        again: Collection[str] = device_ids
        if len(self._given) < len(device_ids):
            among = set(device_ids)
            again = [
                first for name, first in self._given if name == resource_name and first in among
            ]
        for device_id in again:
            self._forget((resource_name, device_id))
        held = Holder(None, {resource_name: tuple(device_ids)}, tuple(cards))
        self._given[resource_name, device_ids[0]] = self._clock(), held
        self._ids_given += len(device_ids)
        while self._ids_given > _MOST_GIVEN:
            self._forget(next(iter(self._given)))
        self._forget_old()
        self.given.send()
        self.changes.send()

    def name(self, holders: Iterable[Holder] | None) -> None:
        """Take over who holds what; None: the kubelet can't be asked."""
        before = self.all
        self._named = None if holders is None else tuple(holders)
        if self._named is not None:
            self._named_last = self._named
        self._forget_old()
        if self._given and self._named:
            named = set[str]().union(*(holder.ids for holder in self._named))
            for key, (_, held) in [*self._given.items()]:
                if named.issuperset(held.devices[key[0]]):
                    self._forget(key)
        if self.all != before:
            self.changes.send()

    @property
    def all(self) -> tuple[Holder, ...] | None:
        """All holders, those that have no name yet last; None if the kubelet can't be asked.

        Without it nobody ever learns that a device is free again.
        """
        return None if self._named is None else self.known

    @property
    def known(self) -> tuple[Holder, ...]:
        """All holders that are known of; if the kubelet is silent, some may be gone since.

        Whoever comes later got the devices later: the kubelet may have named another before.
        """
        return *self._named_last, *(held for _, held in self._given.values())

    @property
    def ids(self) -> set[str] | None:
        """The IDs of all devices that are held; None if nobody knows."""
        return None if self.all is None else set[str]().union(*(held.ids for held in self.all))

    @property
    def resources(self) -> set[str] | None:
        """The names of all resources that somebody holds devices of; None if nobody knows."""
        holders = self.all
        if holders is None:
            return None
        return {name for holder in holders for name, ids in holder.devices.items() if ids}

    @property
    def has_unnamed(self) -> bool:
        return bool(self._given)

    def _forget(self, key: tuple[str, str]) -> None:
        if key in self._given:
            _, held = self._given.pop(key)
            self._ids_given -= len(held.devices[key[0]])

    def _forget_old(self) -> None:
        oldest = self._clock() - _GRACE_SECONDS
        for key, (since, held) in [*self._given.items()]:
            if since > oldest:
                return
            # Which card a slot was given for, nobody else can tell while the kubelet is silent.
            if self._named is not None or not held.cards:
                self._forget(key)
