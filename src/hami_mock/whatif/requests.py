"""A pod → what HAMi's scheduler understands of what it asks for, by container and vendor. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from hami_mock.vendors.asking import Selectors
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.whatif.demand import PodKind

NODE_POLICY = "hami.io/node-scheduler-policy"
CARD_POLICY = "hami.io/gpu-scheduler-policy"
_ALL = 100


class Share(NamedTuple):
    """What a container takes of a card."""

    memory: int
    cores: int
    slots: int = 1


class Request(NamedTuple):
    """So many cards of a vendor, and of each so much.

    `percent` is of the card's memory, where `memory` (MiB) is 0. `slots` 0: as many slices of the
    card as that takes.
    """

    vendor: HamiVendor
    cards: int
    memory: int = 0
    percent: int = 0
    cores: int = 0
    slots: int = 1

    def share_of(self, memory: int, cores: int, slots: int) -> Share | None:
        """Return what it takes of a card with so much; None: there is no such part of it."""
        asking = self.vendor.scheduling.asking
        if self.vendor.scheduling.asks_slices:
            return self._slices_of(memory, cores, slots)
        own = 0 if asking.no_memory else self.memory or memory * self.percent // _ALL
        if asking.cores_follow_memory:
            return Share(own, min(cores, own * cores // memory) if memory else 0)
        if asking.of_own_cores and self.cores:
            return Share(own, min(cores, max(1, cores * self.cores // _ALL)))
        return Share(own, self.cores)

    def _slices_of(self, memory: int, cores: int, slots: int) -> Share | None:
        """Cards are cut into parts of one size that leave no rest."""
        for size in range(1, slots + 1):
            part = Share(memory * size // slots, cores * size // slots, size)
            is_enough = part.memory >= self.memory and part.cores >= self.cores
            if slots % size == 0 and (size == self.slots if self.slots else is_enough):
                return part
        return None


class ContainerRequests(NamedTuple):
    """What a container asks for of all vendors; sidecars count as HAMi counts them: as init."""

    requests: tuple[Request, ...]
    is_init: bool


def requests(
    kind: PodKind, vendors: Iterable[HamiVendor], *, has_webhook: bool = True
) -> tuple[ContainerRequests, ...]:
    """Return the containers that ask for cards, init containers first.

    Without HAMi's webhook nobody asks for a card in a container's name.
    """
    known = tuple(vendors)
    ordered = sorted(kind.containers, key=lambda each: not each.is_init)
    found = (
        ContainerRequests(tuple(_of(each.asks, known, has_webhook)), each.is_init)
        for each in ordered
    )
    return tuple(each for each in found if each.requests)


def as_webhook_leaves(kind: PodKind, vendors: Iterable[HamiVendor]) -> PodKind:
    """Return a pod as HAMi's scheduler gets it from HAMi's webhook."""
    known = tuple(vendors)
    containers = (each._replace(asks=_filled(each.asks, known)) for each in kind.containers)
    return replace(kind, containers=tuple(containers))


def _filled(asks: Mapping[str, int], vendors: Iterable[HamiVendor]) -> Mapping[str, int]:
    found = dict(asks)
    for vendor in vendors:
        found |= _mutated(asks, vendor)
        cores = vendor.resources.cores
        if vendor.scheduling.asking.whole_has_all_cores and cores not in asks:
            request = _request(found, vendor)
            found |= {cores: request.cores} if request and request.cores else {}
    return found


def _of(
    asks: Mapping[str, int], vendors: Iterable[HamiVendor], has_webhook: bool
) -> Iterator[Request]:
    for vendor in vendors:
        if vendor.scheduling.asks_slices:
            request = _slices(asks, vendor)
        else:
            request = _request(_mutated(asks, vendor) if has_webhook else asks, vendor)
        if request:
            yield request


def _mutated(asks: Mapping[str, int], vendor: HamiVendor) -> Mapping[str, int]:
    """Return what HAMi's webhook makes of what a container asks for."""
    names, count = vendor.resources, vendor.scheduling.asking.default_count
    parts = (names.memory, names.percentage, names.cores)
    if not count or asks.get(names.count) or not any(asks.get(name) for name in parts if name):
        return asks
    return {**asks, names.count: count}


def _request(asks: Mapping[str, int], vendor: HamiVendor) -> Request | None:
    names, asking = vendor.resources, vendor.scheduling.asking
    count = asks.get(names.count, 0)
    cores, said_cores = asks.get(names.cores, asking.cores), names.cores in asks
    if not count and asks.get(names.cores) and vendor.vendor.is_whole:
        # Cores alone are as many whole cards as have them.
        return Request(vendor, ceil(cores / names.cores_per_card), 0, _ALL, names.cores_per_card)
    if not count:
        return None
    memory = asks.get(names.memory, 0) * names.memory_unit
    percent = min(asks.get(names.percentage, 0), _ALL)
    if asking.divided:
        memory, cores = memory // count, cores // count
    if steps := asking.steps(vendor.word) if memory else ():
        # What is larger than the largest step gets the whole card.
        memory = next((step for step in sorted(steps) if memory <= step), 0)
    if not memory:
        percent = percent or _ALL
    if vendor.vendor.is_whole:
        cores = names.cores_per_card
    elif asking.whole_has_all_cores and not said_cores and percent == _ALL and not memory:
        cores = _ALL
    limit = max(_ALL, names.cores_per_card)
    return Request(vendor, count, memory, percent, min(cores, limit))


def _slices(asks: Mapping[str, int], vendor: HamiVendor) -> Request | None:
    """Return a part of one card, of so many slices, or large enough for memory and cores."""
    names = vendor.resources
    if count := asks.get(names.count, 0):
        return Request(vendor, 1, slots=count)
    memory, cores = asks.get(names.memory, 0), asks.get(names.cores, 0)
    if not memory and not cores:
        return None
    return Request(vendor, 1, memory * names.memory_unit, cores=cores, slots=0)


def is_wanted(wishes: Selectors, annotations: Mapping[str, str], card_type: str, mode: str) -> bool:
    """Tell whether a pod takes cards of a type that are sliced in a way."""
    kind = card_type.upper()
    wanted, unwanted = (_words(annotations, each) for each in (wishes.types, wishes.no_types))
    if wanted and not any(word.upper() in kind for word in wanted):
        return False
    if any(word.upper() in kind for word in unwanted):
        return False
    return mode in annotations.get(wishes.mode, mode)


def wanted_ids(
    wishes: Selectors, annotations: Mapping[str, str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the IDs of the only cards that a pod takes, and of those that it doesn't take."""
    return frozenset(_words(annotations, wishes.uuids)), frozenset(
        _words(annotations, wishes.no_uuids)
    )


def is_numa_bound(wishes: Selectors, annotations: Mapping[str, str]) -> bool:
    said = annotations.get(wishes.numa, "") if wishes.numa else ""
    return said in ("1", "t", "T", "true", "TRUE", "True")


def asks_text(asked: Mapping[str, int]) -> str:
    """Return what a pod asks for in a line: devices first."""
    devices = [f"{amount} {name}" for name, amount in asked.items() if "/" in name]
    cpu, ram = asked.get("cpu", 0), asked.get("memory", 0)
    rest = [f"{cpu / 1000:.15g} CPU"] if cpu else []
    rest += [f"{ram / 2**30:.3g} GiB"] if ram else []
    return ", ".join((*devices, *rest)) or "nothing"


def _words(annotations: Mapping[str, str], key: str) -> list[str]:
    words = annotations.get(key, "").split(",") if key else []
    return [word.strip() for word in words if word.strip()]
