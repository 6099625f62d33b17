"""The register annotation: the cards that a node has for HAMi.

Most vendors' is JSON; some stay with the colon form, of nine fields since 2.5 and seven before.
A vendor with an encoding of its own has a codec for it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from hami_mock.hami import go_values as go
from hami_mock.hami.errors import Malformed
from hami_mock.hami.kinds import COLON, HAMI_CORE, JSON, SHORT_COLON, Encoding
from hami_mock.hami.mig import PROFILE, TEMPLATE, MigGeometry, MigProfile
from hami_mock.kit.text import cut

_COLONS = frozenset({COLON, SHORT_COLON})


@dataclass(frozen=True)
class RegisteredDevice:
    """A card as HAMi's scheduler sees it.

    `count` is how many containers may share it; `memory` in MiB and `cores` (100: all of them) are
    after scaling. Not every encoding has every field: the colon forms know no MIG and no `custom`,
    and the short one neither `index` nor `mode`.
    """

    id: str
    count: int
    memory: int
    cores: int
    type: str
    index: int = 0
    numa: int = 0
    mode: str = ""
    healthy: bool = True
    mig_profiles: tuple[MigProfile, ...] = ()
    mig_geometries: tuple[MigGeometry, ...] = ()
    custom: Mapping[str, Any] = field(default_factory=dict, hash=False)


_JSON = go.Struct(
    RegisteredDevice,
    (
        ("id", "id", str),
        ("index", "index", go.UINT64),
        ("count", "count", go.INT32),
        ("memory", "devmem", go.INT32),
        ("cores", "devcore", go.INT32),
        ("type", "type", str),
        ("numa", "numa", go.INT64),
        ("mode", "mode", str),
        ("mig_profiles", "migProfiles", [PROFILE]),
        ("mig_geometries", "migtemplate", [[TEMPLATE]]),
        ("healthy", "health", bool),
        ("custom", "custominfo", dict),
    ),
)


class Codec(Protocol):
    """An encoding of a vendor's own; a module with these functions is one."""

    def encode(self, devices: tuple[RegisteredDevice, ...], /) -> str: ...
    def decode(self, text: str, node_name: str, /) -> Iterable[RegisteredDevice]: ...
    def recognises(self, text: str, /) -> bool: ...


def encode(encoding: Encoding, devices: Iterable[RegisteredDevice]) -> str:
    """Return the annotation's value. Raises Malformed for what the encoding can't carry."""
    devices = tuple(devices)
    for position, device in enumerate(devices):
        # Scaling can make numbers that HAMi's 32 bits don't hold; a refusal there is a silent 0.
        for name in ("count", "memory", "cores"):
            go.whole(str(getattr(device, name)), f"{_place(position, device.id)}: {name}", go.INT32)
    if encoding.codec:
        return encoding.codec().encode(devices)
    if encoding in _COLONS:
        short = encoding == SHORT_COLON
        return "".join(_write_colon(device, i, short=short) for i, device in enumerate(devices))
    return write_rows(_JSON, devices)


def decode(
    text: str, encoding: Encoding | None = None, node_name: str = "", *, or_another: bool = False
) -> tuple[RegisteredDevice, ...]:
    """Return the cards of an annotation's value.

    With `or_another` the value may also be in another encoding than that, as an old plugin's is.
    The node's name is in the IDs of cards that the annotation has none for.
    Raises Malformed for what HAMi's scheduler refuses, and that is also a value without cards.
    """
    found = recognise(go.bounded(text), encoding)
    if encoding and not or_another and found != encoding and not {found, encoding} <= _COLONS:
        raise Malformed(f"the value is in {found.name}, but HAMi reads {encoding.name} here")
    if found.codec:
        devices = tuple(found.codec().decode(text, node_name))
    else:
        devices = tuple(_read_colons(text) if found in _COLONS else _read_json(text))
    if not devices:
        raise Malformed(
            "the value lists no devices; a node without devices should not have the annotation"
        )
    return devices


def recognise(text: str, expected: Encoding | None = None) -> Encoding:
    """Return the encoding of a text; a vendor's own is only known where it is expected."""
    if expected and expected.codec and expected.codec().recognises(text):
        return expected
    if text.lstrip().startswith(("[", "{", "null")):
        return JSON
    first = text.split(":", 1)[0]
    return SHORT_COLON if first.count(",") == 6 else COLON


def read_rows(text: str, id_key: str) -> Iterator[tuple[str, object]]:
    """Yield what to call each element of a list in JSON in an error, and the element."""
    for position, value in enumerate(go.json_list(text)):
        if value is None:
            # The scheduler breaks off there.
            raise go.refusal(_place(position), value, "an object")
        device_id = go.Fields(value, _place(position)).get(id_key, str)
        yield _place(position, device_id), value


def write_rows(struct: go.Struct[Any], devices: Iterable[RegisteredDevice]) -> str:
    rows = (struct.write({**device.custom, **vars(device)}) for device in devices)
    # HAMi leaves out what is empty, 0 or false, and so must everybody: false is an absent key.
    filled = [{key: value for key, value in row.items() if value} for row in rows]
    return json.dumps(filled, ensure_ascii=False, separators=(",", ":"))


def _read_json(text: str) -> Iterator[RegisteredDevice]:
    for place, value in read_rows(text, "id"):
        # The scheduler refuses another type, but sets it itself.
        go.Fields(value, place).get("devicevendor", str)
        yield _JSON.read(value, place)


def _read_colons(text: str) -> Iterable[RegisteredDevice]:
    if ":" not in text:
        raise go.refusal(
            "the value", text, "JSON, or fields separated by commas with a colon after each card"
        )
    records = [record for record in text.split(":") if record]
    if len(records) > go.MOST:
        raise Malformed(f"the value has {len(records)} devices; a node has at most {go.MOST}")
    return (_read_colon(record, position) for position, record in enumerate(records))


def _read_colon(record: str, position: int) -> RegisteredDevice:
    fields = record.split(",")
    place = _place(position, fields[0])
    if len(fields) not in (7, 9):
        raise go.refusal(place, record, f"7 or 9 fields separated by commas, not {len(fields)}")
    long = len(fields) == 9
    return RegisteredDevice(
        id=fields[0],
        count=go.whole(fields[1], f"{place}: count", go.INT32),
        memory=go.whole(fields[2], f"{place}: memory", go.INT32),
        cores=go.whole(fields[3], f"{place}: cores", go.INT32),
        type=fields[4],
        numa=go.whole(fields[5], f"{place}: numa", go.INT64),
        healthy=go.boolean(fields[6], f"{place}: health"),
        index=go.whole(fields[7], f"{place}: index", range(go.INT64.stop)) if long else 0,
        mode=fields[8] if long else HAMI_CORE,
    )


def _write_colon(device: RegisteredDevice, position: int, *, short: bool) -> str:
    place = _place(position, device.id)
    for name, value in (("id", device.id), ("type", device.type), ("mode", device.mode)):
        if "," in value or ":" in value:
            raise go.refusal(f"{place}: {name}", value, "without comma and colon in this encoding")
    fields: list[object] = [device.id, device.count, device.memory, device.cores, device.type]
    fields += [device.numa, str(device.healthy).lower()]
    fields += [] if short else [device.index, device.mode]
    return ",".join(map(str, fields)) + ":"


def _place(position: int, device_id: str = "") -> str:
    return f"device {position} ({cut(device_id, 80)})" if device_id else f"device {position}"
