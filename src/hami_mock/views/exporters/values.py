"""The values that metrics read, by name. Each maker's exporter chooses among them. Pure."""

from collections.abc import Callable
from typing import Any

from hami_mock.node.holders import Load
from hami_mock.node.xid import meaning_of
from hami_mock.vendors.exporter import MIB
from hami_mock.views.exporters.rows import Row

# MiB of a program's context and of its code; the rest of what it uses are its buffers.
_CONTEXT, _MODULE = 256, 32
_MOST_TURNS = 5000
"""Of a fan at full speed, a minute."""


def _load(row: Row) -> Load:
    assert row.usage is not None
    return row.usage.load


def _context(row: Row) -> int:
    return min(_load(row).memory, _CONTEXT)


def _module(row: Row) -> int:
    return min(_load(row).memory - _context(row), _MODULE)


def _buffer(row: Row) -> int:
    return max(_load(row).memory - _CONTEXT - _MODULE, 0)


def _memory_limit(row: Row) -> int:
    assert row.usage is not None
    return row.usage.memory_limit


def _fan_turns(row: Row) -> int:
    fan = row.reading.fan
    return -1 if fan is None else fan * _MOST_TURNS // 100


def _retirement_pending(row: Row) -> int | None:
    """Tell whether pages wait to be retired: until the card is mended, which resets it."""
    pages = row.reading.retired_uncorrectable
    return None if pages is None else int(pages > 0 and not row.is_healthy)


VALUES: dict[str, Callable[[Row], Any]] = {
    "zero": lambda row: 0,
    "one": lambda row: 1,
    # A card
    "busy": lambda row: round(row.reading.busy),
    "busy_exactly": lambda row: row.reading.busy,
    "memory_busy": lambda row: round(row.reading.memory_busy),
    "memory_used": lambda row: row.reading.memory_used,
    "memory_reserved": lambda row: row.reading.memory_reserved,
    "memory_free": lambda row: row.reading.memory_free,
    "memory_not_used": lambda row: row.card.memory - row.reading.memory_used,
    "memory_total": lambda row: row.card.memory,
    "memory_percent": lambda row: 100 * row.reading.memory_used / row.card.memory,
    "power": lambda row: row.reading.power,
    "power_limit": lambda row: row.reading.power_limit,
    "energy": lambda row: row.reading.energy,
    "temperature": lambda row: round(row.reading.temperature),
    "memory_temperature": lambda row: round(row.reading.memory_temperature),
    "fan_turns": _fan_turns,
    "sm_clock": lambda row: row.reading.sm_clock,
    "memory_clock": lambda row: row.reading.memory_clock,
    "tensor": lambda row: row.reading.tensor,
    "dram": lambda row: row.reading.dram,
    "pcie_sent": lambda row: row.reading.pcie_sent,
    "pcie_received": lambda row: row.reading.pcie_received,
    "nvlink_speed": lambda row: row.reading.nvlink_speed,
    "remapped_correctable": lambda row: row.reading.remapped_correctable,
    "remapped_uncorrectable": lambda row: row.reading.remapped_uncorrectable,
    "remap_failed": lambda row: row.reading.remap_failed,
    "retired_correctable": lambda row: row.reading.retired_correctable,
    "retired_uncorrectable": lambda row: row.reading.retired_uncorrectable,
    "retirement_pending": _retirement_pending,
    "is_healthy": lambda row: row.is_healthy,
    "last_xid": lambda row: row.reading.last_xid,
    "xid_meaning": lambda row: meaning_of(row.reading.last_xid) or "unknown error",
    # A container on a card
    "container_busy": lambda row: _load(row).busy,
    "container_memory": lambda row: _load(row).memory,
    "container_memory_limit": _memory_limit,
    "container_context": _context,
    "container_module": _module,
    "container_buffer": _buffer,
    "container_memory_bytes": lambda row: _load(row).memory * MIB,
    "container_context_bytes": lambda row: _context(row) * MIB,
    "container_module_bytes": lambda row: _module(row) * MIB,
    "container_buffer_bytes": lambda row: _buffer(row) * MIB,
    "container_idle": lambda row: row.idle,
}
SOME_LACK = frozenset(
    {
        "container_idle", "remapped_correctable", "remapped_uncorrectable", "remap_failed",
        "retired_correctable", "retired_uncorrectable", "retirement_pending",
    }
)  # fmt: skip
"""Where a value is None, there is no row."""
