"""What a card says, asked by NVIDIA's own Python client."""

import ctypes
import inspect
import os
from collections.abc import Callable
from contextlib import closing
from types import ModuleType
from typing import Any

import pytest

from tests.driver.state_file import MIB, StateFile, card_uuid, live

# Of vGPU, of Windows, of MIG devices, of older and newer cards, of boards with several cards.
NOT_OF_AN_A100 = {
    "nvmlDeviceGetActiveVgpus",
    "nvmlDeviceGetAttributes",
    "nvmlDeviceGetAttributes_v2",
    "nvmlDeviceGetAutoBoostedClocksEnabled",
    "nvmlDeviceGetBridgeChipInfo",
    "nvmlDeviceGetComputeInstanceId",
    "nvmlDeviceGetConfComputeGpuCertificate",
    "nvmlDeviceGetCreatableVgpus",
    "nvmlDeviceGetCurrentDramEncryptionMode",
    "nvmlDeviceGetCurrentDriverModel",
    "nvmlDeviceGetCurrentGpuOperationMode",
    "nvmlDeviceGetDramEncryptionMode",
    "nvmlDeviceGetDriverModel",
    "nvmlDeviceGetDriverModel_v1",
    "nvmlDeviceGetDriverModel_v2",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetGpuOperationMode",
    "nvmlDeviceGetHostVgpuMode",
    "nvmlDeviceGetHostname_v1",
    "nvmlDeviceGetMarginTemperature",
    "nvmlDeviceGetNumaNodeId",
    "nvmlDeviceGetPendingDramEncryptionMode",
    "nvmlDeviceGetPendingDriverModel",
    "nvmlDeviceGetPendingGpuOperationMode",
    "nvmlDeviceGetPgpuMetadataString",
    "nvmlDeviceGetRetiredPagesPendingStatus",
    "nvmlDeviceGetSupportedVgpus",
    "nvmlDeviceGetVgpuHeterogeneousMode",
    "nvmlDeviceGetVgpuMetadata",
    "nvmlDeviceGetVgpuSchedulerCapabilities",
    "nvmlDeviceGetVgpuSchedulerLog",
    "nvmlDeviceGetVgpuSchedulerState",
}
SUCCESS, INVALID_ARGUMENT, INSUFFICIENT_SIZE, LOST, VERSION_MISMATCH = 0, 2, 7, 15, 25


def getters(client: ModuleType) -> dict[str, Callable[[Any], Any]]:
    """The client's functions that take a card and nothing else."""
    functions = inspect.getmembers(client, inspect.isfunction)
    return {
        name: function
        for name, function in functions
        if list(inspect.signature(function).parameters) in (["handle"], ["device"])
        and not name.startswith(("nvmlDeviceReset", "nvmlDeviceClearA", "nvmlDeviceVgpuForce"))
    }


def answered(nvml: ModuleType, device: Any) -> set[str]:
    found = set()
    for name, function in getters(nvml).items():
        try:
            function(device)
        except nvml.NVMLError:
            continue
        found.add(name)
    return found


@pytest.mark.parametrize("index", [0, 7])
def test_most_getters_answer(nvml: ModuleType, index: int) -> None:
    known = getters(nvml)
    found = answered(nvml, nvml.nvmlDeviceGetHandleByIndex(index))
    print(f"{len(found)} of {len(known)} getters answer; not: {sorted(known.keys() - found)}")
    # A machine may lack the CPUs that are said to be near a card.
    assert len(found | {"nvmlDeviceSetCpuAffinity"}) == len(known) - len(NOT_OF_AN_A100)
    assert NOT_OF_AN_A100.isdisjoint(found)


