"""Cards and what they show, as records of the state file. Pure."""

import struct
import zlib
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from hami_mock.node.cards import Card
from hami_mock.node.instances import Cut
from hami_mock.node.physics import instance_reading
from hami_mock.node.readings import Reading, Throttle, Usage
from hami_mock.vendors.driver import Driver, Machine
from hami_mock.views.driver.layout import (
    COMPUTE_INSTANCE,
    FLAGS,
    GPU_INSTANCE,
    IDENTITY,
    LIVE,
    MOST_COMPUTE_INSTANCES,
    MOST_GPU_INSTANCES,
    MOST_LINKS,
    MOST_PROCESSES,
    NO_INSTANCE,
    PROCESS,
    PROCESS_TYPES,
)

_MIB: Final = 1024 * 1024
_FIRST_PID, _PIDS = 100_000, 4_000_000
"""Linux's PIDs end at 4,194,304; the lowest ones are likely to be somebody's."""
_MOST_TURNS = 5000
"""Of a fan at full speed, a minute."""
_IDLE_STATE = 8
_POLICIES = LIVE.fields["violations"].field.count

_NOBODY_WORKS = "no container here encodes, decodes or compares pictures"
ALWAYS_ZERO: Final = {
    **dict.fromkeys(("encoder", "decoder", "jpeg", "ofa"), _NOBODY_WORKS),
    "pcie_replays": "no fault here is one of the bus; a card that falls off it is lost",
    "link_errors": "a link here works, or is down for good",
    **{
        f"ecc_sram_{kind}{since}": "all errors of memory that Xids tell of are those of DRAM"
        for kind in ("corrected", "uncorrected")
        for since in ("", "_ever")
    },
}
"""Live fields that nothing in the state says anything of, and why."""

_HEAD = [each for each in LIVE.placed if each.offset < LIVE.offset("processes")][1:]
_HEAD_STRUCT = struct.Struct("<" + "".join(each.field.code for each in _HEAD))
_PLACES: dict[str, slice] = {}
"""Where each field's values stand among all that are packed at once."""
_count = 0
for _, _field in _HEAD:
    if _field.kind != "gap":
        _PLACES[_field.name] = slice(_count, _count + _field.count)
        _count += _field.count
_PROCESSES_SIZE = LIVE.fields["processes"].field.size
_GPU_INSTANCES_SIZE = LIVE.fields["gpu_instances"].field.size
_REST_SIZE = LIVE.size - LIVE.offset("processes")


def identity(card: Card, machine: Machine, driver: Driver) -> bytes:
    fields = driver.identify(card, machine)
    return IDENTITY.pack({**fields, "flags": sum(FLAGS[name] for name in fields["flags"])})


class Seen(NamedTuple):
    """What the state says of a card beside its reading."""

    usages: Sequence[Usage]
    cut: Cut | None = None
    is_lost: bool = False


