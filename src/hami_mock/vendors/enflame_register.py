"""enflame.com/gcu-drs-capacity: the cards that Enflame's plugin has for HAMi, in slices.

It says how many slices each card has, and into which profiles a card can be cut: 3g.20gb has three
slices and 20 GiB. Cards have no IDs; the scheduler makes them from the node's name and the index.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from hami_mock.hami.errors import Malformed
from hami_mock.hami.go_values import INT32, Fields, json_value, refusal, whole
from hami_mock.hami.register import RegisteredDevice
from hami_mock.vendors.enflame import DEVICE_ID, WORD

_INDEX = re.compile(r"[0-9]{1,18}")
_PROFILE = re.compile(r"(\d{1,9})g\.(\d{1,9})gb", re.ASCII)


def encode(devices: Iterable[RegisteredDevice]) -> str:
    """Return the annotation's value. As with the plugin, cards that aren't healthy aren't in it."""
    devices = tuple(devices)
    rows = [
        {"index": str(each.index), "minor": str(each.index), "capacity": each.count}
        for each in devices
        if each.healthy
    ]
    largest = max(devices, key=lambda each: each.memory)
    names = _profiles(largest.count, largest.memory // 1024)
    profiles = {name: str(number) for number, name in enumerate(names)}
    return json.dumps({"devices": rows, "profiles": profiles}, separators=(",", ":"))


def _profiles(slices: int, gib: int) -> list[str]:
    """Return what fills a card without a rest; the scheduler passes over what has no memory."""
    sizes = (size for size in range(1, slices + 1) if slices % size == 0)
    return [f"{size}g.{gib * size // slices}gb" for size in sizes if gib * size >= slices]


def decode(text: str, node_name: str) -> tuple[RegisteredDevice, ...]:
    fields = Fields(json_value(text), "the value")
    profiles = {name: _size(name) for name in fields.get("profiles", dict)}
    slices = max((size for size, _ in profiles.values()), default=0)
    if slices <= 0:
        raise Malformed("profiles: there must be one such as 3g.20gb")
    memory = max(gib for _, gib in profiles.values()) or slices
    return tuple(
        _device(Fields(row, f"the value: devices[{i}]"), i, node_name, memory * 1024)
        for i, row in enumerate(fields.get("devices", list))
    )


def recognises(text: str) -> bool:
    return text.lstrip().startswith("{") and '"profiles"' in text


def _size(name: str) -> tuple[int, int]:
    match = _PROFILE.fullmatch(name.strip().lower())
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _device(fields: Fields, position: int, node_name: str, memory: int) -> RegisteredDevice:
    told = fields.get("index", str)
    index = int(told) if _INDEX.fullmatch(told) else position
    capacity: Any = fields.values.get("capacity")
    if isinstance(capacity, str):
        capacity = whole(capacity.strip(), f"{fields.place}: capacity", INT32)
    if type(capacity) not in (int, float) or not 1 <= capacity < INT32.stop:
        raise refusal(f"{fields.place}: capacity", capacity, "a number above 0")
    return RegisteredDevice(
        id=DEVICE_ID.format(node=node_name, index=index),
        count=int(capacity),
        memory=memory,
        cores=100,
        type=WORD,
        index=index,
    )
