"""What work, faults and time make of a card: power, heat, clocks and counters. Pure.

Power has three levels: nothing on the card; a program has opened it (its context); and from there
up to the limit, as busy as it is. Temperature follows power with a fast and a slow delay. What a
card counts is an integral over its steps, so steps must be short where work changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

from hami_mock.node.cards import Card
from hami_mock.node.fault import Fault
from hami_mock.node.readings import Reading, Throttle, Usage
from hami_mock.node.xid import named_in
from hami_mock.vendors.physics import Traits
from hami_mock.vendors.physics import traits as traits_of

if TYPE_CHECKING:
    from hami_mock.node.instances import Instance

_FAST_SECONDS, _SLOW_SECONDS = 1.0, 45.0
_FAST_SHARE = 0.35
"""The part of the heat that the chip itself shows at once; its cooler takes longer."""
_CAP_FROM = 0.95
"""The driver begins to lower the clock at this part of the power limit; it has lowered it by
_CAP_DROP at the limit."""
_CAP_DROP = 0.08
_SLOWED = 0.5
_OVERHEATED = 15.0
"""°C above its slowdown that a card without cooling would reach, and _HOTTEST that it is let."""
_HOTTEST = 8.0
_SOFT_MARGIN = 4.0
"""°C below the hardware's slowdown the driver slows the card down by itself."""
_ECC_SECONDS = 30.0
"""How often a card that is degraded for its ECC errors has another one."""

_MEMORY_BUSY = 0.09
_TENSOR, _DRAM = 0.55, 0.3
_LINK_SHARE = 0.2
_PCIE_RECEIVED, _PCIE_SENT = 0.06, 0.02

_COSTLY_ERRORS = (48, 94, 95)
_STOPPING_XIDS = frozenset({46, 62, 79, 95, 119, 120, 143})
"""After these nothing runs on a card until it is reset."""
_WORDS = {
    "thermal": ("thermal", "temperature", "heat", "fan", "cooling"),
    "slowed": ("power", "slowdown", "brake"),
    "ecc": ("ecc", "memory error", "row remap"),
}


class Work(NamedTuple):
    """What the containers do on a card: percent of its compute, MiB, and how many they are.

    `linked` is the part of `busy` of containers that hold several cards and talk between them.
    """

    busy: float = 0.0
    memory: int = 0
    contexts: int = 0
    linked: float = 0.0


class Trouble(NamedTuple):
    """What faults do to a card while they last."""

    thermal: bool = False
    slowed: bool = False
    ecc: bool = False
    stopped: bool = False


class Inner(NamedTuple):
    """What a card remembers: °C above idle by delay, J, bytes, and s with an ECC fault.

    `held` has the s that clocks were low, by all that kept them so.
    """

    fast: float = 0.0
    slow: float = 0.0
    energy: float = 0.0
    link_bytes: float = 0.0
    ecc_seconds: float = 0.0
    held: Mapping[frozenset[Throttle], float] = {}


class Errors(NamedTuple):
    """What a card's Xids come to: ECC errors, and the rows or pages of memory that they cost."""

    ecc: int = 0
    correctable: int = 0
    uncorrectable: int = 0
    repair_failed: bool = False
    last_xid: int = 0


class Condition(NamedTuple):
    """What is wrong with a card now, and what was."""

    trouble: Trouble = Trouble()
    errors: Errors = Errors()


class _Level(NamedTuple):
    power: float
    clock: float
    throttles: frozenset[Throttle]


def trouble_of(faults: Iterable[Fault]) -> Trouble:
    """Return what faults of a card do to it: their reasons say what is wrong."""
    reasons = " ".join(fault.reason.lower() for fault in faults)
    if not reasons:
        return Trouble()
    found = {name: any(word in reasons for word in words) for name, words in _WORDS.items()}
    return Trouble(**found, stopped=not _STOPPING_XIDS.isdisjoint(named_in(reasons)))


def errors_of(xids: Mapping[int, int], last_xid: int = 0) -> Errors:
    """Return what a card's Xids, with how often each was, say of its memory.

    An uncorrectable error costs a row or page, and Xid 63 records it: the two are one.
    """
    count = xids.get
    broken = sum(count(xid, 0) for xid in _COSTLY_ERRORS)
    return Errors(
        ecc=broken + count(140, 0),
        correctable=count(92, 0),
        uncorrectable=max(broken, count(63, 0)),
        repair_failed=count(64, 0) > 0,
        last_xid=last_xid,
    )


def step(traits: Traits, inner: Inner, work: Work, trouble: Trouble, seconds: float) -> Inner:
    """Let time pass, with the same work all the while."""
    level = _level(traits, inner, work, trouble)
    rise = (level.power - traits.idle) * traits.heat
    slow = rise * (1 - _FAST_SHARE)
    if trouble.thermal:
        slow = max(slow, traits.slowdown + _OVERHEATED - traits.warm)
    return Inner(
        fast=_towards(rise * _FAST_SHARE, inner.fast, seconds / _FAST_SECONDS),
        slow=_towards(slow, inner.slow, seconds / _SLOW_SECONDS),
        energy=inner.energy + level.power * seconds,
        link_bytes=inner.link_bytes + _link_speed(traits, work, trouble) * seconds,
        ecc_seconds=inner.ecc_seconds + (seconds if trouble.ecc else 0.0),
        held=_held(inner.held, level.throttles, seconds),
    )


