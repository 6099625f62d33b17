from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hami_mock.kubelet import wire
from hami_mock.kubelet.unit_ids import ALPHABET, UnitIds
from tests.unit.builders import SeenDevice, seen_by_google

words = st.sampled_from([wire.HEALTHY, wire.UNHEALTHY, wire.UNKNOWN])
numa_nodes = st.one_of(st.none(), st.integers(0, 2**31))
device_ids = st.one_of(st.text(max_size=12), st.text(min_size=120, max_size=300))
# Fields that no version of the messages has: varint, 64 bits, bytes, 32 bits; numbers 15 and 300.
unknown_fields = st.sampled_from(
    [
        b"\x78\x01",
        b"\x78\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x79" + bytes(8),
        b"\x7a\x03abc",
        b"\x7a\x00",
        b"\x7d" + bytes(4),
        b"\xe0\x12\x05",
        b"\xe2\x12\x01x",
    ]
)


@given(device_id=device_ids, health=words, numa=numa_nodes)
@example(device_id="GPU-1-0", health=wire.HEALTHY, numa=0)
@example(device_id="GPU-1-0", health=wire.HEALTHY, numa=1)
@example(device_id="x" * 127, health=wire.UNHEALTHY, numa=127)
@example(device_id="x" * 128, health=wire.UNHEALTHY, numa=128)
def test_google_reads_the_device_that_was_written(
    google_messages: ModuleType, device_id: str, health: bytes, numa: int | None
) -> None:
    payload = wire.device(device_id, health, numa)
    nodes = None if numa is None else (numa,)
    assert seen_by_google(google_messages, payload) == [
        SeenDevice(device_id, health.decode(), nodes)
    ]


@given(device_id=device_ids, health=words, numa=numa_nodes)
def test_google_writes_the_same_bytes(
    google_messages: ModuleType, device_id: str, health: bytes, numa: int | None
) -> None:
    message = google_messages.ListAndWatchResponse()
    device = message.devices.add(id=device_id, health=health.decode())
    if numa is not None:
        device.topology.nodes.add(id=numa)
    written = message.SerializeToString()
    # An empty string is absent for google and empty for us; both read the same.
    assert wire.device(device_id, health, numa) == written or not device_id


@given(
    ids=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.text(alphabet=ALPHABET.decode(), min_size=width, max_size=width), min_size=1
        )
    ),
    health=words,
)
def test_columns_are_written_as_one_device_after_the_other(ids: list[str], health: bytes) -> None:
    columns = tuple("".join(characters).encode() for characters in zip(*ids, strict=True))
    assert wire.devices(columns, health) == b"".join(wire.device(id_, health) for id_ in ids)


def test_google_reads_a_full_list_of_columns(google_messages: ModuleType) -> None:
    ids = UnitIds("@#")
    payload = b"".join(wire.devices(block, wire.HEALTHY) for block in ids.columns((range(20_000),)))
    found = [device.device_id for device in seen_by_google(google_messages, payload)]
    assert found == [ids.encode(number) for number in range(20_000)]


@given(length=st.integers(1, 400), health=words, numa=numa_nodes)
def test_device_size_is_the_length_of_the_device(
    length: int, health: bytes, numa: int | None
) -> None:
    assert wire.device_size(length, health, numa) == len(wire.device("x" * length, health, numa))


@pytest.mark.parametrize(("numa", "extra"), [(None, 0), (0, 4), (1, 6), (63, 6)])
def test_a_device_takes_13_bytes_its_id_and_its_numa_node(numa: int | None, extra: int) -> None:
    assert wire.device_size(3, wire.HEALTHY, numa) == 13 + 3 + extra


def test_only_the_long_word_makes_a_device_longer() -> None:
    sizes = [wire.device_size(3, word) for word in (wire.HEALTHY, wire.UNKNOWN, wire.UNHEALTHY)]
    assert sizes == [16, 16, 18]


@given(st.lists(st.tuples(device_ids, st.text(max_size=12), numa_nodes), max_size=8), st.data())
def test_devices_that_google_wrote_are_read(
    google_messages: ModuleType,
    devices: list[tuple[str, str, int | None]],
    data: st.DataObject,
) -> None:
    payload = b""
    for device_id, health, numa in devices:
        device = google_messages.Device(id=device_id, health=health)
        if numa is not None:
            device.topology.nodes.add(id=numa)
        # google's protobuf keeps fields that it doesn't know and writes them again.
        device.MergeFromString(data.draw(st.one_of(st.just(b""), unknown_fields)))
        response = google_messages.ListAndWatchResponse(devices=[device])
        payload += response.SerializeToString() + data.draw(st.one_of(st.just(b""), unknown_fields))
    assert list(wire.read_devices(payload)) == [(id_, health) for id_, health, _ in devices]


@given(st.lists(st.lists(device_ids, max_size=6), max_size=4), st.data())
def test_allocate_requests_that_google_wrote_are_read(
    google_messages: ModuleType, containers: list[list[str]], data: st.DataObject
) -> None:
    payload = b""
    for ids in containers:
        container = google_messages.ContainerAllocateRequest(device_ids=ids)
        container.MergeFromString(data.draw(st.one_of(st.just(b""), unknown_fields)))
        request = google_messages.AllocateRequest(container_requests=[container])
        payload += request.SerializeToString() + data.draw(st.one_of(st.just(b""), unknown_fields))
    assert wire.read_allocate_request(payload) == containers


