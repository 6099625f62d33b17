"""The device-plugin messages that get large, written and read as bytes.

A list of 262,144 devices is 4 MiB, just what the kubelet accepts; as message objects it would take
seconds. Here it is written as columns into a ready template, in milliseconds, so every list is
built from scratch. What is small goes through betterproto2. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from hami_mock.kubelet.unit_ids import Columns

MESSAGE_LIMIT = 4 * 1024 * 1024
"""What the kubelet's gRPC client accepts in one message; a larger list makes its node show 0."""

HEALTHY = b"Healthy"
UNHEALTHY = b"Unhealthy"
UNKNOWN = b"Unknown"
"""Unhealthy for the kubelet like any word but Healthy, and no longer than it: for full lists."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def device(device_id: str, health: bytes, numa: int | None = None) -> bytes:
    """Return one element of ListAndWatchResponse.devices."""
    body = _field(1, device_id.encode()) + _field(2, health)
    if numa is not None:
        # The kubelet takes an absent node ID for 0, as proto3 does.
        node = _varint(1 << 3) + _varint(numa) if numa else b""
        body += _field(3, _field(1, node))
    return _field(1, body)


def devices(columns: Columns, health: bytes) -> bytearray:
    """Return one element of ListAndWatchResponse.devices for each ID in the columns."""
    template = device("?" * len(columns), health)
    step = len(template)
    first = template.index(b"?")
    records = bytearray(template * len(columns[0]))
    for place, characters in enumerate(columns, start=first):
        records[place::step] = characters
    return records


@lru_cache(1024)
def device_size(id_length: int, health: bytes, numa: int | None = None) -> int:
    return len(device("?" * id_length, health, numa))


def read_devices(payload: bytes) -> Iterator[tuple[str, str]]:
    """Yield (ID, health) of each device in a ListAndWatchResponse."""
    for record in _values(payload, 1):
        fields = dict(_fields(record))
        yield fields.get(1, b"").decode(), fields.get(2, b"").decode()


def allocate_request(containers: Iterable[Iterable[str]]) -> bytes:
    return b"".join(_field(1, _texts(1, device_ids)) for device_ids in containers)


def read_allocate_request(payload: bytes) -> list[list[str]]:
    return [read_ids(container) for container in _values(payload, 1)]


def read_preference_request(payload: bytes) -> Iterator[tuple[list[str], list[str], int]]:
    """Yield available IDs, those to include and how many of each container's request."""
    for container in _values(payload, 1):
        numbers: dict[int, int] = {}
        texts: dict[int, list[str]] = {1: [], 2: []}
        for field, value in _fields(container, numbers):
            if field in texts:
                texts[field].append(value.decode())
        size = numbers.get(3, 0)
        # A negative number has all of its upper bits set.
        yield texts[1], texts[2], size if size < 1 << 63 else size - (1 << 64)


def pod_resources(pods: Mapping[str, Mapping[str, Iterable[str]]]) -> bytes:
    """Return a ListPodResourcesResponse: pods of one container, their resources and device IDs."""
    payload = b""
    for name, held in pods.items():
        devices = (
            _field(2, _texts(1, [resource]) + _texts(2, held[resource])) for resource in held
        )
        container = _texts(1, ["main"]) + b"".join(devices)
        payload += _field(1, _texts(1, [name]) + _texts(2, ["default"]) + _field(3, container))
    return payload


def read_pod_resources(payload: bytes) -> Iterator[tuple[str, str, str, dict[str, list[str]]]]:
    """Yield namespace, pod, container and its device IDs by resource of a ListPodResourcesResponse.

    The kubelet writes one record for each device, a quarter of a million on a full node. A claim is
    a device of each of its drivers, by its namespace and name.
    """
    for pod in _values(payload, 1):
        namespace, name = _text(pod, 2), _text(pod, 1)
        for container in _values(pod, 3):
            claims: list[bytes] = []
            devices = _held(_devices_of(container, claims))
            for claim in claims:
                for driver in dict.fromkeys(_text(each, 2) for each in _values(claim, 4)):
                    own = f"{_text(claim, 3)}/{_text(claim, 2)}"
                    devices.setdefault(driver, []).append(own)
            yield namespace, name, _text(container, 1), devices


