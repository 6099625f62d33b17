import pytest

from hami_mock.doctor.dra_objects import Capacity, Device
from hami_mock.doctor.dra_selectors import can_be_read, matches

DEVICE = Device(
    "gpu.nvidia.com", "n", "n", "gpu-0",
    {"type": "gpu", "minor": 3, "ecc": True, "resource.kubernetes.io/numaNode": 1, "odd": "a&&b"},
    {"memory": Capacity(80 * 2**30, 80 * 2**30)},
)  # fmt: skip
OWN = "device.attributes['gpu.nvidia.com']"


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("device.driver == 'gpu.nvidia.com'", True),
        ('device.driver=="gpu.nvidia.com"', True),
        ("device.driver == 'gpu.example.com'", False),
        ("device.driver != 'gpu.example.com'", True),
        (f"{OWN}.type == 'gpu'", True),
        (f"{OWN}.type == 'mig'", False),
        (f"{OWN}.type != 'mig'", True),
        (f"{OWN}.minor == 3", True),
        (f"{OWN}.minor == 4", False),
        (f"{OWN}.minor == '3'", False),
        (f"{OWN}.ecc", True),
        (f"{OWN}.ecc == false", False),
        (f"{OWN}.absent == 'x'", False),
        (f"{OWN}.absent != 'x'", False),
        ("device.attributes['resource.kubernetes.io'].numaNode == 1", True),
        ("device.attributes['other'].type == 'gpu'", False),
        (f"device.driver == 'gpu.nvidia.com' &&\n  {OWN}.type == 'gpu'", True),
        (f"device.driver == 'gpu.nvidia.com' && {OWN}.type == 'mig'", False),
        (f"{OWN}.odd == 'a&&b'", True),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0", True),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('90Gi')) >= 0", False),
        ("device.capacity['gpu.nvidia.com'].cores.compareTo(quantity('1')) >= 0", False),
        # What is false stays so, whatever the rest is.
        (f"{OWN}.type == 'mig' && {OWN}.productName.startsWith('A')", False),
        (f"{OWN}.type == 'gpu' && {OWN}.productName.startsWith('A')", None),
        (f"{OWN}.type == 'mig' || {OWN}.minor == 3", None),
        (f"device.driver == 'x' || device.driver == 'y' && {OWN}.type == 'mig'", None),
        (f"!(true && {OWN}.type == 'mig' && true)", None),
        (f"({OWN}.type == 'gpu')", None),
        (f"{OWN}.ecc ? true : {OWN}.type == 'mig' && true", None),
        ("", None),
        ("'", None),
        ("device.driver == 'x" + "&" * 20_000, None),
        ("(" * 9_000, None),
    ],
)
def test_an_expression_is_right_or_not_evaluated(expression: str, wanted: bool | None) -> None:
    assert matches([expression], DEVICE) is wanted
    assert matches(["device.driver == 'gpu.nvidia.com'", expression], DEVICE) is wanted


@pytest.mark.parametrize(
    ("expression", "is_readable"),
    [
        (f"{OWN}.type == 'mig' && {OWN}.minor == 3", True),
        (f"{OWN}.type == 'mig' && {OWN}.productName.startsWith('A')", False),
        (f"{OWN}.type == 'mig' || {OWN}.minor == 3", False),
    ],
)
def test_it_is_known_what_can_be_read(expression: str, is_readable: bool) -> None:
    assert can_be_read(expression) is is_readable
