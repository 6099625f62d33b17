"""What a container sees: its cards, numbered from 0, and the memory that HAMi leaves it."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.driver.state_file import GIB, MIB, StateFile, card_uuid, cut, live, mig_uuid

COUNT = """
import ctypes, sys
library, device = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
count, minor = ctypes.c_uint(), ctypes.c_uint()
assert library.nvmlInit_v2() == 0
library.nvmlDeviceGetCount_v2(ctypes.byref(count))
for index in range(count.value):
    library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
    library.nvmlDeviceGetMinorNumber(device, ctypes.byref(minor))
    print(minor.value)
"""


def cards(client: ModuleType) -> list[int]:
    client.nvmlInit()
    handles = [client.nvmlDeviceGetHandleByIndex(i) for i in range(client.nvmlDeviceGetCount())]
    assert [client.nvmlDeviceGetIndex(handle) for handle in handles] == list(range(len(handles)))
    return [client.nvmlDeviceGetMinorNumber(handle) for handle in handles]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("all", range(8)),
        ("none", []),
        ("void", []),
        ("", []),
        ("3", [3]),
        ("5,2", [5, 2]),
        ("2,2", [2]),
        ("8", []),
        ("1x", []),
        (card_uuid(6), [6]),
        (f"{card_uuid(6)},{card_uuid(1)}", [6, 1]),
        ("GPU-00000000-0000-0000-0000-000000000000", []),
        ("0,all", range(8)),
    ],
)
def test_visible_devices(
    client: ModuleType,
    state: StateFile,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    expected: list[int],
) -> None:
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", value)
    assert cards(client) == list(expected)


def test_others_cant_be_had(
    client: ModuleType, state: StateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "3")
    client.nvmlInit()
    with pytest.raises(client.NVMLError_NotFound):
        client.nvmlDeviceGetHandleByUUID(card_uuid(2))
    with pytest.raises(client.NVMLError_NotFound):
        client.nvmlDeviceGetHandleByPciBusId("0000:1B:00.0")


def test_a_mig_device_alone(
    client: ModuleType, state: StateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.set(5, cut(5))
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", mig_uuid(5, 2))
    assert cards(client) == [5]
    card = client.nvmlDeviceGetHandleByIndex(0)
    device = client.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
    assert client.nvmlDeviceGetUUID(device) == mig_uuid(5, 2)
    with pytest.raises(client.NVMLError_NotFound):
        client.nvmlDeviceGetMigDeviceHandleByIndex(card, 1)
    with pytest.raises(client.NVMLError_NotFound):
        client.nvmlDeviceGetHandleByUUID(mig_uuid(5, 7))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("CUDA_DEVICE_MEMORY_LIMIT_0", "3000m", 3000 * MIB),
        ("CUDA_DEVICE_MEMORY_LIMIT", "2g", 2 * GIB),
        ("CUDA_DEVICE_MEMORY_LIMIT_0", "2097152k", 2 * GIB),
        ("CUDA_DEVICE_MEMORY_LIMIT_0", "2147483648", 2 * GIB),
        ("CUDA_DEVICE_MEMORY_LIMIT_1", "3000m", 40960 * MIB),
        ("CUDA_DEVICE_MEMORY_LIMIT_0", "0", 40960 * MIB),
        ("CUDA_DEVICE_MEMORY_LIMIT_0", "much", 40960 * MIB),
        ("CUDA_DEVICE_MEMORY_LIMIT_0", "9999999999999999g", 40960 * MIB),
        ("CUDA_DEVICE_MEMORY_LIMIT_0", "99999999999999999999", 40960 * MIB),
    ],
)
def test_memory_limit(  # noqa: PLR0917
    client: ModuleType,
    state: StateFile,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    expected: int,
) -> None:
    # The limit's number is the container's own, not the node's.
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "4")
    monkeypatch.setenv(name, value)
    client.nvmlInit()
    memory = client.nvmlDeviceGetMemoryInfo(client.nvmlDeviceGetHandleByIndex(0))
    assert memory.total == expected
    assert memory.used + memory.free == memory.total


def test_no_more_is_used_than_the_limit(
    client: ModuleType, state: StateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_DEVICE_MEMORY_LIMIT", "500m")
    client.nvmlInit()
    memory = client.nvmlDeviceGetMemoryInfo(client.nvmlDeviceGetHandleByIndex(0))
    assert (memory.total, memory.used, memory.free) == (500 * MIB, 500 * MIB, 0)


def test_a_container_of_hamis_sees_what_it_uses_itself(
    client: ModuleType, state: StateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    owned = [("uid-1_0", 100), ("uid-1_1", 700), ("uid-1_0", 50), ("", 30)]
    processes = [
        {"pid": 1000 + n, "memory": memory * MIB, "owner": owner, "type": 1}
        for n, (owner, memory) in enumerate(owned)
    ]
    state.set(0, live(0) | {"processes": processes, "process_count": len(processes)})
    monkeypatch.setenv("CUDA_DEVICE_MEMORY_LIMIT_0", "500m")
    monkeypatch.setenv("CUDA_DEVICE_MEMORY_SHARED_CACHE", "/usr/local/vgpu/uid-1_0.cache")
    client.nvmlInit()
    memory = client.nvmlDeviceGetMemoryInfo(client.nvmlDeviceGetHandleByIndex(0))
    assert (memory.total, memory.used, memory.free) == (500 * MIB, 150 * MIB, 350 * MIB)


@pytest.mark.parametrize(
    ("listed", "nodes", "expected"),
    [
        ("all", ["null"], range(8)),
        ("all", ["nvidia1", "nvidia6", "nvidiactl", "nvidia-uvm", "nvidia-modeset"], [1, 6]),
        ("all", ["nvidia77"], []),
        ("all", ["nvidiactl"], range(8)),
        # As specifications of nvidia-ctk have it: the nodes alone say which cards there are.
        ("void", ["nvidia1", "nvidia6", "nvidiactl"], [1, 6]),
        ("void", ["nvidiactl"], []),
    ],
)
def test_device_nodes(  # noqa: PLR0917
    library_path: Path,
    state: StateFile,
    monkeypatch: pytest.MonkeyPatch,
    listed: str,
    nodes: list[str],
    expected: list[int],
) -> None:
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", listed)
    shell = ["unshare", "-m", "sh", "-ec"]
    mount = "mount -t tmpfs none /dev"
    tried = subprocess.run([*shell, mount], check=False, capture_output=True)
    if tried.returncode:
        pytest.skip(f"no mount namespaces: {tried.stderr.decode().strip()}")
    script = f'{mount}; for each in {" ".join(nodes)}; do : >/dev/$each; done; exec "$@"'
    client = [sys.executable, "-c", COUNT, str(library_path)]
    found = subprocess.check_output([*shell, script, "sh", *client], text=True)
    assert [int(line) for line in found.split()] == list(expected)