class LiveCard:
    """A card's live part, made anew from what is read of it."""

    def __init__(self, card: Card, machine: Machine, driver: Driver) -> None:
        self._driver = driver
        named = driver.identify(card, machine)
        self._clock_most, self._video_most = named["graphics_clock_most"], named["video_clock_most"]
        self._lower_memory_clock = min(named["memory_clocks"])
        self._memory_clock_most = named["memory_clock_most"]
        self._links = len(named["links"])
        self._standing = [0] * _count
        self._put(self._standing, driver.standing(named))
        self.set_values: dict[str, int] = {}
        """Fields that a setter has decided on."""
        self.cleared: dict[str, int] = {}
        """How many errors there were when a setter had a counter begin again."""
        self._errors: dict[str, int] = {}
        self._policies: dict[frozenset[Throttle], list[int]] = {}
        self._made_from: tuple[Sequence[Usage], Cut | None] | None = None
        self._rest = b""

    def numbers(self, now: Reading, seen: "Seen", *, failed: bool, xid: int, time: int) -> bytes:
        """Return all that stands before the processes, but for the sequence."""
        lost = seen.is_lost
        values = self._standing.copy()
        last = xid or now.last_xid
        clock = now.sm_clock
        is_low = now.memory_clock <= self._lower_memory_clock < self._memory_clock_most
        limit = round(now.power_limit * 1000)
        power = round(now.power * 1000)
        self._put(
            values,
            {
                "timestamp": time,
                "lost": int(lost),
                "recovery_action": self._recovery(last) if failed or lost else 0,
                "last_xid": last,
                "gpu": round(now.busy),
                "memory": round(now.memory_busy),
                "tensor": round(now.tensor * 10_000),
                "dram": round(now.dram * 10_000),
                "memory_used": now.memory_used * _MIB,
                "memory_reserved": now.memory_reserved * _MIB,
                "memory_free": now.memory_free * _MIB,
                "energy": now.energy,
                "power": power,
                "power_average": power,
                "power_limit": limit,
                "power_limit_enforced": limit,
                "temperature": round(now.temperature),
                "memory_temperature": round(now.memory_temperature),
                "fan": now.fan or 0,
                "fan_rpm": (now.fan or 0) * _MOST_TURNS // 100,
                "performance_state": _IDLE_STATE if is_low else 0,
                "graphics_clock": clock,
                "sm_clock": clock,
                "memory_clock": now.memory_clock,
                "video_clock": round(clock * self._video_most / self._clock_most),
                "clock_reasons": self._reasons(now),
                "pcie_sent": round(now.pcie_sent / 1000),
                "pcie_received": round(now.pcie_received / 1000),
                **self._errors_of(now),
                **_damage(now, failed=failed),
                "violations": self._violations(now),
                "process_count": 0 if lost else min(len(seen.usages), MOST_PROCESSES),
                "mig_mode": int(seen.cut is not None),
                "mig_mode_pending": int(seen.cut is not None),
            },
        )
        if self._links:
            # Both ways together, in bytes, on all links.
            each = now.nvlink_bytes // (2 * 1024 * self._links)
            carried = [each] * self._links + [0] * (MOST_LINKS - self._links)
            self._put(values, {"links_sent": carried, "links_received": carried})
        self._put(values, self.set_values)
        return _HEAD_STRUCT.pack(*values)

    def clear_errors(self, *, ever: bool) -> None:
        """Let counters of errors begin again at 0."""
        names = (name for name in self._errors if name.endswith("_ever") == ever)
        self.cleared |= {name: self._errors[name] for name in names}

    def _errors_of(self, now: Reading) -> dict[str, int]:
        self._errors = {
            "ecc_dram_corrected": now.corrected_errors,
            "ecc_dram_uncorrected": now.ecc_errors,
            "ecc_dram_corrected_ever": now.corrected_errors,
            "ecc_dram_uncorrected_ever": now.ecc_errors,
        }
        return {name: count - self.cleared.get(name, 0) for name, count in self._errors.items()}

    def _violations(self, now: Reading) -> list[int]:
        """Return the ns that each of the driver's policies has held the clocks back."""
        found = [0] * _POLICIES
        for reasons, seconds in now.held.items():
            if reasons not in self._policies:
                known = {each for reason in reasons for each in self._driver.policies[reason]}
                self._policies[reasons] = sorted(known)
            for policy in self._policies[reasons]:
                found[policy] += int(seconds * 1e9)
        return found

    def rest(self, now: Reading, seen: "Seen", begun: Mapping[Any, int]) -> bytes:
        """Return the containers that hold the card as processes, and what it is cut into.

        `begun` tells when each container began, in µs since 1970. The same bytes come back as long
        as nothing has changed.
        """
        made_from = seen.usages, seen.cut
        if made_from != self._made_from:
            self._made_from = made_from
            taken: set[int] = set()
            records = (_process(usage, now, begun, taken) for usage in seen.usages)
            packed = b"".join(map(PROCESS.pack, islice(records, MOST_PROCESSES)))
            self._rest = packed.ljust(_PROCESSES_SIZE, b"\0") + self._instances(now, seen)
            self._rest = self._rest.ljust(_REST_SIZE, b"\0")
        return self._rest

    def _instances(self, now: Reading, seen: "Seen") -> bytes:
        if seen.cut is None:
            return b""
        holders = {each.uuid: (usage, each) for usage in seen.usages for each in usage.instances}
        gpu, compute = [], []
        for part in seen.cut.parts:
            memory = part.profile.memory
            reserved = min(now.memory_reserved, memory)
            used = 0
            for each in part.computes:
                usage, instance = holders.get(each.uuid, (None, None))
                shown = instance_reading(now, instance, usage) if instance else None
                used += shown.memory_used if shown else 0
                compute.append(
                    {
                        "uuid": each.uuid,
                        "used": 1,
                        "gpu_instance": part.id,
                        "id": each.id,
                        "profile": self._driver.compute_profile(each.slices),
                        "start": each.start,
                        "size": each.slices,
                        "slices": each.slices,
                        "sm": round(shown.busy) if shown else 0,
                    }
                )
            gpu.append(
                {
                    "used": 1,
                    "id": part.id,
                    "profile": part.profile.id,
                    "start": part.start,
                    "size": part.profile.units,
                    "memory_total": memory * _MIB,
                    "memory_reserved": reserved * _MIB,
                    "memory_used": min(used, memory - reserved) * _MIB,
                }
            )
        packed = b"".join(map(GPU_INSTANCE.pack, gpu[:MOST_GPU_INSTANCES]))
        devices = b"".join(map(COMPUTE_INSTANCE.pack, compute[:MOST_COMPUTE_INSTANCES]))
        return packed.ljust(_GPU_INSTANCES_SIZE, b"\0") + devices

    def _reasons(self, now: Reading) -> int:
        bits = 0
        for throttle in now.throttles:
            bits |= self._driver.clock_reasons[throttle]
        return bits

    def _recovery(self, xid: int) -> int:
        return self._driver.recovery.get(xid, self._driver.failed)

    @staticmethod
    def _put(values: list[Any], fields: Mapping[str, Any]) -> None:
        for name, value in fields.items():
            place = _PLACES[name]
            if isinstance(value, list):
                values[place.start : place.start + len(value)] = value
            else:
                values[place.start] = value


