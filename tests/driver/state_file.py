"""A writer of state files, small and slow: the tests' own, made from the layout alone."""

import ctypes
import mmap
import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hami_mock.views.driver import layout
from hami_mock.views.driver.layout import CARD, EVENT, HEADER, LIVE, NO_INSTANCE

MIB = 1 << 20
GIB = 1 << 30
FUTEX = {"x86_64": 202, "aarch64": 98}
_FUTEX_WAKE = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def card_uuid(index: int) -> str:
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'card {index}')}"


def mig_uuid(index: int, instance: int) -> str:
    return f"MIG-{uuid.uuid5(uuid.NAMESPACE_DNS, f'card {index} instance {instance}')}"


def profile(number: int, identity: int, slices: int, size: int, memory: int) -> dict[str, Any]:
    """A profile of an A100 with 40 GB."""
    starts = {1: range(7), 2: (0, 2, 4), 4: (0, 4), 8: (0,)}[size]
    return {
        "number": number,
        "id": identity,
        "slices": slices,
        "memory_slices": size,
        "memory": memory,
        "most": len(starts),
        "multiprocessors": 14 * slices,
        "copy_engines": slices,
        "decoders": slices // 2,
        "capabilities": 1,
        "compute_profiles": {1: 0b1, 2: 0b11, 3: 0b111, 4: 0b1011, 7: 0b11111}[slices],
        "placement_count": len(starts),
        "starts": tuple(starts),
        "name": f"{slices}g.{5 * size}gb",
    }


PROFILES = [
    profile(0, 19, 1, 1, 4864),
    profile(1, 14, 2, 2, 9856),
    profile(2, 9, 3, 4, 19968),
    profile(4, 0, 7, 8, 40192),
]