@given(
    width=st.integers(0, 130),
    count=st.integers(0, 5),
    extra=st.one_of(st.just(b""), unknown_fields),
    data=st.data(),
)
def test_ids_of_one_length_are_read_as_they_were_written(
    google_messages: ModuleType, width: int, count: int, extra: bytes, data: st.DataObject
) -> None:
    alphabet = st.sampled_from("\n\x00\x03a?" if width != 3 else "\n\x03ab")
    texts = st.text(alphabet=alphabet, min_size=width, max_size=width)
    ids = data.draw(st.lists(texts, min_size=count, max_size=count))
    container = google_messages.ContainerAllocateRequest(device_ids=ids)
    container.MergeFromString(extra)
    request = google_messages.AllocateRequest(container_requests=[container])
    assert wire.read_allocate_request(request.SerializeToString()) == [ids]


@given(st.lists(st.lists(device_ids, max_size=6), max_size=4))
def test_google_reads_the_allocate_request_that_was_written(
    google_messages: ModuleType, containers: list[list[str]]
) -> None:
    request = google_messages.AllocateRequest.FromString(wire.allocate_request(containers))
    assert [list(container.device_ids) for container in request.container_requests] == containers


@given(
    available=st.lists(device_ids, max_size=6),
    included=st.lists(device_ids, max_size=3),
    size=st.integers(-(2**31), 2**31 - 1),
    extra=st.sampled_from([b"", b"\x4a\x01\xff", b"\x48\x01"]),
)
def test_preference_requests_that_google_wrote_are_read(
    google_messages: ModuleType, available: list[str], included: list[str], size: int, extra: bytes
) -> None:
    container = google_messages.ContainerPreferredAllocationRequest(
        available_device_ids=available, must_include_device_ids=included, allocation_size=size
    )
    container.MergeFromString(extra)
    request = google_messages.PreferredAllocationRequest(container_requests=[container] * 2)
    read = list(wire.read_preference_request(request.SerializeToString()))
    assert read == [(available, included, size)] * 2


def test_our_own_devices_are_read_back() -> None:
    payload = wire.device("a", wire.HEALTHY, 3) + wire.device("b", wire.UNHEALTHY)
    assert list(wire.read_devices(payload)) == [("a", "Healthy"), ("b", "Unhealthy")]


def test_an_empty_message_has_no_devices_and_no_containers() -> None:
    assert list(wire.read_devices(b"")) == []
    assert wire.read_allocate_request(b"") == []


def test_the_last_of_a_field_given_twice_counts() -> None:
    record = b"\x0a\x01a\x0a\x01b\x12\x01c"
    assert list(wire.read_devices(b"\x0a" + bytes([len(record)]) + record)) == [("b", "c")]


READERS: list[Callable[[bytes], object]] = [
    lambda payload: list(wire.read_devices(payload)),
    wire.read_allocate_request,
]


@pytest.mark.parametrize("read", READERS, ids=["read_devices", "read_allocate_request"])
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"\x0a", id="no length"),
        pytest.param(b"\x0a\x05ab", id="fewer bytes than announced"),
        pytest.param(b"\x0a\x04\x0a\x03ab", id="an ID that lacks a byte"),
        pytest.param(b"\x0a\x05\x0a\x03ab", id="a message that lacks a byte"),
        pytest.param(b"\x0a\x80", id="length cut off"),
        pytest.param(b"\x80", id="key cut off"),
        pytest.param(b"\x78", id="no varint"),
        pytest.param(b"\x78\x80\x80", id="varint cut off"),
        pytest.param(b"\x78" + b"\xff" * 11, id="endless varint"),
        pytest.param(b"\x0a" + b"\xff" * 9 + b"\x01", id="absurd length"),
        pytest.param(b"\x0b", id="group"),
        pytest.param(b"\x0f", id="no such wire type"),
        pytest.param(b"\x0a\x04\x0a\x02\xff\xfe", id="not UTF-8"),
        pytest.param(b"\x7d\x00\x00", id="32 bits cut off"),
        pytest.param(b"\x79\x00\x00", id="64 bits cut off"),
    ],
)
def test_nonsense_is_an_error(read: Callable[[bytes], object], payload: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        read(payload)


@given(st.binary(max_size=60))
@settings(max_examples=300)
def test_any_bytes_give_what_google_reads_or_a_clean_error(
    google_messages: ModuleType, payload: bytes
) -> None:
    try:
        found = list(wire.read_devices(payload))
    except (ValueError, IndexError):
        return
    try:
        seen = seen_by_google(google_messages, payload)
    except Exception:  # google's reader is stricter (tags of more than 32 bits, field 0)
        return
    assert found == [(device.device_id, device.health) for device in seen]


@given(
    containers=st.lists(st.lists(device_ids, max_size=3), min_size=1, max_size=3), data=st.data()
)
def test_a_message_that_is_cut_off_is_read_as_google_reads_it_or_is_an_error(
    google_messages: ModuleType, containers: list[list[str]], data: st.DataObject
) -> None:
    request = google_messages.AllocateRequest()
    for ids in containers:
        request.container_requests.add(device_ids=ids)
    whole = request.SerializeToString()
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        expected = [
            list(container.device_ids)
            for container in google_messages.AllocateRequest.FromString(part).container_requests
        ]
    except Exception:
        with pytest.raises((ValueError, IndexError)):
            wire.read_allocate_request(part)
    else:
        assert wire.read_allocate_request(part) == expected
