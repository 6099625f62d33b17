"""MIG: what there is, and what an agent makes of a setter's wishes."""

import ctypes
import os
import signal
import socket
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hami_mock.views.driver import layout
from hami_mock.views.driver.messages import OPERATIONS
from tests.driver.agent import Agent
from tests.driver.state_file import MIB, StateFile, cut, live, mig_uuid

IN_USE = 19


@pytest.fixture
def card(nvml: ModuleType, state: StateFile) -> Any:
    state.set(1, cut(1))
    return nvml.nvmlDeviceGetHandleByIndex(1)


def test_devices(nvml: ModuleType, card: Any) -> None:
    assert nvml.nvmlDeviceGetMigMode(card) == [1, 1]
    assert nvml.nvmlDeviceGetMaxMigDeviceCount(card) == 7
    devices = [nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, index) for index in range(2)]
    assert [nvml.nvmlDeviceGetUUID(each) for each in devices] == [mig_uuid(1, 7), mig_uuid(1, 2)]
    assert [nvml.nvmlDeviceGetName(each) for each in devices] == [
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA A100-SXM4-40GB MIG 2c.3g.20gb",
    ]
    assert [nvml.nvmlDeviceGetGpuInstanceId(each) for each in devices] == [7, 2]
    assert [nvml.nvmlDeviceGetComputeInstanceId(each) for each in devices] == [0, 0]
    assert nvml.nvmlDeviceIsMigDeviceHandle(devices[0]).value == 1
    assert nvml.nvmlDeviceIsMigDeviceHandle(card).value == 0
    parent = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(devices[1])
    assert nvml.nvmlDeviceGetIndex(parent) == 1
    again = nvml.nvmlDeviceGetHandleByUUID(mig_uuid(1, 2))
    attributes = nvml.nvmlDeviceGetAttributes(again)
    assert (attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount) == (3, 2)
    assert (attributes.multiprocessorCount, attributes.memorySizeMB) == (28, 19968)
    memory = nvml.nvmlDeviceGetMemoryInfo(again)
    assert (memory.total, memory.used) == (19968 * MIB, 110 * MIB)
    shared = nvml.nvmlDeviceGetBAR1MemoryInfo(again)
    assert (shared.bar1Total, shared.bar1Used) == (32767 * MIB, 0)
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlDeviceGetUtilizationRates(again)
    with pytest.raises(nvml.NVMLError_NotFound):
        nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 2)
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 7)


def test_how_busy_a_card_is_that_was_cut(nvml: ModuleType, card: Any) -> None:
    of_use = [
        nvml.nvmlDeviceGetUtilizationRates,
        nvml.nvmlDeviceGetEncoderUtilization,
        nvml.nvmlDeviceGetDecoderUtilization,
        nvml.nvmlDeviceGetJpgUtilization,
        nvml.nvmlDeviceGetOfaUtilization,
        lambda device: nvml.nvmlDeviceGetProcessUtilization(device, 0),
        lambda device: nvml.nvmlDeviceGetSamples(device, nvml.NVML_GPU_UTILIZATION_SAMPLES, 0),
    ]
    for ask in of_use:
        with pytest.raises(nvml.NVMLError_NotSupported):
            ask(card)
        ask(nvml.nvmlDeviceGetHandleByIndex(0))
    assert nvml.nvmlDeviceGetSamples(card, nvml.NVML_TOTAL_POWER_SAMPLES, 0)


def test_errors_of_memory(nvml: ModuleType, state: StateFile, card: Any) -> None:
    state.set(1, cut(1) | {"ecc_sram_uncorrected": 4, "ecc_sram_uncorrected_ever": 9})
    device = nvml.nvmlDeviceGetHandleByUUID(mig_uuid(1, 2))
    uncorrected, volatile, ever, dram, sram = 1, 0, 1, 2, 7
    count = nvml.nvmlDeviceGetMemoryErrorCounter
    assert count(device, uncorrected, volatile, sram) == 4
    assert count(card, uncorrected, ever, sram) == 9
    for wrong in (
        (device, uncorrected, volatile, dram),
        (device, 0, volatile, sram),
        (device, uncorrected, ever, sram),
        (card, uncorrected, volatile, sram),
    ):
        with pytest.raises(nvml.NVMLError_NotSupported):
            count(*wrong)


