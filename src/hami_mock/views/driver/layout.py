"""The driver's state file: its one description. What setters send is described in `messages`.

`tools/native_header.py` writes native/layout.h from these tables. A change of them needs another
VERSION.

The file STATE_FILE in the state folder is one HEADER, then a CARD for each card:

- Its writer makes it beside its place and renames it there. It is never truncated. When other cards
  or another layout must be shown, the writer makes a new file with another `generation`, renames it
  over the old one, and writes 1 to the old one's `moved`; readers look for the new one then. The
  events and their sequence go on in it.
- A card's `identity` stays as it is for the life of the file.
- A card's `live` part has a sequence lock. Three `os.pwrite`: an odd number to `sequence`, all that
  follows it, the next even number to `sequence`. Readers try again while it is odd or has changed.
  The kernel's lock on the file, which every `pwrite` takes, keeps them in order on any machine.
- An event: first its entry, `events[event_sequence % RING]`, with `event_sequence` + 1 as its own
  sequence; then `event_sequence`, one higher; then `event_futex`, one higher; then FUTEX_WAKE (not
  the private one) on that word, for as many as wait.
"""

from typing import Final

from hami_mock.views.driver.record import Field as F  # noqa: N817
from hami_mock.views.driver.record import Record

MAGIC: Final = 0x4B434F4D494D4148  # the bytes HAMIMOCK
VERSION: Final = 3
STATE_FILE: Final = "cards.bin"
STATE_VARIABLE: Final = "HAMI_MOCK_DRIVER_STATE"
"""The environment variable that names the state folder."""
STATE_BESIDE_LIBRARY: Final = "../state"
"""Where the library looks next, seen from its own folder."""
STATE_IN_PODS: Final = "/run/hami-mock/driver/state"
"""Where it looks last."""

MOST_CARDS: Final = 128
RING: Final = 256
MOST_PROCESSES: Final = 64
MOST_LINKS: Final = 36
MOST_GPU_INSTANCES: Final = 8
MOST_COMPUTE_INSTANCES: Final = 8
MOST_MIG_PROFILES: Final = 18
MOST_PLACEMENTS: Final = 8
MOST_MEMORY_CLOCKS: Final = 4

# Bits of an identity's `flags`.
FLAGS: Final = {
    "FLAG_ECC": 1 << 0,  # has ECC memory
    "FLAG_FAN": 1 << 1,  # has fans of its own
    "FLAG_MIG": 1 << 2,  # can be cut into MIG instances
    "FLAG_ROW_REMAPPER": 1 << 3,  # remaps rows (Ampere and newer); without it, pages are retired
    "FLAG_MEMORY_TEMPERATURE": 1 << 4,  # has a sensor in its memory
    "FLAG_DISPLAY": 1 << 5,  # has connectors for displays
    "FLAG_FABRIC": 1 << 6,  # its NVLinks end in switches that a fabric manager rules
}

# A process's `type` bits.
PROCESS_TYPES: Final = {"PROCESS_COMPUTE": 1, "PROCESS_GRAPHICS": 2, "PROCESS_MPS": 4}

NO_INSTANCE: Final = 0xFFFFFFFF
"""A GPU or compute instance's ID where a whole card is meant."""

EVENT = Record(
    "event",
    "Something that happened to a card.",
    [
        F("sequence", "u64", "its own place among all events, from 1 on; 0: none was here yet"),
        F("type", "u64", "one bit of NVML's event types (8: a critical Xid)"),
        F("data", "u64", "the Xid's number, if it is one"),
        F("timestamp", "u64", "when it happened, µs since 1970"),
        F("card", "u32", "which card of this file"),
        F("gpu_instance", "u32", "NO_INSTANCE: the whole card"),
        F("compute_instance", "u32", "NO_INSTANCE: the whole card"),
    ],
)

HEADER = Record(
    "header",
    "How the file begins.",
    [
        F("magic", "u64", "MAGIC"),
        F("version", "u32", "VERSION"),
        F("header_size", "u32", "bytes of this record"),
        F("card_size", "u32", "bytes of a card's record"),
        F("card_count", "u32", "how many follow, MOST_CARDS at most"),
        F("file_size", "u64", "bytes"),
        F("generation", "u64", "another in each file of a folder, never 0"),
        F("moved", "u32", "1: another file has taken this one's place"),
        F("cuda_version", "u32", "1000 * major + 10 * minor"),
        F("nvml_version", "char", "13.580.65.06: CUDA's major version and the driver's", 80),
        F("driver_version", "char", "580.65.06", 80),
        F("driver_branch", "char", "r580_00", 80),
        F("started", "u64", "when the driver was loaded, µs since 1970"),
        F("event_sequence", "u64", "the newest event's"),
        F("event_futex", "u32", "changes with each event; readers sleep on it"),
        F("events", EVENT, "the newest ones, each at its sequence - 1 modulo RING", RING),
    ],
)

