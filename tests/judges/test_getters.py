"""nvidia-ml-py: how many of its getters that need only a card are answered."""

from __future__ import annotations

from pathlib import Path

from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot

_WALK = Path(__file__).parent / "clients" / "walk.py"
# Of vGPU, of Windows, of MIG devices, of confidential computing: whole cards have none of these.
NOT_OF_A_CARD = {
    "nvmlDeviceGetAttributes",
    "nvmlDeviceGetAttributes_v2",
    "nvmlDeviceGetComputeInstanceId",
    "nvmlDeviceGetConfComputeGpuCertificate",
    "nvmlDeviceGetCurrentDriverModel",
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
    "nvmlDeviceGetDriverModel",
    "nvmlDeviceGetDriverModel_v1",
    "nvmlDeviceGetDriverModel_v2",
    "nvmlDeviceGetGpcClkMinMaxVfOffset",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetHostVgpuMode",
    "nvmlDeviceGetMemClkMinMaxVfOffset",
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


def test_all_but_those_that_no_card_answers(have: Have, root_of: MakeRoot) -> None:
    found = walked(have("nvidia-ml-py"), root_of("H100-SXM5-80GB", 8))
    silent = {name: said for name, said in found.items() if said != "answered"}
    assert silent.keys() == NOT_OF_A_CARD
    assert len(found) - len(silent) >= 120


def test_a_card_without_ecc_links_and_mig_answers_less(have: Have, root_of: MakeRoot) -> None:
    python = have("nvidia-ml-py")
    found = walked(python, root_of("RTX-4090", 1))
    assert found["nvmlDeviceGetMigMode"] == "Not Supported"
    assert found["nvmlDeviceGetEccMode"] == "Not Supported"
    assert found["nvmlDeviceGetFanSpeed"] == "answered"
