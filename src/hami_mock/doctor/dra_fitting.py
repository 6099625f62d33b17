"""Why a device isn't given to a request: what is wrong with it, and who has it. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from hami_mock.doctor.dra_found import DraFound, Held
from hami_mock.doctor.dra_objects import Ask, Device
from hami_mock.doctor.dra_selectors import matches
from hami_mock.kit.quantities import written

_SHOWN = 4
"""How many devices or holders are listed."""
_BINARY = 2**10
"""Amounts that are multiples of it are shown in Ki, Mi, …"""


class Obstacle(IntEnum):
    """What stands between a request and a device; a higher number: more of it fits."""

    CLASS = 1
    SELECTOR = 2
    SIZE = 3
    TAINT = 4
    TAKEN = 5
    COUNTERS = 6


class Verdict(NamedTuple):
    """A device, and what is wrong with it, in words; None: nothing, as far as can be told."""

    device: Device
    obstacle: Obstacle | None = None
    told: str = ""


def judge(ask: Ask, device: Device, found: DraFound) -> Verdict:
    """Tell what keeps a request from a device. Its class must be known."""
    # What can't be evaluated counts as fitting.
    if matches((found.classes or {})[ask.class_name].selectors, device) is False:
        return Verdict(device, Obstacle.CLASS)
    if matches(ask.selectors, device) is False:
        return Verdict(device, Obstacle.SELECTOR)
    for obstacle, told in _obstacles(ask, device, found):
        return Verdict(device, obstacle, told)
    return Verdict(device)


def _obstacles(ask: Ask, device: Device, found: DraFound) -> Iterator[tuple[Obstacle, str]]:
    yield from _too_small(ask, device)
    for taint in device.taints:
        if not ask.tolerates(taint):
            yield Obstacle.TAINT, f"{device} is tainted: {taint}"
    if not ask.is_admin:
        yield from _taken(ask, device, found)
        yield from _counters(device, found)


def _too_small(ask: Ask, device: Device) -> Iterator[tuple[Obstacle, str]]:
    for name, wanted in ask.capacity.items():
        has = device.capacity.get(name)
        if has is None or has.consumed(wanted) > has.largest:
            told = "no" if has is None else amount(has.largest)
            yield Obstacle.SIZE, f"{device} has {told} {name}"


def _taken(ask: Ask, device: Device, found: DraFound) -> Iterator[tuple[Obstacle, str]]:
    holders = found.held.get(device.id, ())
    if not device.is_shared:
        if holders:
            yield Obstacle.TAKEN, f"{device} belongs to {_names(holders)}"
        return
    for name, has in device.capacity.items():
        free = has.value - sum(each.result.consumed.get(name, 0) for each in holders)
        if has.consumed(ask.capacity.get(name)) > free:
            told = f"{device} has {amount(max(free, 0))} of {amount(has.value)} {name} free"
            yield Obstacle.TAKEN, f"{told} ({_shares(holders, name)})" if holders else told


def _counters(device: Device, found: DraFound) -> Iterator[tuple[Obstacle, str]]:
    """What the devices that are given away leave of a card must be enough for this one."""
    if device.is_shared and found.held.get(device.id):
        return  # the first claim of it took them for all
    for name, wanted in device.consumes:
        place = device.driver, device.pool, name
        given = found.drained.get(place, ())
        left = Counter(found.counters.get(place, {}))
        for each in given:
            left.subtract(each.counters)
        short = [counter for counter, need in wanted.items() if need > left[counter]]
        if short:
            holders = [held for each in given if {*each.counters} & {*short} for held in each.held]
            told = f"{device}: {name} has too little of {listed(short)} left ({_names(holders)})"
            yield Obstacle.COUNTERS, told


def amount(number: int) -> str:
    return written(number, is_binary=number % _BINARY == 0)


def _names(holders: Sequence[Held]) -> str:
    names = [*dict.fromkeys(f"claim {each.claim.full_name}" for each in holders)]
    return listed(names) or "nobody has any"


def _shares(holders: Sequence[Held], name: str) -> str:
    return listed(
        [
            f"claim {each.claim.full_name} has {amount(each.result.consumed.get(name, 0))}"
            for each in holders
        ]
    )


def listed(words: Sequence[str], joint: str = ", ") -> str:
    """Return the first few, and how many more there are."""
    left = len(words) - _SHOWN
    return joint.join(words[:_SHOWN]) + (f"{joint}and {left} more" if left > 0 else "")
