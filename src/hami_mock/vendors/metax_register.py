"""metax-tech.com/node-gpu-devices: the cards that Metax's plugin has for HAMi, in its own JSON."""

from collections.abc import Iterable, Iterator
from typing import Any

from hami_mock.hami import go_values as go
from hami_mock.hami.errors import Malformed
from hami_mock.hami.register import RegisteredDevice, read_rows, write_rows
from hami_mock.vendors.metax import WORD

_STRUCT = go.Struct(
    dict[str, Any],
    (
        ("id", "uuid", str),
        ("Model", "model", str),
        ("count", "totalDevCount", go.INT32),
        ("cores", "totalCompute", go.INT32),
        ("memory", "totalVRam", go.INT32),
        ("numa", "numa", go.INT32),
        ("healthy", "healthy", bool),
        ("QosPolicy", "qosPolicy", str),
        ("LinkZone", "linkZone", go.INT32),
    ),
)


def encode(devices: Iterable[RegisteredDevice]) -> str:
    return write_rows(_STRUCT, devices)


def decode(text: str, _node_name: str) -> Iterator[RegisteredDevice]:
    for position, (place, value) in enumerate(read_rows(text, "uuid")):
        known = _STRUCT.read(value, place)
        custom = {name: known.pop(name) for name in ("QosPolicy", "Model", "LinkZone")}
        yield RegisteredDevice(**known, type=WORD, index=position, custom=custom)


def recognises(text: str) -> bool:
    """Tell whether the first card has Metax's name for the ID, and not HAMi's."""
    try:
        first, *_ = go.json_list(text) or [None]
        fields = go.Fields(first, "").values
    except Malformed:
        return False
    return "uuid" in fields and "id" not in fields
