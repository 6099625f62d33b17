"""Xids reach whoever waits, wherever."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hami_mock.views.driver import layout
from tests.driver.state_file import FUTEX, StateFile, card_uuid

XID, CLOCK, FOREVER = 8, 16, 0xFFFFFFFF

# Says when it begins to wait, and what it learns.
WAITER = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
assert library.nvmlInit_v2() == 0
device, events, data = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_ulonglong * 4)()
assert library.nvmlDeviceGetHandleByIndex_v2(3, ctypes.byref(device)) == 0
assert library.nvmlEventSetCreate(ctypes.byref(events)) == 0
assert library.nvmlDeviceRegisterEvents(device, ctypes.c_ulonglong(8), events) == 0
print("waiting", flush=True)
for _ in range(2):
    result = library.nvmlEventSetWait_v2(events, data, 60000)
    print(result, data[0] == device.value, data[1], data[2], hex(data[3]), flush=True)
"""


def event_set(nvml: ModuleType, *cards: int, kinds: int = XID) -> Any:
    found = nvml.nvmlEventSetCreate()
    for card in cards:
        nvml.nvmlDeviceRegisterEvents(nvml.nvmlDeviceGetHandleByIndex(card), kinds, found)
    return found


def test_an_event_is_told_once(nvml: ModuleType, state: StateFile) -> None:
    state.xid(2, 13)
    events = event_set(nvml, 1, 2)
    state.xid(2, 79)
    state.xid(3, 31)
    state.xid(1, 48)
    first, second = (nvml.nvmlEventSetWait_v2(events, 0) for _ in range(2))
    assert [nvml.nvmlDeviceGetIndex(each.device) for each in (first, second)] == [2, 1]
    assert [(each.eventType, each.eventData) for each in (first, second)] == [(8, 79), (8, 48)]
    assert first.gpuInstanceId == first.computeInstanceId == 0xFFFFFFFF
    with pytest.raises(nvml.NVMLError_Timeout):
        nvml.nvmlEventSetWait_v2(events, 20)


def test_the_third_way_to_wait(nvml: ModuleType, state: StateFile) -> None:
    events = event_set(nvml, 1, 2)
    begun = time.time_ns() // 1000
    state.xid(2, 79)
    asked = nvml.c_nvmlEventSetWait_v3_t(traceId=7, sourceModule=b"x", severity=7, groupIndex=7)
    nvml.nvmlEventSetWait_v3(events, asked)
    assert asked.uuid == card_uuid(2)
    assert (asked.dataType, asked.eventType, asked.eventData) == (0, XID, 79)
    assert asked.gpuInstanceId == asked.computeInstanceId == 0xFFFFFFFF
    assert begun <= asked.timestampUsec <= time.time_ns() // 1000
    assert not any((asked.traceId, asked.sourceModule, asked.severity, asked.groupIndex))
    asked.timeoutMs = 20
    with pytest.raises(nvml.NVMLError_Timeout):
        nvml.nvmlEventSetWait_v3(events, asked)
    nvml.nvmlEventSetFree(events)


def test_every_set_is_told(nvml: ModuleType, state: StateFile) -> None:
    sets = [event_set(nvml, 0) for _ in range(64)]
    with pytest.raises(nvml.NVMLError_InsufficientResources):
        nvml.nvmlEventSetCreate()
    state.xid(0, 63)
    assert [nvml.nvmlEventSetWait_v2(each, 0).eventData for each in sets] == [63] * 64
    for each in sets:
        nvml.nvmlEventSetFree(each)
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlEventSetWait_v2(sets[0], 0)
    # A set that is made anew knows nothing of what the old one waited for.
    again = nvml.nvmlEventSetCreate()
    state.xid(0, 64)
    with pytest.raises(nvml.NVMLError_Timeout):
        nvml.nvmlEventSetWait_v2(again, 0)
    nvml.nvmlEventSetFree(again)