def identity(index: int, cards: int) -> dict[str, Any]:
    """A card that has everything, linked to the one beside it."""
    peer = index ^ 1
    links = 4 if peer < cards else 0
    flags = layout.FLAGS
    return {
        "uuid": card_uuid(index),
        "name": "NVIDIA A100-SXM4-40GB",
        "serial": f"{1320000000000 + index}",
        "board_part_number": "692-2G506-0200-002",
        "vbios": "92.00.19.00.01",
        "inforom_image": "G506.0200.00.04",
        "inforom_oem": "2.0",
        "inforom_ecc": "6.16",
        "inforom_power": "1.0",
        "gsp_firmware": "580.65.06",
        "memory_total": 40960 * MIB,
        "bar1_total": 64 * GIB,
        "flags": flags["FLAG_ECC"]
        | flags["FLAG_FAN"]
        | flags["FLAG_MIG"]
        | flags["FLAG_ROW_REMAPPER"]
        | flags["FLAG_MEMORY_TEMPERATURE"],
        "brand": 14,
        "architecture": 7,
        "minor": index,
        "pci_bus": 0x1B + index,
        "pci_id": 0x20B010DE,
        "pci_subsystem_id": 0x134F10DE,
        "pci_class": 0x030200,
        "board_id": 0x1B00 + index,
        "module_id": index % 8,
        "pcie_switch": 1 + index // 2,
        "pcie_root": 1 + index // 4,
        "numa_node": index // 4 % 2,
        "cpus": (0xFF << 8 * (index // 4 % 2),),
        "cores": 6912,
        "multiprocessors": 108,
        "compute_major": 8,
        "memory_bus_width": 5120,
        "power_limit_least": 100_000,
        "power_limit_most": 400_000,
        "power_limit_default": 400_000,
        "graphics_clock_least": 210,
        "graphics_clock_step": 15,
        "graphics_clock_most": 1410,
        "sm_clock_most": 1410,
        "memory_clock_most": 1215,
        "video_clock_most": 1290,
        "graphics_clock_default": 1095,
        "memory_clock_default": 1215,
        "memory_clocks": (1215,),
        "pcie_generation_most": 4,
        "pcie_generation_card": 4,
        "pcie_width_most": 16,
        "irq": 100 + index,
        "fans": 1,
        "fan_least": 30,
        "fan_most": 100,
        "threshold_shutdown": 92,
        "threshold_slowdown": 89,
        "threshold_gpu_most": 85,
        "threshold_memory_most": 95,
        "link_count": links,
        "link_version": 3,
        "links": [
            {
                "remote_bus": 0x1B + peer,
                "remote_pci_id": 0x20B010DE,
                "remote_link": number,
                "speed": 25000,
            }
            for number in range(links)
        ],
        "mig_slices": 8,
        "mig_profiles": PROFILES,
    }


def live(index: int) -> dict[str, Any]:
    """What a card shows that does something; every number tells which card it is of."""
    return {
        "timestamp": time.time_ns() // 1000,
        "gpu": 40 + index % 50,
        "memory": 20 + index % 50,
        "memory_used": 1000 * MIB + index * MIB,
        "memory_reserved": 500 * MIB,
        "memory_free": (40960 - 1500 - index) * MIB,
        "bar1_used": 2 * MIB,
        "energy": 123_456_789_000 + index,
        "power": 250_000 + index,
        "power_average": 240_000 + index,
        "power_limit": 400_000,
        "power_limit_enforced": 400_000,
        "temperature": 50 + index % 20,
        "memory_temperature": 60,
        "fan": 45,
        "fan_rpm": 2000,
        "graphics_clock": 1200,
        "sm_clock": 1200,
        "memory_clock": 1215,
        "video_clock": 1100,
        "clock_reasons": 4,
        "pcie_generation": 4,
        "pcie_width": 16,
        "pcie_sent": 1000 + index,
        "pcie_received": 2000 + index,
        "links_sent": (7,) * 4,
        "ecc_dram_corrected": 3,
        "ecc_sram_corrected": 2,
        "ecc_dram_uncorrected_ever": 5,
        "ecc_mode": 1,
        "ecc_mode_pending": 1,
        "persistence_mode": 1,
        "process_count": 2,
        "processes": [
            {
                "memory": 600 * MIB,
                "pid": 1000 + index * 10 + number,
                "gpu_instance": NO_INSTANCE,
                "compute_instance": NO_INSTANCE,
                "type": 1,
                "sm": 20,
                "memory_busy": 10,
                "name": f"train-{number}",
            }
            for number in range(2)
        ],
    }


def cut(index: int) -> dict[str, Any]:
    """A card in MIG mode: 1g.5gb at 0, and 3g.20gb at 4 with a compute instance of two slices."""
    return live(index) | {
        "mig_mode": 1,
        "mig_mode_pending": 1,
        "process_count": 0,
        "gpu_instances": [
            {"used": 1, "id": 7, "profile": 19, "start": 0, "size": 1, "memory_total": 4864 * MIB},
            {
                "used": 1,
                "id": 2,
                "profile": 9,
                "start": 4,
                "size": 4,
                "memory_total": 19968 * MIB,
                "memory_used": 100 * MIB,
                "memory_reserved": 10 * MIB,
            },
        ],
        "compute_instances": [
            {"used": 1, "uuid": mig_uuid(index, 7), "gpu_instance": 7, "size": 1, "slices": 1},
            {
                "used": 1,
                "uuid": mig_uuid(index, 2),
                "gpu_instance": 2,
                "profile": 1,
                "size": 2,
                "slices": 2,
            },
        ],
    }


class StateFile:
    """A folder with a state file, and how to change what is in it."""

    def __init__(
        self,
        folder: Path,
        cards: int = 2,
        generation: int = 1,
        *,
        first: int = 0,
        unlike: Mapping[str, Any] | None = None,
    ) -> None:
        """Show so many cards, from that one on, with some fields of their identities changed."""
        self.folder = folder
        self.path = folder / layout.STATE_FILE
        self._events = 0
        fresh = folder / f"{layout.STATE_FILE}.new"
        fresh.write_bytes(self._header(cards, generation) + self._cards(cards, first, unlike or {}))
        fresh.rename(self.path)
        self._fd = os.open(self.path, os.O_RDWR)
        self._sequences = [0] * cards

    def close(self) -> None:
        os.close(self._fd)

    def set(self, card: int, values: Mapping[str, Any]) -> None:
        """Write a card's live part."""
        self.set_packed(card, LIVE.pack(values))

    def set_packed(self, card: int, data: bytes) -> None:
        """Write it as the layout says: under its sequence lock."""
        start = layout.live_offset(card)
        sequence = self._sequences[card]
        os.pwrite(self._fd, (sequence + 1).to_bytes(8, "little"), start)
        os.pwrite(self._fd, data[8:], start + 8)
        os.pwrite(self._fd, (sequence + 2).to_bytes(8, "little"), start)
        self._sequences[card] = sequence + 2

    def leave_half_written(self, card: int) -> None:
        """Be a writer that was killed at its work."""
        os.pwrite(
            self._fd, (self._sequences[card] + 1).to_bytes(8, "little"), layout.live_offset(card)
        )

    def xid(self, card: int, number: int, *, kind: int = 8) -> int:
        """Tell of an event, and wake whoever waits; return how many did."""
        entry = {
            "sequence": self._events + 1,
            "type": kind,
            "data": number,
            "timestamp": time.time_ns() // 1000,
            "card": card,
            "gpu_instance": NO_INSTANCE,
            "compute_instance": NO_INSTANCE,
        }
        os.pwrite(self._fd, EVENT.pack(entry), HEADER.offset("events", self._events % layout.RING))
        self._events += 1
        os.pwrite(self._fd, self._events.to_bytes(8, "little"), HEADER.offset("event_sequence"))
        futex = HEADER.offset("event_futex")
        os.pwrite(self._fd, (self._events % (1 << 32)).to_bytes(4, "little"), futex)
        return self._wake(futex)

    def replaced(
        self,
        cards: int,
        generation: int = 2,
        *,
        first: int = 0,
        unlike: Mapping[str, Any] | None = None,
        keeps_events: bool = True,
    ) -> "StateFile":
        """Put another file in this one's place."""
        other = StateFile(self.folder, cards, generation, first=first, unlike=unlike)
        if keeps_events:
            start, end = HEADER.offset("event_sequence"), HEADER.size
            os.pwrite(other._fd, os.pread(self._fd, end - start, start), start)
            other._events = self._events
        os.pwrite(self._fd, (1).to_bytes(4, "little"), HEADER.offset("moved"))
        return other

    def _wake(self, offset: int) -> int:
        with mmap.mmap(self._fd, HEADER.size) as mapped:
            word = ctypes.c_uint32.from_buffer(mapped, offset)
            everybody = 0x7FFFFFFF
            number = FUTEX[os.uname().machine]
            woken = _LIBC.syscall(number, ctypes.byref(word), _FUTEX_WAKE, everybody, 0, 0, 0)
            del word
        assert woken >= 0
        return int(woken)

    def _header(self, cards: int, generation: int) -> bytes:
        return HEADER.pack(
            {
                "magic": layout.MAGIC,
                "version": layout.VERSION,
                "header_size": HEADER.size,
                "card_size": CARD.size,
                "card_count": cards,
                "file_size": layout.file_size(cards),
                "generation": generation,
                "cuda_version": 13000,
                "nvml_version": "13.580.65.06",
                "driver_version": "580.65.06",
                "driver_branch": "r580_00",
                "started": time.time_ns() // 1000 - 3_600_000_000,
            }
        )

    def _cards(self, cards: int, first: int, unlike: Mapping[str, Any]) -> bytes:
        return b"".join(
            CARD.pack(
                {"identity": {**identity(index, first + cards), **unlike}, "live": live(index)}
            )
            for index in range(first, first + cards)
        )
