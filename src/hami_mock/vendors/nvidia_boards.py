"""NVIDIA's boards, from nvidia_boards.json: what NVML says of a model beyond catalog and physics.

A row stands for a model, a family, or with * for all; the nearest one wins, value by value. PCI IDs
are those of the PCI ID database. Part numbers, subsystem IDs and VBIOS versions look like those of
real boards; nobody should build on them.
"""

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from hami_mock.vendors.catalog import Model

_HBM = frozenset({"6.0", "7.0", "8.0", "9.0", "10.0", "10.3"})
_CORES_OF_AN_SM = {"6.0": 64, "7.0": 64, "7.5": 64, "8.0": 64}
_WIDE_BAR1 = 1024


class Board(NamedTuple):
    """What is true of every board of a model.

    - device, subsystem: PCI IDs, in hexadecimal
    - bus_width: bits; pcie, pcie_width: generation and lanes
    - links: NVLinks; link_speed: MB/s of one, one way; switch: the PCI ID of what they end in on a
      baseboard, empty if they go from card to card
    - power_least: the part of the power limit that is the lowest one that can be set
    - video: the video clock as a part of the graphics clock
    - bar1: MiB; 0: all of the memory, and up to the next power of 2
    - shutdown, gpu_most, memory_most: °C
    """

    device: str
    subsystem: str
    part: str
    vbios: str
    brand: str
    bus_width: int
    pcie: int
    pcie_width: int
    links: int
    link_version: int
    link_speed: int
    copy: int
    decoders: int
    encoders: int
    jpegs: int
    ofas: int
    power_least: float
    video: float
    shutdown: int
    gpu_most: int
    memory_most: int
    switch: str = ""
    bar1: int = 0


@lru_cache(256)  # a real plugin's annotation may name any number of models
def board(model: Model) -> Board:
    rows = _table()
    found: dict[str, Any] = {}
    for key in ("*", model.family, model.name):
        found |= rows.get(key, {})
    return Board(**found)


def has_hbm(model: Model) -> bool:
    return model.compute in _HBM


def multiprocessors(model: Model) -> int:
    return model.cores // _CORES_OF_AN_SM.get(model.compute, 128)


def bar1(model: Model, memory: int) -> int:
    """Return MiB of the window through which the CPU sees the card's memory."""
    return board(model).bar1 or max(_WIDE_BAR1, 1 << (memory - 1).bit_length())


@cache
def _table() -> dict[str, Any]:
    text = Path(__file__).with_name("nvidia_boards.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
