"""What NVML says of NVIDIA's cards, in its own numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

from hami_mock.vendors.catalog import Model
from hami_mock.vendors.driver import DriverCard, Machine
from hami_mock.vendors.instance_profile import InstanceProfile
from hami_mock.vendors.nvidia_boards import Board, bar1, board, has_hbm, multiprocessors
from hami_mock.vendors.nvidia_mig_profiles import instance_profiles
from hami_mock.vendors.nvidia_versions import cuda
from hami_mock.vendors.physics import Traits, traits

_MIB = 1024 * 1024
_MAKER = 0x10DE
_BRANDS = {"tesla": 2, "nvidia": 14, "geforce": 15}
_ARCHITECTURES = {
    "pascal": 4, "volta": 5, "turing": 6, "ampere": 7, "ada-lovelace": 8, "hopper": 9,
    "blackwell": 10,
}  # fmt: skip
_WITHOUT_GSP = frozenset({"pascal", "volta"})
_GRAPHICS = 2
_COMPUTE_PROFILES = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}
"""NVML's numbers of the compute instance profiles, by their slices."""
_CLOCK_STEP = 15
_A_GPU, _A_SWITCH = 0, 2
_FIRST_SWITCH_BUS = 0xC0
_BANKS = 640
_FIRST_IRQ = 100

XID_EVENT, _SINGLE_BIT_EVENT, _DOUBLE_BIT_EVENT = 8, 1, 2
_MORE_EVENTS = {48: _DOUBLE_BIT_EVENT, 92: _SINGLE_BIT_EVENT}
CLOCK_REASONS = {
    "gpu_idle": 0x1, "power_cap": 0x4, "hw_slowdown": 0x8, "sw_thermal": 0x20, "hw_thermal": 0x48,
}  # fmt: skip
# NVML's performance policies, the last ones of which count time below the clocks that applications
# get, and below the base clocks, whoever was the reason. The power cap takes little.
_POWER, _HEAT, _BOARD, _LOW_USE, _BELOW_SET, _BELOW_BASE = 0, 1, 3, 4, 10, 11
POLICIES = {
    "gpu_idle": (_LOW_USE, _BELOW_SET, _BELOW_BASE),
    "power_cap": (_POWER, _BELOW_SET),
    "hw_slowdown": (_BOARD, _BELOW_SET, _BELOW_BASE),
    "sw_thermal": (_HEAT, _BELOW_SET, _BELOW_BASE),
    "hw_thermal": (_HEAT, _BELOW_SET, _BELOW_BASE),
}
RESET, _REBOOT = 1, 2
RECOVERY = dict.fromkeys((79, 119, 120, 143), _REBOOT)


def about(version: str) -> dict[str, Any]:
    """Return the header's fields for a version of the driver."""
    major, _, minor = cuda(version).partition(".")
    return {
        "driver_version": version,
        "driver_branch": f"r{version.partition('.')[0]}_00",
        "nvml_version": f"{major}.{version}",
        "cuda_version": 1000 * int(major) + 10 * int(minor),
    }


def event_types(xid: int) -> tuple[int, ...]:
    return (XID_EVENT, _MORE_EVENTS[xid]) if xid in _MORE_EVENTS else (XID_EVENT,)