def _damage(now: Reading, *, failed: bool) -> dict[str, int]:
    """Return what the card has lost of its memory: rows or pages, whichever its kind has.

    A row is replaced, and a page retired, when the card is reset: which is what mends it here.
    """
    rows, pages = now.remapped_uncorrectable or 0, now.retired_uncorrectable or 0
    return {
        "remapped_corrected": now.remapped_correctable or 0,
        "remapped_uncorrected": rows,
        "remap_pending": int(failed and rows > 0),
        "remap_failed": int(now.remap_failed or False),
        "retired_single": now.retired_correctable or 0,
        "retired_double": pages,
        "retired_pending": int(failed and pages > 0),
    }


def pid_of(name: str, taken: set[int]) -> int:
    """Return a PID for a container: always the same, unless another of the card has it."""
    pid = zlib.crc32(name.encode()) % _PIDS + _FIRST_PID
    while pid in taken:
        pid += 1
    taken.add(pid)
    return pid


def _process(
    usage: Usage, now: Reading, begun: Mapping[Any, int], taken: set[int]
) -> dict[str, Any]:
    name = "/".join(usage.container)
    share = usage.load.busy / now.busy if now.busy else 0
    return {
        "pid": pid_of(name, taken),
        "name": name,
        "owner": usage.owner,
        "started": begun.get(usage.container, 0),
        "memory": usage.load.memory * _MIB,
        "sm": min(100, usage.load.busy),
        "memory_busy": min(100, round(now.memory_busy * share)),
        "type": PROCESS_TYPES["PROCESS_COMPUTE"],
        "gpu_instance": usage.instances[0].gpu_instance if usage.instances else NO_INSTANCE,
        "compute_instance": (
            usage.instances[0].compute_instance if usage.instances else NO_INSTANCE
        ),
    }
