"""Old programs have old, shorter records: nothing may be written behind them."""

import ctypes
import struct
from types import ModuleType
from typing import Any

import pytest

from hami_mock.views.driver import layout
from tests.driver.state_file import MIB, StateFile, cut

NO_INSTANCE = 0xFFFFFFFF


class Guarded:
    """A record of so many bytes, with others behind it that must stay as they are."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.buffer = ctypes.create_string_buffer(b"\xaa" * (size + 64), size + 64)

    @property
    def record(self) -> bytes:
        """What was written; all of it, and no more."""
        assert self.buffer.raw[self.size :] == b"\xaa" * 64
        assert b"\xaa" * 4 not in self.buffer.raw[: self.size]
        return self.buffer.raw[: self.size]


@pytest.fixture
def card(nvml: ModuleType) -> Any:
    return nvml.nvmlDeviceGetHandleByIndex(1)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("nvmlDeviceGetPciInfo", 32),
        ("nvmlDeviceGetPciInfo_v2", 52),
        ("nvmlDeviceGetPciInfo_v3", 68),
    ],
)
def test_pci(library: ctypes.CDLL, card: Any, name: str, size: int) -> None:
    to = Guarded(size)
    assert getattr(library, name)(card, to.buffer) == 0
    assert to.record[:12] == b"0000:1C:00.0"
    assert struct.unpack_from("<4I", to.record, 16) == (0, 0x1C, 0, 0x20B010DE)
    if size > 52:
        assert to.record[36:].startswith(b"00000000:1C:00.0\0")


@pytest.mark.parametrize(("suffix", "size"), [("", 52), ("_v2", 68)])
def test_the_other_end_of_a_link(library: ctypes.CDLL, card: Any, suffix: str, size: int) -> None:
    to = Guarded(size)
    assert getattr(library, f"nvmlDeviceGetNvLinkRemotePciInfo{suffix}")(card, 0, to.buffer) == 0
    assert to.record[:12] == b"0000:1B:00.0"


@pytest.mark.parametrize("kind", ["Compute", "Graphics", "MPSCompute"])
@pytest.mark.parametrize(("suffix", "size"), [("", 16), ("_v2", 24), ("_v3", 24)])
def test_processes(  # noqa: PLR0917
    library: ctypes.CDLL, state: StateFile, card: Any, kind: str, suffix: str, size: int
) -> None:
    kinds = {"Compute": 1, "Graphics": 2, "MPSCompute": 4}
    whole = {"gpu_instance": NO_INSTANCE, "compute_instance": NO_INSTANCE}
    process = {"pid": 7, "memory": 5 * MIB, "type": kinds[kind], **whole}
    state.set(1, {"process_count": 2, "processes": [process, process | {"pid": 8}]})
    count, to = ctypes.c_uint(2), Guarded(2 * size)
    function = getattr(library, f"nvmlDeviceGet{kind}RunningProcesses{suffix}")
    assert function(card, ctypes.byref(count), to.buffer) == 0
    assert count.value == 2
    assert to.buffer.raw[2 * size :] == b"\xaa" * 64
    assert struct.unpack_from("<I4xQ", to.buffer.raw, size) == (8, 5 * MIB)
    if size == 24:
        assert struct.unpack_from("<II", to.buffer.raw, size + 16) == (NO_INSTANCE, NO_INSTANCE)


def test_memory(library: ctypes.CDLL, card: Any) -> None:
    to = Guarded(24)
    assert library.nvmlDeviceGetMemoryInfo(card, to.buffer) == 0
    total, free, used = struct.unpack("<3Q", to.record)
    assert total == free + used == 40960 * MIB


@pytest.mark.parametrize(("suffix", "size"), [("", 24), ("_v2", 32)])
def test_events(library: ctypes.CDLL, state: StateFile, card: Any, suffix: str, size: int) -> None:
    events = ctypes.c_void_p()
    assert library.nvmlEventSetCreate(ctypes.byref(events)) == 0
    assert library.nvmlDeviceRegisterEvents(card, ctypes.c_ulonglong(8), events) == 0
    state.xid(1, 31)
    to = Guarded(size)
    assert getattr(library, f"nvmlEventSetWait{suffix}")(events, to.buffer, 0) == 0
    assert struct.unpack_from("<QQ", to.record, 8) == (8, 31)
    if size == 32:
        assert struct.unpack_from("<II", to.record, 24) == (NO_INSTANCE, NO_INSTANCE)


def test_mig(nvml: ModuleType, library: ctypes.CDLL, state: StateFile, card: Any) -> None:
    state.set(1, cut(1))
    device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 1)
    for suffix, size in (("", 24), ("_v2", 40)):
        to = Guarded(size)
        assert getattr(library, f"nvmlDeviceGetAttributes{suffix}")(device, to.buffer) == 0
        assert struct.unpack_from("<6I", to.record) == (28, 3, 1, 0, 0, 0)
    instance = nvml.nvmlDeviceGetGpuInstanceById(card, 2)
    compute = nvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0)
    for suffix, size in (("", 24), ("_v2", 32)):
        to = Guarded(size)
        assert getattr(library, f"nvmlComputeInstanceGetInfo{suffix}")(compute, to.buffer) == 0
        assert struct.unpack_from("<II", to.record, 16) == (0, 1)


@pytest.mark.parametrize(
    ("name", "head", "size"),
    [
        ("nvmlDeviceGetGpuFabricInfo", 0, 28),
        ("nvmlDeviceGetGpuFabricInfoV", 36 | 2 << 24, 36),
        ("nvmlDeviceGetGpuFabricInfoV", 40 | 3 << 24, 40),
        ("nvmlDeviceGetGpuFabricInfo_v4", 0, 548),
    ],
)
def test_fabric(  # noqa: PLR0917
    library: ctypes.CDLL, state: StateFile, card: Any, name: str, head: int, size: int
) -> None:
    cluster = bytes(range(16))
    fabric = {"flags": layout.FLAGS["FLAG_FABRIC"], "fabric_clique": 5, "fabric_cluster": cluster}
    other = state.replaced(2, unlike=fabric)
    to = ctypes.create_string_buffer(b"\xaa" * (size + 64), size + 64)
    ctypes.memmove(to, head.to_bytes(4, "little"), 4)
    assert getattr(library, name)(card, to) == 0
    found = to.raw[4:size] if head else to.raw[:size]
    assert to.raw[size:] == b"\xaa" * 64
    assert found[:16] == cluster
    if size == 548:  # one clique, of kind 0, among 64
        assert struct.unpack_from("<IB3xI", found, 16) == (0, 0, 5)
        assert struct.unpack_from("<IB3xIB", found, 532) == (1, 3, 0, 1)
    else:
        assert struct.unpack_from("<IIB", found, 16) == (0, 5, 3)
    if size == 40:
        assert found[32] == 1, "healthy"
    other.close()


@pytest.mark.parametrize(
    ("name", "arguments", "size", "version"),
    [
        ("nvmlDeviceGetGpuInstanceProfileInfoV", (2,), 152, 2),
        ("nvmlDeviceGetGpuInstanceProfileInfoV", (2,), 152, 3),
        ("nvmlDeviceGetGpuFabricInfoV", (), 36, 2),
        ("nvmlDeviceGetGpuFabricInfoV", (), 40, 3),
        ("nvmlDeviceGetPlatformInfo", (), 44, 1),
        ("nvmlDeviceGetPlatformInfo", (), 44, 2),
    ],
)
def test_the_version_word_decides(  # noqa: PLR0917
    library: ctypes.CDLL, state: StateFile, card: Any, name: str, arguments: tuple[int, ...],
    size: int, version: int,
) -> None:  # fmt: skip
    state.replaced(8, unlike={"architecture": 10}).close()  # an older one refuses some of them
    to = ctypes.create_string_buffer(b"\xaa" * (size + 64), size + 64)
    for word, expected in ((size | version << 24, 0), (size + 4 | version << 24, 25), (0, 25)):
        ctypes.memmove(to, word.to_bytes(4, "little"), 4)
        assert getattr(library, name)(card, *arguments, to) == expected
    assert to.raw[size:] == b"\xaa" * 64