def test_a_card_says_what_the_state_says(nvml: ModuleType) -> None:
    assert nvml.nvmlDeviceGetCount() == 8
    assert nvml.nvmlSystemGetDriverVersion() == "580.65.06"
    assert nvml.nvmlSystemGetNVMLVersion() == "13.580.65.06"
    assert nvml.nvmlSystemGetCudaDriverVersion() == 13000
    card = nvml.nvmlDeviceGetHandleByIndex(3)
    assert nvml.nvmlDeviceGetName(card) == "NVIDIA A100-SXM4-40GB"
    assert nvml.nvmlDeviceGetUUID(card) == card_uuid(3)
    assert nvml.nvmlDeviceGetSerial(card) == "1320000000003"
    assert nvml.nvmlDeviceGetMinorNumber(card) == 3
    assert nvml.nvmlDeviceGetUtilizationRates(card).gpu == 43
    assert nvml.nvmlDeviceGetUtilizationRates(card).memory == 23
    assert nvml.nvmlDeviceGetPowerUsage(card) == 250_003
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(card) == 123_456_789_003
    assert nvml.nvmlDeviceGetTemperature(card, 0) == 53
    assert nvml.nvmlDeviceGetFanSpeed(card) == 45
    assert nvml.nvmlDeviceGetPcieThroughput(card, 0) == 1003
    assert nvml.nvmlDeviceGetPcieThroughput(card, 1) == 2003
    assert [nvml.nvmlDeviceGetClockInfo(card, kind) for kind in range(4)] == [
        1200,
        1200,
        1215,
        1100,
    ]
    assert [nvml.nvmlDeviceGetMaxClockInfo(card, kind) for kind in range(4)] == [
        1410,
        1410,
        1215,
        1290,
    ]
    assert nvml.nvmlDeviceGetCudaComputeCapability(card) == (8, 0)
    assert nvml.nvmlDeviceGetPowerManagementLimitConstraints(card) == [100_000, 400_000]
    assert nvml.nvmlDeviceGetSupportedGraphicsClocks(card, 1215)[:2] == [1410, 1395]
    assert len(nvml.nvmlDeviceGetSupportedGraphicsClocks(card, 1215)) == 81
    assert list(nvml.nvmlDeviceGetCpuAffinity(card, 2)) == [0xFF, 0]
    assert nvml.nvmlDeviceGetEccMode(card) == [1, 1]
    assert nvml.nvmlDeviceGetPcieSpeed(card) == 16000


HOUR = 3_600_000_000


def test_processes(nvml: ModuleType) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(2)
    found = nvml.nvmlDeviceGetComputeRunningProcesses(card)
    assert [(each.pid, each.usedGpuMemory) for each in found] == [
        (1020, 600 * MIB),
        (1021, 600 * MIB),
    ]
    assert nvml.nvmlDeviceGetGraphicsRunningProcesses(card) == []
    assert nvml.nvmlSystemGetProcessName(1021) == "train-1"
    samples = nvml.nvmlDeviceGetProcessUtilization(card, 0)
    assert [(each.pid, each.smUtil) for each in samples] == [(1020, 20), (1021, 20)]
    with pytest.raises(nvml.NVMLError_NotFound):
        nvml.nvmlDeviceGetProcessUtilization(card, samples[0].timeStamp + HOUR)
    # A load that stays the same is sampled on and on: who asks for what is new, gets it.
    again = nvml.nvmlDeviceGetProcessUtilization(card, samples[0].timeStamp)
    assert [each.smUtil for each in again] == [20, 20]


def test_sixty_four_processes(nvml: ModuleType, state: StateFile) -> None:
    many = [{"pid": 1 + i, "memory": i, "type": 1} for i in range(64)]
    state.set(0, live(0) | {"process_count": 64, "processes": many})
    found = nvml.nvmlDeviceGetComputeRunningProcesses(nvml.nvmlDeviceGetHandleByIndex(0))
    assert [(each.pid, each.usedGpuMemory) for each in found] == [(1 + i, i) for i in range(64)]


def test_field_values(nvml: ModuleType) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(1)
    asked = [1, 3, 82, 83, 91, (164, 2), 138, (138, 0), 186, 87, 230, 9999]
    found = nvml.nvmlDeviceGetFieldValues(card, asked)
    assert [each.nvmlReturn for each in found] == [*[0] * 11, 3]
    values = [each.value for each in found]
    assert values[0].uiVal == 1
    assert values[1].ullVal == 5
    assert values[2].uiVal == 60
    assert values[3].ullVal == 123_456_789_001
    assert values[4].uiVal == 4
    assert values[5].uiVal == 25000
    assert values[7].ullVal == 7
    assert values[8].uiVal == 250_001
    assert values[9].uiVal == 25000
    everything = nvml.nvmlDeviceGetFieldValues(card, [(138, 0xFFFFFFFF)])
    assert everything[0].value.ullVal == 28


@pytest.mark.parametrize(
    ("unlike", "asked", "expected"),
    [
        # Power of memory, or of a module with a CPU.
        ({}, [(185, 0), (185, 1), (186, 2), (192, 1), (191, 1)], [0, 3, 3, 3, 0]),
        # A link that isn't there.
        ({}, [(164, 3), (164, 4), 87, 88, 132, (138, 4)], [0, 2, 0, 2, 2, 2]),
        ({"link_count": 0}, [32, 52, 84, 90, 96, 138, 148, 161, 164, 202, 205], [3] * 11),
        ({"architecture": 7}, [193, 194, 195, 196], [3] * 4),
        ({"architecture": 9}, [193, 194, 195, 196], [0] * 4),
    ],
)
def test_fields_that_a_card_lacks(
    nvml: ModuleType,
    state: StateFile,
    unlike: dict[str, int],
    asked: list[Any],
    expected: list[int],
) -> None:
    other = state.replaced(2, unlike=unlike)
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    found = nvml.nvmlDeviceGetFieldValues(card, asked)
    assert [each.nvmlReturn for each in found] == expected
    other.close()