def test_what_a_card_could_be_cut_into(nvml: ModuleType, library: ctypes.CDLL) -> None:
    whole = nvml.nvmlDeviceGetHandleByIndex(0)
    assert nvml.nvmlDeviceGetMaxMigDeviceCount(whole) == 0
    count = ctypes.c_uint()
    placements = library.nvmlDeviceGetGpuInstancePossiblePlacements_v2
    assert placements(whole, 14, None, ctypes.byref(count)) == 0
    assert count.value == 3


def test_an_instance_that_is_gone(nvml: ModuleType, state: StateFile, card: Any) -> None:
    device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
    state.set(1, live(1))
    with pytest.raises(nvml.NVMLError_NotFound):
        nvml.nvmlDeviceGetUUID(device)


def test_profiles(nvml: ModuleType, card: Any) -> None:
    profile = nvml.nvmlDeviceGetGpuInstanceProfileInfo(card, 2, version=2)
    assert (profile.id, profile.sliceCount, profile.memorySizeMB) == (9, 3, 19968)
    assert (profile.multiprocessorCount, profile.instanceCount) == (42, 2)
    assert profile.name in ("MIG 3g.20gb", b"MIG 3g.20gb")
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlDeviceGetGpuInstanceProfileInfo(card, 3)
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceGetGpuInstanceProfileInfo(card, 18)
    # 1g.5gb is at 0, 3g.20gb at 4 to 7: two places and three slices are left for the smallest.
    remaining = [nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(card, i) for i in (19, 14, 9, 0)]
    assert remaining == [3, 1, 0, 0]
    places = (nvml.c_nvmlGpuInstancePlacement_t * 7)()
    count = nvml.c_uint(7)
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(card, 14, places, nvml.byref(count))
    assert [(each.start, each.size) for each in places[: count.value]] == [(0, 2), (2, 2), (4, 2)]


def test_instances(nvml: ModuleType, card: Any) -> None:
    instance = nvml.nvmlDeviceGetGpuInstanceById(card, 2)
    info = nvml.nvmlGpuInstanceGetInfo(instance)
    assert (info.id, info.profileId, info.placement.start, info.placement.size) == (2, 9, 4, 4)
    profile = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, 1, 0, version=2)
    assert (profile.id, profile.sliceCount, profile.instanceCount) == (1, 2, 1)
    left = nvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity
    assert [left(instance, number) for number in (0, 1, 2)] == [1, 0, 0]
    compute = nvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0)
    assert nvml.nvmlComputeInstanceGetInfo(compute).profileId == 1
    with pytest.raises(nvml.NVMLError_NotFound):
        nvml.nvmlDeviceGetGpuInstanceById(card, 3)


def test_processes_of_a_device(nvml: ModuleType, state: StateFile, card: Any) -> None:
    inside = {"pid": 5, "type": 1, "gpu_instance": 2, "compute_instance": 0}
    beside = inside | {"pid": 6, "gpu_instance": 7}
    state.set(1, cut(1) | {"process_count": 2, "processes": [inside, beside]})
    device = nvml.nvmlDeviceGetHandleByUUID(mig_uuid(1, 2))
    assert [each.pid for each in nvml.nvmlDeviceGetComputeRunningProcesses(device)] == [5]
    assert [each.pid for each in nvml.nvmlDeviceGetComputeRunningProcesses(card)] == [5, 6]


def test_the_mode_is_set_by_the_agent(nvml: ModuleType, agent: Agent) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(3)
    agent.reply = {"activation": IN_USE}
    assert nvml.nvmlDeviceSetMigMode(card, 1) == IN_USE
    (request,) = agent.requests
    assert (request["magic"], request["version"]) == (layout.MAGIC, layout.VERSION)
    assert (request["operation"], request["card"], request["values"]) == (1, 3, (1, 0))
    assert request["generation"] == 1
    assert agent.peers == [os.getpid()]


def test_instances_are_made_by_the_agent(nvml: ModuleType, agent: Agent) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(2)
    agent.reply = {"gpu_instance": 2}
    instance = nvml.nvmlDeviceCreateGpuInstance(card, 9)
    assert nvml.nvmlGpuInstanceGetInfo(instance).id == 2
    agent.reply = {"gpu_instance": 2, "compute_instance": 0}
    compute = nvml.nvmlGpuInstanceCreateComputeInstance(instance, 1)
    nvml.nvmlComputeInstanceDestroy(compute)
    nvml.nvmlGpuInstanceDestroy(instance)
    fields = "operation", "card", "gpu_instance", "compute_instance", "profile", "start"
    none = layout.NO_INSTANCE
    assert [tuple(each[name] for name in fields) for each in agent.requests] == [
        (2, 2, none, none, 9, none),
        (4, 2, 2, none, 1, none),
        (5, 2, 2, 0, 0, 0),
        (3, 2, 2, none, 0, 0),
    ]
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceCreateGpuInstance(card, 77)