LINK = Record(
    "link",
    "An NVLink and what is at its other end.",
    [
        F("remote_domain", "u32", "PCI address of the other end"),
        F("remote_bus", "u32", ""),
        F("remote_device", "u32", ""),
        F("remote_function", "u32", ""),
        F("remote_pci_id", "u32", "device ID << 16 | maker's"),
        F("remote_type", "u32", "NVML's: 0 a GPU, 1 an NPU, 2 a switch, 255 unknown"),
        F("remote_link", "u32", "its number at the other end"),
        F("speed", "u32", "MB/s, one way"),
    ],
)

MIG_PROFILE = Record(
    "mig_profile",
    "A GPU instance that a card can be cut into.",
    [
        F("memory", "u64", "MiB"),
        F("number", "u32", "which of NVML's GPU instance profiles: 0 1_SLICE, 1 2_SLICE, …"),
        F("id", "u32", "the profile ID of nvidia-smi: 19, 14, 9, 5, 0, …"),
        F("slices", "u32", "of compute; 0: this element of the table is empty"),
        F("memory_slices", "u32", "the size of its placements"),
        F("most", "u32", "how many a card has room for"),
        F("multiprocessors", "u32", ""),
        F("copy_engines", "u32", ""),
        F("decoders", "u32", ""),
        F("encoders", "u32", ""),
        F("jpegs", "u32", ""),
        F("ofas", "u32", ""),
        F("capabilities", "u32", "bits: 1 peer to peer, 2 graphics"),
        F("compute_profiles", "u32", "bits: which of NVML's compute instance profiles it can have"),
        F("placement_count", "u32", ""),
        F("starts", "u8", "where it may begin, in memory slices", MOST_PLACEMENTS),
        F("name", "char", "1g.5gb, without the MIG before it", 32),
    ],
)

IDENTITY = Record(
    "identity",
    "What stays as it is.",
    [
        F("uuid", "char", "GPU-…", 80),
        F("name", "char", "the product's", 96),
        F("serial", "char", "", 32),
        F("board_part_number", "char", "", 80),
        F("vbios", "char", "", 32),
        F("inforom_image", "char", "", 16),
        F("inforom_oem", "char", "", 16),
        F("inforom_ecc", "char", "", 16),
        F("inforom_power", "char", "", 16),
        F("gsp_firmware", "char", "its version; empty: none", 64),
        F("memory_total", "u64", "bytes"),
        F("bar1_total", "u64", "bytes"),
        F("flags", "u32", "FLAG_…"),
        F("brand", "u32", "NVML's number"),
        F("architecture", "u32", "NVML's number"),
        F("minor", "u32", "the number of /dev/nvidia…"),
        F("pci_domain", "u32", ""),
        F("pci_bus", "u32", ""),
        F("pci_device", "u32", ""),
        F("pci_function", "u32", ""),
        F("pci_id", "u32", "device ID << 16 | maker's"),
        F("pci_subsystem_id", "u32", "likewise, of the board"),
        F("pci_class", "u32", "0x030200: a 3D controller"),
        F("board_id", "u32", "cards with the same one share a board"),
        F("module_id", "u32", "its place on the baseboard"),
        F("pcie_switch", "u32", "cards with the same one share a PCIe switch; 0: there is none"),
        F("pcie_root", "u32", "cards with the same one share a host bridge"),
        F("numa_node", "i32", "-1: not said"),
        F("cpus", "u64", "bits: the CPUs near it", 16),
        F("cores", "u32", "CUDA cores"),
        F("multiprocessors", "u32", ""),
        F("compute_major", "u32", "of the compute capability"),
        F("compute_minor", "u32", ""),
        F("memory_bus_width", "u32", "bits"),
        F("copy_engines", "u32", ""),
        F("decoders", "u32", ""),
        F("encoders", "u32", ""),
        F("jpegs", "u32", ""),
        F("ofas", "u32", ""),
        F("power_limit_least", "u32", "mW"),
        F("power_limit_most", "u32", "mW"),
        F("power_limit_default", "u32", "mW"),
        F("graphics_clock_least", "u32", "MHz"),
        F("graphics_clock_step", "u32", "MHz between two that can be chosen"),
        F("graphics_clock_most", "u32", "MHz"),
        F("sm_clock_most", "u32", "MHz"),
        F("memory_clock_most", "u32", "MHz"),
        F("video_clock_most", "u32", "MHz"),
        F("graphics_clock_default", "u32", "MHz, what applications get"),
        F("memory_clock_default", "u32", "MHz, what applications get"),
        F("memory_clocks", "u32", "MHz that can be chosen, highest first", MOST_MEMORY_CLOCKS),
        F("pcie_generation_most", "u32", "of the card and its slot"),
        F("pcie_generation_card", "u32", "of the card alone"),
        F("pcie_width_most", "u32", "lanes"),
        F("irq", "u32", ""),
        F("fans", "u32", "how many"),
        F("fan_least", "u32", "percent"),
        F("fan_most", "u32", "percent"),
        F("threshold_shutdown", "u32", "°C"),
        F("threshold_slowdown", "u32", "°C"),
        F("threshold_gpu_most", "u32", "°C"),
        F("threshold_memory_most", "u32", "°C; 0: not said"),
        F("fabric_clique", "u32", ""),
        F("fabric_cluster", "u8", "a UUID's bytes", 16),
        F("link_count", "u32", "NVLinks"),
        F("link_version", "u32", "NVML's number"),
        F("links", LINK, "", MOST_LINKS),
        F("mig_slices", "u32", "memory slices of the whole card"),
        F("mig_profiles", MIG_PROFILE, "", MOST_MIG_PROFILES),
    ],
)

