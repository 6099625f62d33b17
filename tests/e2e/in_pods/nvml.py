"""Runs in a pod with NVML open: for every line that it gets, it writes what its cards say, as JSON.

It needs nothing but Python: the library is found by its plain name, as every client finds it.
"""

import ctypes
import json
import sys

nvml = ctypes.CDLL("libnvidia-ml.so.1")


class Memory(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")),
    )


class Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


def call(name: str, *arguments: object) -> None:
    if result := getattr(nvml, name)(*arguments):
        raise SystemExit(f"{name} says {result}")


def card(index: int) -> dict[str, object]:
    handle, uuid, power = ctypes.c_void_p(), ctypes.create_string_buffer(96), ctypes.c_uint()
    memory, utilization = Memory(ctypes.sizeof(Memory) | 2 << 24), Utilization()
    call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
    call("nvmlDeviceGetUUID", handle, uuid, len(uuid))
    call("nvmlDeviceGetMemoryInfo_v2", handle, ctypes.byref(memory))
    call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(utilization))
    call("nvmlDeviceGetPowerUsage", handle, ctypes.byref(power))
    return {
        "uuid": uuid.value.decode(),
        "total": memory.total >> 20,
        "used": memory.used >> 20,
        "busy": utilization.gpu,
        "power": power.value / 1000,
    }


def cards() -> list[dict[str, object]]:
    count = ctypes.c_uint()
    call("nvmlDeviceGetCount_v2", ctypes.byref(count))
    return [card(index) for index in range(count.value)]


call("nvmlInit_v2")
for _ in sys.stdin:
    print(json.dumps(cards()), flush=True)
