"""What a card shows of itself at a moment. DCGM's names, HAMi's, the page and `top` all read this.

`sources.load` makes readings, from the work of the containers that hold the card. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from hami_mock.kubelet.holder import Container
from hami_mock.node.holders import Load

if TYPE_CHECKING:
    from hami_mock.node.instances import Instance


class Throttle(StrEnum):
    """Why clocks are lower than they could be, as DCGM's clock events are called."""

    IDLE = "gpu_idle"
    POWER_CAP = "power_cap"
    HARDWARE = "hw_slowdown"
    SOFTWARE_THERMAL = "sw_thermal"
    HARDWARE_THERMAL = "hw_thermal"


@dataclass(frozen=True, slots=True)
class Reading:
    """A card now; used, reserved and free memory add up to all of it.

    - busy, memory_busy: percent of the time that its compute or its memory was in use
    - memory_used, memory_reserved, memory_free: MiB; reserved is what the driver keeps
    - power, power_limit: W; energy: mJ since the agent began
    - temperature, memory_temperature: °C; fan: percent, None where there is none
    - sm_clock, memory_clock: MHz
    - tensor, dram: the part of the time, 0 to 1
    - pcie_sent, pcie_received: bytes a second
    - nvlink_bytes: sent and received since the agent began; nvlink_speed: now, a second
    - remapped_*: rows of memory; remap_failed: one could not be replaced; None where a card doesn't
      remap rows
    - ecc_errors, corrected_errors: of memory, those that ECC couldn't mend and those that it did
    - retired_*: pages of memory; None where a card doesn't retire pages
    - held: seconds since the agent began that the clocks were low, by all that kept them so
    - last_xid: the newest error, 0 if there was none
    """

    busy: float
    memory_busy: float
    memory_used: int
    memory_reserved: int
    memory_free: int
    power: float
    power_limit: float
    energy: int
    temperature: float
    memory_temperature: float
    fan: int | None
    sm_clock: int
    memory_clock: int
    tensor: float = 0.0
    dram: float = 0.0
    pcie_sent: float = 0.0
    pcie_received: float = 0.0
    nvlink_bytes: int = 0
    nvlink_speed: float = 0.0
    remapped_correctable: int | None = None
    remapped_uncorrectable: int | None = None
    remap_failed: bool | None = None
    retired_correctable: int | None = None
    retired_uncorrectable: int | None = None
    ecc_errors: int = 0
    corrected_errors: int = 0
    last_xid: int = 0
    throttles: frozenset[Throttle] = frozenset()
    held: Mapping[frozenset[Throttle], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """What one container makes of one card that it holds.

    `memory_limit` (MiB) and `cores_limit` (percent) are what it asked for; the whole card's if it
    asked for no part.
    """

    container: Container
    load: Load
    memory_limit: int
    cores_limit: int
    slots: int = 1
    instances: "tuple[Instance, ...]" = ()
    """What was cut out of the card for it."""
    owner: str = ""
    """What HAMi's library in the container knows it by."""