def reading(traits: Traits, total: int, inner: Inner, work: Work, condition: Condition) -> Reading:
    """Return what a card of so many MiB shows."""
    trouble, errors = condition
    level = _level(traits, inner, work, trouble)
    busy = 0.0 if trouble.stopped else min(100.0, work.busy)
    part = busy / 100
    is_open = work.contexts > 0
    reserved = min(traits.reserved, total)
    used = min(work.memory, total - reserved)
    temperature = _temperature(traits, inner)
    return Reading(
        busy=busy,
        memory_busy=busy * _MEMORY_BUSY,
        memory_used=used,
        memory_reserved=reserved,
        memory_free=total - reserved - used,
        power=level.power,
        power_limit=traits.power_limit,
        energy=int(inner.energy * 1000),
        temperature=temperature,
        memory_temperature=temperature + traits.memory_warmer,
        fan=_fan(temperature) if traits.has_fan else None,
        sm_clock=round(level.clock),
        memory_clock=traits.memory_clock if is_open else traits.idle_memory_clock,
        tensor=part * _TENSOR,
        dram=part * _DRAM,
        pcie_sent=traits.pcie * 1e9 * part * _PCIE_SENT,
        pcie_received=traits.pcie * 1e9 * part * _PCIE_RECEIVED,
        nvlink_bytes=int(inner.link_bytes),
        nvlink_speed=_link_speed(traits, work, trouble),
        **_damage(traits, errors),
        corrected_errors=errors.correctable,
        ecc_errors=errors.ecc + int(inner.ecc_seconds / _ECC_SECONDS),
        last_xid=errors.last_xid,
        throttles=level.throttles,
        held=inner.held,
    )


def _damage(traits: Traits, errors: Errors) -> dict[str, Any]:
    """Return what a card has lost of its memory: its kind has rows to spare, or retires pages."""
    if traits.repair == "rows":
        return {
            "remapped_correctable": errors.correctable,
            "remapped_uncorrectable": errors.uncorrectable,
            "remap_failed": errors.repair_failed,
        }
    if traits.repair == "pages":
        return {
            "retired_correctable": errors.correctable,
            "retired_uncorrectable": errors.uncorrectable,
        }
    return {}


def _held(
    before: Mapping[frozenset[Throttle], float], throttles: frozenset[Throttle], seconds: float
) -> Mapping[frozenset[Throttle], float]:
    if not throttles or not seconds:
        return before
    return {**before, throttles: before.get(throttles, 0.0) + seconds}


def _link_speed(traits: Traits, work: Work, trouble: Trouble) -> float:
    linked = 0.0 if trouble.stopped else work.linked
    return traits.link * 1e9 * _LINK_SHARE * linked / 100


def idle_reading(card: Card) -> Reading:
    """Return what a card shows that nobody has ever used."""
    nature = traits_of(card.vendor.maker, card.model)
    return reading(nature, card.memory, Inner(), Work(), Condition())


def instance_reading(whole: Reading, instance: "Instance", usage: Usage | None) -> Reading:
    """Return what a part of a card shows, with the work of the container that has it.

    A container's work is spread evenly over all that it has of the card. What nobody can tell of a
    part alone is the card's.
    """
    memory, used, busy = instance.memory, 0, 0.0
    if usage is not None:
        used = usage.load.memory * memory // sum(each.memory for each in usage.instances)
        busy = min(100.0, 100 * usage.load.busy / sum(each.cores for each in usage.instances))
    reserved = min(whole.memory_reserved, memory)
    used = min(used, memory - reserved)
    return replace(
        whole,
        busy=busy,
        memory_busy=busy * _MEMORY_BUSY,
        memory_used=used,
        memory_reserved=reserved,
        memory_free=memory - reserved - used,
        tensor=busy / 100 * _TENSOR,
        dram=busy / 100 * _DRAM,
    )


def capacity(traits: Traits, total: int) -> int:
    """Return the MiB of a card that containers can have together."""
    return total - min(traits.reserved, total)


def _level(traits: Traits, inner: Inner, work: Work, trouble: Trouble) -> _Level:
    throttles = _slowed_by(traits, inner, trouble)
    if work.contexts <= 0:
        return _Level(traits.idle, traits.idle_clock, throttles | {Throttle.IDLE})
    part = 0.0 if trouble.stopped else min(100.0, work.busy) / 100
    base = min(traits.idle + traits.context, traits.power_limit)
    span = (traits.power_limit - base) * part
    if throttles:
        return _Level(base + span * _SLOWED, traits.clock * _SLOWED, throttles)
    power = base + span
    over = (power / traits.power_limit - _CAP_FROM) / (1 - _CAP_FROM)
    if over <= 0:
        return _Level(power, traits.clock, throttles)
    return _Level(power, traits.clock * (1 - _CAP_DROP * over), frozenset({Throttle.POWER_CAP}))


def _slowed_by(traits: Traits, inner: Inner, trouble: Trouble) -> frozenset[Throttle]:
    found = {Throttle.HARDWARE} if trouble.slowed else set()
    temperature = _temperature(traits, inner)
    if temperature >= traits.slowdown:
        found.add(Throttle.HARDWARE_THERMAL)
    elif temperature >= traits.slowdown - _SOFT_MARGIN:
        found.add(Throttle.SOFTWARE_THERMAL)
    return frozenset(found)


def _temperature(traits: Traits, inner: Inner) -> float:
    return min(traits.warm + inner.fast + inner.slow, traits.slowdown + _HOTTEST)


def _towards(target: float, value: float, delays: float) -> float:
    return target + (value - target) * exp(-delays)


def _fan(temperature: float) -> int:
    """Return percent: 30 up to 40 °C, all of it from 85 °C on."""
    return round(30 + 70 * min(1.0, max(0.0, (temperature - 40) / 45)))