PROCESS = Record(
    "process",
    "A program that has opened the card.",
    [
        F("memory", "u64", "bytes of the card's"),
        F("started", "u64", "µs since 1970"),
        F("pid", "u32", "of the node's PID namespace; 0: this element and all after it are empty"),
        F("gpu_instance", "u32", "NO_INSTANCE: the whole card"),
        F("compute_instance", "u32", "NO_INSTANCE: the whole card"),
        F("type", "u8", "PROCESS_…"),
        F("sm", "u8", "percent"),
        F("memory_busy", "u8", "percent"),
        F("encoder", "u8", "percent"),
        F("decoder", "u8", "percent"),
        F("jpeg", "u8", "percent"),
        F("ofa", "u8", "percent"),
        F("name", "char", "", 64),
        F("owner", "char", "what HAMi's library knows its container by; empty: it isn't there", 48),
    ],
)

GPU_INSTANCE = Record(
    "gpu_instance",
    "A GPU instance of MIG. Its profile says what it has.",
    [
        F("memory_used", "u64", "bytes"),
        F("memory_reserved", "u64", "bytes"),
        F("memory_total", "u64", "bytes"),
        F("used", "u32", "1: it is there; 0: this element of the table is empty"),
        F("id", "u32", "below 32"),
        F("profile", "u32", "its profile's id"),
        F("start", "u32", "in memory slices"),
        F("size", "u32", "in memory slices"),
    ],
)

COMPUTE_INSTANCE = Record(
    "compute_instance",
    "A compute instance of MIG: with its GPU instance, a MIG device. Its index is its place here.",
    [
        F("uuid", "char", "MIG-…", 80),
        F("used", "u32", "1: it is there; 0: this element of the table is empty"),
        F("gpu_instance", "u32", "the ID of the one that it is in"),
        F("id", "u32", "below 8"),
        F("profile", "u32", "which of NVML's compute instance profiles, by its number"),
        F("start", "u32", "in compute slices of its GPU instance"),
        F("size", "u32", "in compute slices"),
        F("slices", "u32", "of compute"),
        F("sm", "u32", "percent"),
    ],
)