def identify(card: DriverCard, machine: Machine) -> dict[str, Any]:
    """Return a card's identity."""
    model, here, nature = card.model, board(card.model), traits("nvidia", card.model)
    major, _, minor = model.compute.partition(".")
    return {
        "uuid": card.uuid,
        "name": model.product,
        "serial": card.serial,
        "board_part_number": here.part,
        "vbios": here.vbios,
        "inforom_image": f"{here.part[4:8]}.0200.00.05",
        "inforom_oem": "2.1",
        "inforom_ecc": "7.16" if has_hbm(model) else "6.16",
        "gsp_firmware": "" if model.family in _WITHOUT_GSP else machine.version,
        "memory_total": card.memory * _MIB,
        "bar1_total": bar1(model, card.memory) * _MIB,
        "flags": _flags(card, here, nature),
        "brand": _BRANDS[here.brand],
        "architecture": _ARCHITECTURES.get(model.family, 0),
        "minor": card.minor,
        **_place(card, here, machine),
        "cores": model.cores,
        "multiprocessors": multiprocessors(model),
        "compute_major": int(major or 0),
        "compute_minor": int(minor or 0),
        "memory_bus_width": here.bus_width,
        "copy_engines": here.copy,
        "decoders": here.decoders,
        "encoders": here.encoders,
        "jpegs": here.jpegs,
        "ofas": here.ofas,
        **_power_and_clocks(here, nature),
        "pcie_generation_most": here.pcie,
        "pcie_generation_card": here.pcie,
        "pcie_width_most": here.pcie_width,
        "fans": int(nature.has_fan),
        "fan_least": 30 * nature.has_fan,
        "fan_most": 100 * nature.has_fan,
        "threshold_shutdown": here.shutdown,
        "threshold_slowdown": int(nature.slowdown),
        "threshold_gpu_most": here.gpu_most,
        "threshold_memory_most": here.memory_most if has_hbm(model) else 0,
        "link_count": here.links,
        "link_version": here.link_version if here.links else 0,
        "links": [*_links(card, here, machine)],
        **_mig(model),
    }


def compute_profile(slices: int) -> int:
    """Return which of NVML's compute instance profiles has so many slices."""
    return _COMPUTE_PROFILES[slices]


def compute_slices(number: int) -> int:
    """Return how many slices one of NVML's compute instance profiles has; 0: it has no such one."""
    return next((slices for slices, each in _COMPUTE_PROFILES.items() if each == number), 0)


def _mig(model: Model) -> dict[str, Any]:
    """Return what a card can be cut into."""
    known = instance_profiles(model)
    return {
        "mig_slices": max((each.units for each in known), default=0),
        "mig_profiles": [_mig_profile(each) for each in known],
    }


def _mig_profile(profile: InstanceProfile) -> dict[str, Any]:
    # A 4g can't be shared by a part of three slices.
    parts = (s for s in _COMPUTE_PROFILES if s <= profile.slices and (s, profile.slices) != (3, 4))
    return {
        "name": profile.name,
        "number": profile.number,
        "id": profile.id,
        "slices": profile.slices,
        "memory_slices": profile.units,
        "memory": profile.memory,
        "most": profile.most,
        "placement_count": len(profile.starts),
        "starts": list(profile.starts),
        "multiprocessors": profile.multiprocessors,
        "copy_engines": profile.copy,
        "decoders": profile.decoders,
        "encoders": profile.encoders,
        "jpegs": profile.jpegs,
        "ofas": profile.ofas,
        "capabilities": _GRAPHICS if "+gfx" in profile.name else 0,
        "compute_profiles": sum(1 << _COMPUTE_PROFILES[slices] for slices in parts),
    }


def irq(card: DriverCard) -> int:
    return _FIRST_IRQ + card.index