@pytest.mark.parametrize(
    ("name", "arguments", "operation", "values"),
    [
        ("SetPowerManagementLimit", (250_000,), "SET_POWER_LIMIT", (250_000, 0)),
        ("SetPersistenceMode", (0,), "SET_PERSISTENCE_MODE", (0, 0)),
        ("SetComputeMode", (3,), "SET_COMPUTE_MODE", (3, 0)),
        ("SetEccMode", (0,), "SET_ECC_MODE", (0, 0)),
        ("ClearEccErrorCounts", (1,), "CLEAR_ECC_ERRORS", (1, 0)),
        ("SetGpuLockedClocks", (300, 900), "SET_GPU_LOCKED_CLOCKS", (300, 900)),
        ("ResetGpuLockedClocks", (), "SET_GPU_LOCKED_CLOCKS", (0, 0)),
        ("SetMemoryLockedClocks", (1215, 1215), "SET_MEMORY_LOCKED_CLOCKS", (1215, 1215)),
        ("SetApplicationsClocks", (1215, 900), "SET_APPLICATION_CLOCKS", (1215, 900)),
        ("SetAccountingMode", (1,), "SET_ACCOUNTING_MODE", (1, 0)),
    ],
)
def test_setters(  # noqa: PLR0917
    nvml: ModuleType,
    agent: Agent,
    name: str,
    arguments: tuple[int, ...],
    operation: str,
    values: tuple[int, int],
) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(6)
    setter = getattr(nvml, f"nvmlDevice{name}")
    setter(card, *arguments)
    (request,) = agent.requests
    assert (request["operation"], request["values"]) == (OPERATIONS[operation], values)
    assert request["card"] == 6
    agent.reply = {"result": IN_USE}
    with pytest.raises(nvml.NVMLError_InUse):
        setter(card, *arguments)


@pytest.mark.parametrize("clocks", [(1215, 1), (1215, 1411), (1, 900), (0, 0)])
def test_clocks_that_a_card_lacks_are_refused(
    nvml: ModuleType, agent: Agent, clocks: tuple[int, int]
) -> None:
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceSetApplicationsClocks(nvml.nvmlDeviceGetHandleByIndex(0), *clocks)
    assert agent.requests == []


def test_a_signal_disturbs_no_setter(nvml: ModuleType, agent: Agent) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    asker = threading.get_ident()
    receiving = {"x86_64": "45 ", "aarch64": "207 "}[os.uname().machine]
    call = Path(f"/proc/self/task/{threading.get_native_id()}/syscall")
    told, tells = socket.socketpair()
    tells.setblocking(False)

    def disturb() -> None:
        while not call.read_text().startswith(receiving):
            pass
        signal.pthread_kill(asker, signal.SIGUSR1)
        told.recv(1)  # the signal has come, and no answer yet

    agent.before_reply = disturb
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    woken = signal.set_wakeup_fd(tells.fileno())
    try:
        nvml.nvmlDeviceSetPersistenceMode(card, 1)
    finally:
        signal.set_wakeup_fd(woken)
        signal.signal(signal.SIGUSR1, before)
        told.close()
        tells.close()
    assert len(agent.requests) == 1


def test_without_an_agent_nobody_may(nvml: ModuleType) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    with pytest.raises(nvml.NVMLError_NoPermission):
        nvml.nvmlDeviceSetMigMode(card, 1)
    with pytest.raises(nvml.NVMLError_NoPermission):
        nvml.nvmlDeviceSetPersistenceMode(card, 1)
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceSetPowerManagementLimit(card, 400_001)


def test_an_agent_that_left_its_socket(nvml: ModuleType, state: StateFile) -> None:
    agent = Agent(state)
    agent.stop()
    assert Path(agent.path).exists()
    with pytest.raises(nvml.NVMLError_NoPermission):
        nvml.nvmlDeviceSetPersistenceMode(nvml.nvmlDeviceGetHandleByIndex(0), 1)