LIVE = Record(
    "live",
    "What changes, under a sequence lock.",
    [
        F("sequence", "u64", "odd while somebody writes"),
        F("timestamp", "u64", "when this was true, µs since 1970"),
        F("lost", "u32", "1: it has fallen off the bus"),
        F(
            "recovery_action",
            "u32",
            "NVML's: 0 none, 1 reset, 2 reboot, 3 drain, 4 both",
        ),
        F("last_xid", "u32", "0: there was none"),
        # Use, percent.
        F("gpu", "u32", ""),
        F("memory", "u32", ""),
        F("encoder", "u32", ""),
        F("decoder", "u32", ""),
        F("jpeg", "u32", ""),
        F("ofa", "u32", ""),
        F("tensor", "u32", "hundredths of a percent of the time that the tensor cores were busy"),
        F("dram", "u32", "likewise, that memory was read or written"),
        F("memory_used", "u64", "bytes, without the reserved ones"),
        F("memory_reserved", "u64", "bytes"),
        F("memory_free", "u64", "bytes"),
        F("bar1_used", "u64", "bytes"),
        # Power, clocks and heat.
        F("energy", "u64", "mJ since the driver was loaded"),
        F("power", "u32", "mW now"),
        F("power_average", "u32", "mW over the last second"),
        F("power_limit", "u32", "mW, as set"),
        F("power_limit_enforced", "u32", "mW"),
        F("temperature", "u32", "°C"),
        F("memory_temperature", "u32", "°C"),
        F("fan", "u32", "percent"),
        F("fan_rpm", "u32", ""),
        F("performance_state", "u32", "0 to 15"),
        F("graphics_clock", "u32", "MHz"),
        F("sm_clock", "u32", "MHz"),
        F("memory_clock", "u32", "MHz"),
        F("video_clock", "u32", "MHz"),
        F("graphics_clock_set", "u32", "MHz for applications; 0: the default one"),
        F("memory_clock_set", "u32", "MHz for applications; 0: the default one"),
        F("gpu_locked_least", "u32", "MHz; 0 and 0: not locked"),
        F("gpu_locked_most", "u32", "MHz"),
        F("memory_locked_least", "u32", "MHz; 0 and 0: not locked"),
        F("memory_locked_most", "u32", "MHz"),
        F("clock_reasons", "u64", "NVML's bits: why the clocks are as low as they are"),
        F("violations", "u64", "ns that each of NVML's performance policies has held it back", 12),
        # The bus and the links.
        F("pcie_generation", "u32", "now"),
        F("pcie_width", "u32", "lanes now"),
        F("pcie_sent", "u32", "KB/s"),
        F("pcie_received", "u32", "KB/s"),
        F("pcie_replays", "u32", "since the driver was loaded"),
        F("links_down", "u64", "bits: NVLinks that don't work now"),
        F("links_sent", "u64", "KiB by each NVLink since the driver was loaded", MOST_LINKS),
        F("links_received", "u64", "likewise", MOST_LINKS),
        F("link_errors", "u32", "of each NVLink, of all kinds", MOST_LINKS),
        # Errors of memory: since the driver was loaded, and ever.
        F("ecc_sram_corrected", "u64", ""),
        F("ecc_sram_uncorrected", "u64", ""),
        F("ecc_dram_corrected", "u64", ""),
        F("ecc_dram_uncorrected", "u64", ""),
        F("ecc_sram_corrected_ever", "u64", ""),
        F("ecc_sram_uncorrected_ever", "u64", ""),
        F("ecc_dram_corrected_ever", "u64", ""),
        F("ecc_dram_uncorrected_ever", "u64", ""),
        F("remapped_corrected", "u32", "rows, for errors that were corrected"),
        F("remapped_uncorrected", "u32", "rows, for errors that weren't"),
        F("remap_pending", "u32", "1: some wait for a reset"),
        F("remap_failed", "u32", "1: one couldn't be remapped"),
        F("remap_banks", "u32", "banks with all, most, some, few and no spare rows left", 5),
        F("retired_single", "u32", "pages, for single bit errors"),
        F("retired_double", "u32", "pages, for double bit errors"),
        F("retired_pending", "u32", "1: some wait for a reset"),
        # Modes.
        F("persistence_mode", "u32", "0 or 1"),
        F("compute_mode", "u32", "NVML's: 0 default, 2 prohibited, 3 exclusive process"),
        F("ecc_mode", "u32", "0 or 1"),
        F("ecc_mode_pending", "u32", "0 or 1, from the next reset on"),
        F("accounting_mode", "u32", "0 or 1"),
        F("mig_mode", "u32", "0 or 1"),
        F("mig_mode_pending", "u32", "0 or 1, from the next reset on"),
        F("process_count", "u32", "how many of `processes` there are"),
        F("processes", PROCESS, "", MOST_PROCESSES),
        F("gpu_instances", GPU_INSTANCE, "", MOST_GPU_INSTANCES),
        F("compute_instances", COMPUTE_INSTANCE, "", MOST_COMPUTE_INSTANCES),
    ],
)

CARD = Record("card", "A card.", [F("identity", IDENTITY, ""), F("live", LIVE, "")])

RECORDS: Final = (
    EVENT, HEADER, LINK, MIG_PROFILE, IDENTITY, PROCESS, GPU_INSTANCE, COMPUTE_INSTANCE, LIVE, CARD,
)  # fmt: skip
"""In an order in which each is known before it is used."""


def card_offset(index: int) -> int:
    """Return where a card begins in the file."""
    return HEADER.size + index * CARD.size


def live_offset(index: int) -> int:
    """Return where a card's live part begins in the file: with its sequence."""
    return card_offset(index) + CARD.offset("live")


def file_size(cards: int) -> int:
    return card_offset(cards)