def standing(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is so of a card whatever it does: nobody has set anything."""
    has_ecc = int("FLAG_ECC" in identity["flags"])
    has_rows = "FLAG_ROW_REMAPPER" in identity["flags"]
    linked = len(identity["links"])
    return {
        "bar1_used": _MIB,
        "pcie_generation": identity["pcie_generation_most"],
        "pcie_width": identity["pcie_width_most"],
        # A link that leads nowhere is down.
        "links_down": (1 << identity["link_count"]) - (1 << linked),
        "remap_banks": [_BANKS if has_rows else 0],
        "persistence_mode": 1,
        "ecc_mode": has_ecc,
        "ecc_mode_pending": has_ecc,
    }


def _flags(card: DriverCard, here: Board, nature: Traits) -> frozenset[str]:
    is_geforce = here.brand == "geforce"
    family = card.model.family
    has = {
        "FLAG_ECC": not is_geforce,
        "FLAG_FAN": nature.has_fan,
        "FLAG_MIG": bool(instance_profiles(card.model)),
        "FLAG_ROW_REMAPPER": nature.repair == "rows",
        "FLAG_MEMORY_TEMPERATURE": has_hbm(card.model),
        "FLAG_DISPLAY": is_geforce,
        "FLAG_FABRIC": bool(here.switch) and card.link is not None and family != "ampere",
    }
    return frozenset(name for name, is_so in has.items() if is_so)


def _place(card: DriverCard, here: Board, machine: Machine) -> dict[str, Any]:
    """Return where a card is: on the bus, near which CPUs, behind which switch."""
    domain, bus, device = _pci(card)
    nodes = 1 + max((each.numa or 0) for each in machine.cards)
    node = card.numa or 0
    first, after = (machine.cpus * n // nodes for n in (node, node + 1))
    near = (1 << after) - (1 << first)
    return {
        "pci_domain": domain,
        "pci_bus": bus,
        "pci_device": device,
        "pci_id": int(here.device, 16) << 16 | _MAKER,
        "pci_subsystem_id": int(here.subsystem, 16) << 16 | _MAKER,
        "pci_class": 0x030000 if here.brand == "geforce" else 0x030200,
        "board_id": domain << 16 | bus << 8,
        "module_id": card.index + 1,
        "pcie_switch": card.index // 2 + 1,
        "pcie_root": node + 1,
        "numa_node": -1 if card.numa is None else card.numa,
        "cpus": [near >> 64 * word & (1 << 64) - 1 for word in range(16)],
        "irq": irq(card),
    }


def _power_and_clocks(here: Board, nature: Traits) -> dict[str, Any]:
    limit = round(nature.power_limit * 1000)
    return {
        "power_limit_least": round(limit * here.power_least / 5000) * 5000 or limit,
        "power_limit_most": limit,
        "power_limit_default": limit,
        "graphics_clock_least": nature.idle_clock,
        "graphics_clock_step": _CLOCK_STEP,
        "graphics_clock_most": nature.clock,
        "sm_clock_most": nature.clock,
        "memory_clock_most": nature.memory_clock,
        "video_clock_most": round(nature.clock * here.video),
        "graphics_clock_default": nature.clock,
        "memory_clock_default": nature.memory_clock,
        "memory_clocks": sorted({nature.memory_clock, nature.idle_memory_clock}, reverse=True),
    }


def _pci(card: DriverCard) -> tuple[int, int, int]:
    domain, bus, rest = card.pci_bus_id.split(":")
    return int(domain, 16), int(bus, 16), int(rest.partition(".")[0], 16)


def _links(card: DriverCard, here: Board, machine: Machine) -> Iterator[dict[str, Any]]:
    """Yield where a card's NVLinks end: in switches, or in turn at the cards that it is linked to.

    Which of the other card's links it is follows from the same rule there.
    """
    group = [each for each in machine.cards if card.link and each.link == card.link]
    peers = [each for each in group if each.uuid != card.uuid]
    if not peers:
        return
    for number in range(here.links):
        end = {"speed": here.link_speed, "remote_link": number}
        if here.switch:
            bus, pci = _FIRST_SWITCH_BUS + number % 4, int(here.switch, 16)
            kind, domain, device = _A_SWITCH, _pci(card)[0], 0
        else:
            peer = peers[number % len(peers)]
            domain, bus, device = _pci(peer)
            kind, pci = _A_GPU, int(board(peer.model).device, 16)
            others = [each for each in group if each.uuid != peer.uuid]
            back = next(i for i, each in enumerate(others) if each.uuid == card.uuid)
            end["remote_link"] = back + number // len(peers) * len(others)
        yield end | {
            "remote_domain": domain,
            "remote_bus": bus,
            "remote_device": device,
            "remote_pci_id": pci << 16 | _MAKER,
            "remote_type": kind,
        }