def _devices_of(container: bytes, claims: list[bytes]) -> Iterator[bytes]:
    """Yield the records of a container's devices; those of its claims are left in a list."""
    for number, value in _fields(container):
        if number == 2:
            yield value
        elif number == 5:
            claims.append(value)


def _held(records: Iterable[bytes]) -> dict[str, list[str]]:
    devices: dict[str, list[str]] = {}
    ids: list[str] = []
    head: bytes | None = None
    for record in records:
        if head and (only := _only_id(record, head)) is not None:
            ids.append(only)
            continue
        inner = list(_fields(record))
        resource = next((value for field, value in inner if field == 1), b"")
        ids = devices.setdefault(resource.decode(), [])
        ids.extend(value.decode() for field, value in inner if field == 2)
        head = _field(1, resource) + b"\x12"
    return devices


def _only_id(record: bytes, head: bytes) -> str | None:
    """Return the ID of a record that is a head, one short ID and at most a short topology.

    All but the first of a resource are, and this takes a third of the time.
    """
    start = len(head) + 1
    if not record.startswith(head) or len(record) < start or record[start - 1] > 0x7F:
        return None
    stop = start + record[start - 1]
    rest = record[stop:]
    is_topology = len(rest) > 1 and rest[0] == 3 << 3 | _BYTES and len(rest) == 2 + rest[1]
    return record[start:stop].decode() if is_topology or len(record) == stop else None


def read_ids(container: bytes) -> list[str]:
    if _is_evenly_spaced(container):
        # A pod may hold 80,000 units: IDs of one length are cut out at even distances.
        text, step = container.decode("ascii"), 2 + container[1]
        return [text[start + 2 : start + step] for start in range(0, len(text), step)]
    return [value.decode() for value in _values(container, 1)]


def _is_evenly_spaced(container: bytes) -> bool:
    """Tell whether it is nothing but fields 1, all of one length, in ASCII."""
    if len(container) < 2 or not container.isascii():
        return False
    count, rest = divmod(len(container), 2 + container[1])
    keys, lengths = container[:: 2 + container[1]], container[1 :: 2 + container[1]]
    return not rest and keys == b"\x0a" * count and lengths == container[1:2] * count


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _texts(number: int, texts: Iterable[str]) -> bytes:
    return b"".join(_field(number, text.encode()) for text in texts)


@lru_cache(maxsize=256)
def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _values(data: bytes, field: int) -> Iterator[bytes]:
    return (value for number, value in _fields(data) if number == field)


def _text(data: bytes, field: int) -> str:
    *_, last = b"", *_values(data, field)
    return last.decode()


def _fields(data: bytes, numbers: dict[int, int] | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of each length-delimited field; note varints in `numbers`."""
    numbers = {} if numbers is None else numbers
    position, end = 0, len(data)
    while position < end:
        key = data[position]
        position += 1
        if key > 0x7F:
            key, position = _read_varint(data, position - 1)
        kind = key & 7
        if kind == _BYTES:
            length = data[position]
            position += 1
            if length > 0x7F:
                length, position = _read_varint(data, position - 1)
            stop = position + length
            if stop > end:
                raise ValueError("truncated message")
            yield key >> 3, data[position:stop]
            position = stop
        elif kind == _VARINT:
            number, position = _read_varint(data, position)
            numbers[key >> 3] = number
        elif kind in (_FIXED32, _FIXED64):
            position += 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"field {key >> 3} has wire type {kind}")
    if position > end:
        raise ValueError("truncated message")


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a varint of more than 10 bytes")