def test_newer_cards_say_how_far_they_are_from_their_limits(
    nvml: ModuleType, state: StateFile
) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlDeviceGetMarginTemperature(card)
    other = state.replaced(2, unlike={"architecture": 9})
    assert nvml.nvmlDeviceGetMarginTemperature(card) == 85 - 50
    (slowdown,) = nvml.nvmlDeviceGetFieldValues(card, [194])
    assert slowdown.value.siVal == 85 - 89
    other.close()


def test_topology(nvml: ModuleType) -> None:
    cards = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(8)]
    levels = [nvml.nvmlDeviceGetTopologyCommonAncestor(cards[0], other) for other in cards]
    assert levels == [0, 10, 30, 30, 50, 50, 50, 50]
    assert len(nvml.nvmlDeviceGetTopologyNearestGpus(cards[0], 30)) == 2
    assert nvml.nvmlDeviceGetNvLinkState(cards[0], 0) == 1
    assert nvml.nvmlDeviceGetNvLinkRemotePciInfo(cards[0], 0).busId == "00000000:1C:00.0"
    by_link = [nvml.nvmlDeviceGetP2PStatus(cards[0], other, 2) for other in cards[1:]]
    assert by_link == [0, *[5] * 6]
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlDeviceGetNvLinkState(cards[0], 4)
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceGetNvLinkState(cards[0], 36)


def test_handles(nvml: ModuleType) -> None:
    for handle in (
        nvml.nvmlDeviceGetHandleByUUID(card_uuid(5)),
        nvml.nvmlDeviceGetHandleByPciBusId("00000000:20:00.0"),
        nvml.nvmlDeviceGetHandleByPciBusId("0000:20:00.0"),
        nvml.nvmlDeviceGetHandleBySerial("1320000000005"),
    ):
        assert nvml.nvmlDeviceGetIndex(handle) == 5
    for wrong in ("GPU-0", "", card_uuid(8)):
        with pytest.raises(nvml.NVMLError_NotFound):
            nvml.nvmlDeviceGetHandleByUUID(wrong)
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceGetHandleByPciBusId("20.0")
    with pytest.raises(nvml.NVMLError_NotFound):
        nvml.nvmlDeviceGetHandleByPciBusId("0000:20:00.1")
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceGetHandleByIndex(8)


def test_bad_arguments(nvml: ModuleType, library: ctypes.CDLL) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    text = ctypes.create_string_buffer(8)
    assert library.nvmlDeviceGetPowerUsage(card, None) == INVALID_ARGUMENT
    assert library.nvmlDeviceGetPowerUsage(None, text) == INVALID_ARGUMENT
    assert library.nvmlDeviceGetPowerUsage(ctypes.c_void_p(4096), text) == INVALID_ARGUMENT
    assert library.nvmlDeviceGetName(card, text, 8) == INSUFFICIENT_SIZE
    assert library.nvmlDeviceGetMemoryInfo_v2(card, text) == VERSION_MISMATCH
    count = ctypes.c_uint(1)
    assert (
        library.nvmlDeviceGetComputeRunningProcesses_v3(card, ctypes.byref(count), text)
        == INSUFFICIENT_SIZE
    )
    assert count.value == 2


def test_lists_without_room(nvml: ModuleType, library: ctypes.CDLL) -> None:
    """Who asks how many there are gives no list; who gives none may not say how long it is."""
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    count = ctypes.c_uint(0)
    for name, arguments in (
        ("nvmlDeviceGetTopologyNearestGpus", (card, 30)),
        ("nvmlSystemGetTopologyGpuSet", (0,)),
    ):
        function, count.value = getattr(library, name), 0
        assert function(*arguments, ctypes.byref(count), None) == SUCCESS
        assert count.value >= 2
        assert function(*arguments, ctypes.byref(count), None) == INVALID_ARGUMENT
    sample, kind = nvml.c_nvmlSample_t(), ctypes.c_int()
    asked = (card, 1, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count))
    count.value = 0
    assert library.nvmlDeviceGetSamples(*asked, None) == SUCCESS
    assert count.value == 1
    count.value = 0
    assert library.nvmlDeviceGetSamples(*asked, ctypes.byref(sample)) == INVALID_ARGUMENT
    info = nvml.c_nvmlProcessesUtilizationInfo_v1_t(24 | 1 << 24, 9)
    assert (
        library.nvmlDeviceGetProcessesUtilizationInfo(card, ctypes.byref(info)) == INSUFFICIENT_SIZE
    )
    assert info.processSamplesCount == 2


