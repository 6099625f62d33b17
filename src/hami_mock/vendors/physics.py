"""What a model's clocks, power and heat are, from physics.json.

A row stands for a model, a family, or with * for all of a maker or of all makers; the nearest one
wins, value by value. Power, heat and context that no row gives follow from the power limit and the
kind of memory. NVIDIA's figures are measured or from data sheets; most others are estimates.
"""

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from hami_mock.vendors.catalog import Model

_ALL = "*"
_UNKNOWN_POWER = 250
_IDLE_SHARE = 0.13
_CONTEXT_WATTS = {"hbm": 38.0, "gddr": 66.0}
_CONTEXT_SHARE = 0.2
"""A small card's context takes no more of its power limit."""
_LEAST_RISE = 28.0
"""What a card heats up by at its limit at least: the small ones have the small coolers."""


class Traits(NamedTuple):
    """What is true of every card of a model, beside what the catalog says.

    - idle: W with nothing on it; context: W more once a program has opened it
    - power_limit: W
    - idle_clock, clock: MHz; idle_memory_clock, memory_clock: MHz
    - reserved: MiB that the driver keeps; context_memory: MiB of each program's context
    - link: GB/s over NVLink or its like, both ways; pcie: GB/s each way
    - warm: °C with nothing on it; heat: °C for each W above that; slowdown: °C where clocks halve
    - memory_warmer: °C that the memory is warmer than the chip
    - repair: what becomes of memory with errors: spare "rows" take its place, its "pages" are
      retired, or nothing, if it is empty
    """

    idle: float
    context: float
    power_limit: float
    idle_clock: int
    clock: int
    idle_memory_clock: int
    memory_clock: int
    reserved: int
    context_memory: int
    link: float
    pcie: float
    warm: float
    heat: float
    slowdown: float
    memory_warmer: float
    has_fan: bool
    repair: str = ""


@lru_cache(256)  # a real plugin's annotation may name any number of models
def traits(maker: str, model: Model) -> Traits:
    table = _table()
    rows = table.get(maker, {})
    found: dict[str, Any] = dict(table[_ALL])
    for key in (_ALL, model.family, model.name):
        found |= rows.get(key, {})
    limit = float(model.power if model.power > 0 else _UNKNOWN_POWER)
    kind: str = found["memory_kind"]
    idle = float(found.get("idle", _IDLE_SHARE * limit))
    return Traits(
        idle=idle,
        context=min(float(found.get("context", _CONTEXT_WATTS[kind])), _CONTEXT_SHARE * limit),
        power_limit=limit,
        idle_clock=found["idle_clock"],
        clock=found["clock"],
        idle_memory_clock=found.get("idle_memory_clock", found["memory_clock"]),
        memory_clock=found["memory_clock"],
        reserved=found["reserved"],
        context_memory=found.get("context_memory", 420),
        link=float(found.get("link", 0)),
        pcie=float(found.get("pcie", 32)),
        warm=float(found.get("warm", 33)),
        heat=float(found.get("heat", max(0.045, _LEAST_RISE / limit))),
        slowdown=float(found.get("slowdown", 87)),
        memory_warmer=4.0 if kind == "hbm" else 8.0,
        has_fan=bool(found.get("has_fan", False)),
        repair=found.get("repair", ""),
    )


@cache
def _table() -> dict[str, Any]:
    text = Path(__file__).with_name("physics.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
