import pytest

from hami_mock.hami import environment
from hami_mock.hami.assignment import AssignedDevice
from hami_mock.hami.environment import Environment

DEVICES = [AssignedDevice("GPU-1", "NVIDIA", 3000, 30), AssignedDevice("GPU-2", "NVIDIA", 500, 10)]


def test_nvidia_limits_each_card_and_the_cores_of_all() -> None:
    found = environment.NVIDIA.variables(DEVICES, ["GPU-1", "GPU-2"], unique="x")
    assert found == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2",
        "CUDA_DEVICE_MEMORY_LIMIT_0": "3000m",
        "CUDA_DEVICE_MEMORY_LIMIT_1": "500m",
        "CUDA_DEVICE_SM_LIMIT": "30",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE": "/usr/local/vgpu/x.cache",
    }


def test_a_card_of_two_devices_is_named_once() -> None:
    found = environment.ILUVATAR.variables(DEVICES, ["GPU-1", "GPU-1"])
    assert set(found.values()) == {"GPU-1"}


def test_oversubscription_is_said() -> None:
    found = environment.NVIDIA.variables(DEVICES, ["GPU-1"], oversubscribed=True)
    assert found["CUDA_OVERSUBSCRIBE"] == "true"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("", {"ASCEND_VISIBLE_DEVICES": "3"}),
        ("vir02", {"ASCEND_VISIBLE_DEVICES": "3", "ASCEND_VNPU_SPECS": "vir02"}),
    ],
)
def test_a_template_is_said_if_there_is_one(template: str, expected: dict[str, str]) -> None:
    assert environment.ASCEND.variables(DEVICES[:1], ["3"], template=template) == expected


def test_hamis_library_gets_a_quota() -> None:
    found = environment.ASCEND_HAMI_CORE.variables(DEVICES, ["3", "4"])
    assert found["NPU_MEM_QUOTA"] == "3000"
    assert found["NPU_PRIORITY"] == "30"


def test_without_names_or_devices_there_are_no_variables() -> None:
    assert Environment().variables(DEVICES, ["GPU-1"]) == {}
    assert environment.NVIDIA.variables([], []) == {}