def test_pairs_are_written_together_or_not_at_all(nvml: ModuleType, library: ctypes.CDLL) -> None:
    card, one = nvml.nvmlDeviceGetHandleByIndex(0), ctypes.c_uint(77)
    for name in ("EccMode", "MigMode", "CudaComputeCapability", "EncoderUtilization"):
        function = getattr(library, f"nvmlDeviceGet{name}")
        assert function(card, ctypes.byref(one), None) == INVALID_ARGUMENT
        assert function(card, None, ctypes.byref(one)) == INVALID_ARGUMENT
        assert one.value == 77


def test_how_long_a_policy_held_a_card_back(nvml: ModuleType, state: StateFile) -> None:
    state.set(0, live(0) | {"violations": tuple(range(12)), "timestamp": 1_700_000_000_000_000})
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    found = nvml.nvmlDeviceGetViolationStatus(card, 1)
    assert (found.referenceTime, found.violationTime) == (1_700_000_000_000_000, 1)
    assert nvml.nvmlDeviceGetViolationStatus(card, 11).violationTime == 11
    for none in (6, 9, 12):
        with pytest.raises(nvml.NVMLError_InvalidArgument):
            nvml.nvmlDeviceGetViolationStatus(card, none)
    assert nvml.nvmlDeviceGetFieldValues(card, [269])[0].value.ullVal == 1


def test_what_newer_cards_alone_know(nvml: ModuleType, state: StateFile) -> None:
    """The header names the generation; of an encryption that a card has not, it is off."""
    newer = {
        "nvmlDeviceGetHostname_v1", "nvmlDeviceGetDramEncryptionMode",
        "nvmlDeviceGetCurrentDramEncryptionMode", "nvmlDeviceGetPendingDramEncryptionMode",
        "nvmlDeviceGetMarginTemperature",
    }  # fmt: skip
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    ampere = answered(nvml, card)
    with closing(state.replaced(2, unlike={"architecture": 10})) as blackwell:
        assert answered(nvml, card) - ampere == newer
        blackwell.replaced(2, 3, unlike={"architecture": 5}).close()
    volta = answered(nvml, card)
    assert ampere - volta == {
        "nvmlDeviceGetAddressingMode", "nvmlDeviceGetConfComputeMemSizeInfo",
        "nvmlDeviceGetConfComputeProtectedMemoryUsage",
    }  # fmt: skip


def test_each_cards_inforom_has_a_checksum_of_its_own(nvml: ModuleType) -> None:
    def sums() -> list[int]:
        cards = map(nvml.nvmlDeviceGetHandleByIndex, range(8))
        return [nvml.nvmlDeviceGetInforomConfigurationChecksum(card) for card in cards]

    assert len(set(sums())) == 8
    assert sums() == sums()


def test_what_a_mode_must_be_on_for(nvml: ModuleType, state: StateFile) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlDeviceGetAccountingStats(card, 1000)
    state.set(0, live(0) | {"accounting_mode": 1, "ecc_mode": 0})
    assert nvml.nvmlDeviceGetAccountingStats(card, 1000).maxMemoryUsage == 600 * MIB
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlDeviceGetTotalEccErrors(card, 0, 0)
    assert nvml.nvmlDeviceGetDefaultEccMode(card) == [1]


def test_a_lost_card_is_lost(nvml: ModuleType, state: StateFile) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(4)
    state.set(4, live(4) | {"lost": 1})
    # Whoever had it before can still say which one it is.
    assert answered(nvml, card) == {
        "nvmlDeviceGetIndex",
        "nvmlDeviceGetMinorNumber",
        "nvmlDeviceGetPciInfo",
        "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetUUID",
        "nvmlDeviceIsMigDeviceHandle",
        "nvmlGpmQueryDeviceSupport",
    }
    with pytest.raises(nvml.NVMLError_GpuIsLost):
        nvml.nvmlDeviceGetMemoryInfo(card)
    with pytest.raises(nvml.NVMLError_GpuIsLost):
        nvml.nvmlDeviceGetHandleByIndex(4)
    assert nvml.nvmlDeviceGetUUID(card) == card_uuid(4)
    assert nvml.nvmlDeviceGetIndex(card) == 4
    assert nvml.nvmlDeviceGetCount() == 8
    assert nvml.nvmlDeviceGetPowerUsage(nvml.nvmlDeviceGetHandleByIndex(5)) == 250_005
    state.set(4, live(4))
    assert nvml.nvmlDeviceGetPowerUsage(card) == 250_004


def test_a_thread_runs_on_the_cpus_near_a_card(nvml: ModuleType) -> None:
    before = os.sched_getaffinity(0)
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    (mask,) = nvml.nvmlDeviceGetCpuAffinity(card, 1)
    near = {cpu for cpu in range(64) if mask >> cpu & 1} & before
    try:
        nvml.nvmlDeviceSetCpuAffinity(card)
        assert os.sched_getaffinity(0) == near
        nvml.nvmlDeviceClearCpuAffinity(card)
        assert os.sched_getaffinity(0) >= before
    finally:
        os.sched_setaffinity(0, before)
