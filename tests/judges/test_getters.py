"""nvidia-ml-py: how many of its getters that need only a card are answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot

_WALK = Path(__file__).parent / "clients" / "walk.py"
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
# Of vGPU, of Windows, of MIG devices, of confidential computing, of memory that the CPU addresses:
# whole cards here have none of these.
NOT_OF_A_CARD = {
    "nvmlDeviceGetActiveVgpus",
    "nvmlDeviceGetCreatableVgpus",
    "nvmlDeviceGetSupportedVgpus",
    "nvmlDeviceGetAttributes",
    "nvmlDeviceGetAttributes_v2",
    "nvmlDeviceGetComputeInstanceId",
    "nvmlDeviceGetConfComputeGpuCertificate",
    "nvmlDeviceGetCurrentDriverModel",
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
    "nvmlDeviceGetDriverModel",
    "nvmlDeviceGetDriverModel_v1",
    "nvmlDeviceGetDriverModel_v2",
    "nvmlDeviceGetGpuInstanceId",
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


def walked(python: Path, root: DriverRoot) -> dict[str, str]:
    """Return what came of each getter: an error's words, or that it was answered."""
    lines = root.ask(python, _WALK).splitlines()
    return dict(line.split("\t") for line in lines)


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
    silent = {name for name, said in found.items() if said != "answered"}
    assert silent == NOT_OF_A_CARD | OF_FANS | OF_THE_PAST | newer
    assert len(found) - len(silent) >= answered


def test_an_older_card_answers_less(have: Have, root_of: MakeRoot) -> None:
    found = walked(have("nvidia-ml-py"), root_of("A100-SXM4-80GB", 8))
    silent = {name for name, said in found.items() if said != "answered"}
    newer = OF_BLACKWELL | {"nvmlDeviceGetMarginTemperature"}
    assert silent == NOT_OF_A_CARD | OF_FANS | OF_THE_PAST | newer


def test_a_card_without_ecc_and_mig_answers_less(have: Have, root_of: MakeRoot) -> None:
    found = walked(have("nvidia-ml-py"), root_of("RTX-4090", 1))
    assert found["nvmlDeviceGetMigMode"] == "Not Supported"
    assert found["nvmlDeviceGetEccMode"] == "Not Supported"
    assert {found[name] for name in OF_FANS} == {"answered"}