def test_only_kinds_that_were_asked_for(nvml: ModuleType, state: StateFile) -> None:
    events = event_set(nvml, 0, kinds=CLOCK)
    state.xid(0, 79)
    state.xid(0, 0, kind=CLOCK)
    assert nvml.nvmlEventSetWait_v2(events, 0).eventType == CLOCK
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        event_set(nvml, 0, kinds=1 << 40)
    nvml.nvmlEventSetFree(events)


def test_the_ring_goes_round(nvml: ModuleType, state: StateFile) -> None:
    events = event_set(nvml, 0)
    for number in range(layout.RING + 50):
        state.xid(0, number)
    # The place of the oldest may be written to at this moment.
    told = [nvml.nvmlEventSetWait_v2(events, 0).eventData for _ in range(layout.RING - 1)]
    assert told == list(range(51, layout.RING + 50))
    with pytest.raises(nvml.NVMLError_Timeout):
        nvml.nvmlEventSetWait_v2(events, 0)
    nvml.nvmlEventSetFree(events)


def test_it_goes_on_in_another_file(nvml: ModuleType, state: StateFile) -> None:
    events = event_set(nvml, 0)
    for number in range(3):
        state.xid(0, number)
    assert nvml.nvmlEventSetWait_v2(events, 0).eventData == 0
    other = state.replaced(cards=8)
    other.xid(0, 99)
    assert [nvml.nvmlEventSetWait_v2(events, 0).eventData for _ in range(3)] == [1, 2, 99]
    other.close()
    nvml.nvmlEventSetFree(events)


def test_another_file_may_count_anew(nvml: ModuleType, state: StateFile) -> None:
    events = event_set(nvml, 0)
    for number in range(3):
        state.xid(0, number)
    assert nvml.nvmlEventSetWait_v2(events, 0).eventData == 0
    other = state.replaced(cards=8, keeps_events=False)
    with pytest.raises(nvml.NVMLError_Timeout):
        nvml.nvmlEventSetWait_v2(events, 0)
    other.xid(0, 99)
    assert nvml.nvmlEventSetWait_v2(events, 0).eventData == 99
    other.close()
    nvml.nvmlEventSetFree(events)


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 30)[0], "nothing was said in half a minute"
    return process.stdout.readline().strip()


@contextmanager
def waiting(command: list[str | Path]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert line_of(process) == "waiting"
        yield process
    finally:
        process.kill()
        process.communicate()


def sleeps(process: "subprocess.Popen[str]") -> None:
    """Wait until it has nothing to do but to sleep until an event comes."""
    call = Path(f"/proc/{process.pid}/syscall")
    while not call.read_text().startswith(f"{FUTEX[os.uname().machine]} "):
        assert process.poll() is None


def tell_twice(process: "subprocess.Popen[str]", state: StateFile) -> None:
    sleeps(process)
    assert state.xid(3, 79) == 1
    assert line_of(process) == "0 True 8 79 0xffffffffffffffff"
    state.xid(4, 31)
    state.xid(3, 94)
    assert line_of(process) == "0 True 8 94 0xffffffffffffffff"
    assert process.wait(30) == 0


def test_another_process_is_woken(library_path: Path, state: StateFile) -> None:
    with waiting([sys.executable, "-c", WAITER, library_path]) as process:
        tell_twice(process, state)


def test_a_read_only_mount_in_another_namespace(
    library_path: Path, state: StateFile, tmp_path: Path
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    mount = 'mount --bind "$1" "$2" && mount -o remount,ro,bind "$2"'
    shell = ["unshare", "-m", "sh", "-ec"]
    tried = subprocess.run(
        [*shell, mount, "sh", state.folder, inside], check=False, capture_output=True
    )
    if tried.returncode:
        pytest.skip(f"no mount namespaces: {tried.stderr.decode().strip()}")
    start = f'{mount} && export {layout.STATE_VARIABLE}="$2" && shift 2 && exec "$@"'
    client: list[str | Path] = [sys.executable, "-c", WAITER, library_path]
    with waiting([*shell, start, "sh", state.folder, inside, *client]) as process:
        assert not [*inside.iterdir()]
        tell_twice(process, state)
