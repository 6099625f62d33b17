"""nvidia-ml-py: how many of its getters that need only a card are answered."""

from __future__ import annotations

import pytest

from tests.judges.conftest import Have, MakeRoot
from tests.judges.getters import silent_everywhere, silent_of, walked

# Of the past: auto boost is that of application clocks, no board here has several cards.
OF_THE_PAST = {
    "nvmlDeviceGetAutoBoostedClocksEnabled",
    "nvmlDeviceGetBridgeChipInfo",
    "nvmlDeviceGetCurrentGpuOperationMode",
    "nvmlDeviceGetGpuOperationMode",
    "nvmlDeviceGetPendingGpuOperationMode",
    "nvmlDeviceGetRetiredPagesPendingStatus",
}
OF_BLACKWELL = {
    "nvmlDeviceGetCurrentDramEncryptionMode",
    "nvmlDeviceGetDramEncryptionMode",
    "nvmlDeviceGetHostname_v1",
    "nvmlDeviceGetPendingDramEncryptionMode",
}
OF_MIG_DEVICES = {
    "nvmlDeviceGetAttributes",
    "nvmlDeviceGetAttributes_v2",
    "nvmlDeviceGetComputeInstanceId",
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
    "nvmlDeviceGetGpuInstanceId",
}
# Of vGPU, of Windows, of confidential computing, of memory that the CPU addresses.
NOT_HERE = {
    "nvmlDeviceGetActiveVgpus",
    "nvmlDeviceGetCreatableVgpus",
    "nvmlDeviceGetSupportedVgpus",
    "nvmlDeviceGetConfComputeGpuCertificate",
    "nvmlDeviceGetCurrentDriverModel",
    "nvmlDeviceGetDriverModel",
    "nvmlDeviceGetDriverModel_v1",
    "nvmlDeviceGetDriverModel_v2",
    "nvmlDeviceGetHostVgpuMode",
    "nvmlDeviceGetNumaNodeId",
    "nvmlDeviceGetPendingDriverModel",
    "nvmlDeviceGetPgpuMetadataString",
    "nvmlDeviceGetVgpuHeterogeneousMode",
    "nvmlDeviceGetVgpuMetadata",
    "nvmlDeviceGetVgpuSchedulerCapabilities",
    "nvmlDeviceGetVgpuSchedulerLog",
    "nvmlDeviceGetVgpuSchedulerState",
}
OF_FANS = {
    "nvmlDeviceGetCoolerInfo",
    "nvmlDeviceGetFanSpeed",
    "nvmlDeviceGetFanSpeedRPM",
    "nvmlDeviceGetMinMaxFanSpeed",
}


@pytest.mark.parametrize(
    ("model", "newer", "answered"),
    [("H100-SXM5-80GB", OF_BLACKWELL, 107), ("B200", set(), 111)],
)
def test_all_but_those_that_no_card_answers(
    have: Have, root_of: MakeRoot, model: str, newer: set[str], answered: int
) -> None:
    found = walked(have("nvidia-ml-py"), root_of(model, 8))
    silent = silent_of(found)
    assert silent == NOT_HERE | OF_MIG_DEVICES | OF_FANS | OF_THE_PAST | newer
    assert len(found) - len(silent) >= answered


def test_all_but_two_dozen_are_answered_by_some_card(have: Have, root_of: MakeRoot) -> None:
    python = have("nvidia-ml-py")
    silent = silent_everywhere(python, root_of)
    retired = "nvmlDeviceGetRetiredPagesPendingStatus"
    assert silent == NOT_HERE | OF_THE_PAST - {retired}
    assert len(walked(python, root_of("B200", 1))) - len(silent) >= 120


@pytest.mark.parametrize(("model", "answered"), [("V100-SXM2-32GB", 97), ("RTX-PRO-6000", 115)])
def test_how_many_one_card_alone_answers(
    have: Have, root_of: MakeRoot, model: str, answered: int
) -> None:
    found = walked(have("nvidia-ml-py"), root_of(model, 1))
    assert len(found) - len(silent_of(found)) == answered


def test_an_older_card_answers_less(have: Have, root_of: MakeRoot) -> None:
    found = walked(have("nvidia-ml-py"), root_of("A100-SXM4-80GB", 8))
    silent = silent_of(found)
    newer = OF_BLACKWELL | {"nvmlDeviceGetMarginTemperature"}
    assert silent == NOT_HERE | OF_MIG_DEVICES | OF_FANS | OF_THE_PAST | newer


def test_a_card_without_ecc_and_mig_answers_less(have: Have, root_of: MakeRoot) -> None:
    found = walked(have("nvidia-ml-py"), root_of("RTX-4090", 1))
    assert found["nvmlDeviceGetMigMode"] == "Not Supported"
    assert found["nvmlDeviceGetEccMode"] == "Not Supported"
    assert {found[name] for name in OF_FANS} == {"answered"}
