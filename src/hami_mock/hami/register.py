"""The register annotation: the cards that a node has for HAMi.

Five encodings are in use. Since 2.8 NVIDIA's is JSON, as most vendors' is; Hygon and Iluvatar stay
with the colon form, of nine fields since 2.5 and seven before. Metax has JSON of its own, and
Enflame another (`drs`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hami_mock.hami import go_values as go
from hami_mock.hami.errors import Malformed
from hami_mock.hami.kinds import HAMI_CORE, Encoding
from hami_mock.hami.mig import PROFILE, TEMPLATE, MigGeometry, MigProfile
from hami_mock.kit.text import cut

METAX_TYPE = "Metax-SGPU"
"""What the scheduler calls every card of Metax's annotation, whatever its model."""

_COLONS = frozenset({Encoding.COLON, Encoding.SHORT_COLON})


@dataclass(frozen=True)
class RegisteredDevice:
    """A card as HAMi's scheduler sees it.

    `count` is how many containers may share it; `memory` in MiB and `cores` (100: all of them) are
    after scaling. Not every encoding has every field: the colon forms know no MIG and no `custom`,
    the short one neither `index` nor `mode`, and Metax's gives index and type by itself.
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

_METAX = go.Struct(
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


def encode(encoding: Encoding, devices: Iterable[RegisteredDevice]) -> str:
    """Return the annotation's value. Raises Malformed for what the encoding can't carry."""
    devices = tuple(devices)
    for position, device in enumerate(devices):
        # Scaling can make numbers that HAMi's 32 bits don't hold; a go.refusal there is a silent 0.
        for name in ("count", "memory", "cores"):
            go.whole(str(getattr(device, name)), f"{_place(position, device.id)}: {name}", go.INT32)
    if encoding is Encoding.DRS:
        from hami_mock.hami import drs

        return drs.encode(devices)
    if encoding in _COLONS:
        short = encoding is Encoding.SHORT_COLON
        return "".join(_write_colon(device, i, short=short) for i, device in enumerate(devices))
    struct = _METAX if encoding is Encoding.METAX else _JSON
    rows = (struct.write({**device.custom, **vars(device)}) for device in devices)
    # HAMi leaves out what is empty, 0 or false, and so must everybody: false is an absent key.
    filled = [{key: value for key, value in row.items() if value} for row in rows]
    return json.dumps(filled, ensure_ascii=False, separators=(",", ":"))


def decode(
    text: str, encoding: Encoding | None = None, node_name: str = ""
) -> tuple[RegisteredDevice, ...]:
    """Return the cards of an annotation's value, of whatever encoding if none is said.

    The node's name is in the IDs of cards that the annotation has none for.
    Raises Malformed for what HAMi's scheduler refuses, and that is also a value without cards.
    """
    found = recognise(go.bounded(text))
    if encoding and found is not encoding and not {found, encoding} <= _COLONS:
        raise Malformed(f"the value is in {found}, but HAMi reads {encoding} here")
    if found in _COLONS:
        devices = _read_colons(text)
    elif found is Encoding.DRS:
        from hami_mock.hami import drs

        devices = drs.decode(text, node_name)
    else:
        rows = enumerate(go.json_list(text))
        devices = tuple(_read_row(row, i, is_metax=found is Encoding.METAX) for i, row in rows)
    if not devices:
        raise Malformed("the value has no devices; without any there should be no annotation")
    return devices


def recognise(text: str) -> Encoding:
    start = text.lstrip()
    if start.startswith("{") and '"profiles"' in start:
        return Encoding.DRS
    if start.startswith(("[", "{", "null")):
        return Encoding.METAX if _has_uuids(text) else Encoding.JSON
    first = text.split(":", 1)[0]
    return Encoding.SHORT_COLON if first.count(",") == 6 else Encoding.COLON


def _has_uuids(text: str) -> bool:
    """Tell whether the first element has Metax's name for the ID, and not HAMi's."""
    try:
        first, *_ = go.json_list(text) or [None]
        fields = go.Fields(first, "").values
    except Malformed:
        return False
    return "uuid" in fields and "id" not in fields


def _read_row(value: object, position: int, *, is_metax: bool) -> RegisteredDevice:
    if value is None:
        raise go.refusal(_place(position), value, "an object")  # the scheduler breaks off there
    fields = go.Fields(value, _place(position))
    place = _place(position, fields.get("uuid" if is_metax else "id", str))
    if is_metax:
        known = _METAX.read(value, place)
        custom = {name: known.pop(name) for name in ("QosPolicy", "Model", "LinkZone")}
        return RegisteredDevice(**known, type=METAX_TYPE, index=position, custom=custom)
    # The scheduler refuses another type, but sets it itself.
    go.Fields(value, place).get("devicevendor", str)
    return _JSON.read(value, place)


def _read_colons(text: str) -> tuple[RegisteredDevice, ...]:
    if ":" not in text:
        raise go.refusal(
            "the value", text, "JSON, or fields separated by commas with a colon after each card"
        )
    records = [record for record in text.split(":") if record]
    if len(records) > go.MOST:
        raise Malformed(f"the value has {len(records)} devices; a node has at most {go.MOST}")
    return tuple(_read_colon(record, position) for position, record in enumerate(records))


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
