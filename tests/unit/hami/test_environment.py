from hami_mock.hami.assignment import AssignedDevice
from hami_mock.hami.environment import variables

DEVICES = [AssignedDevice("GPU-1", "NVIDIA", 3000, 30), AssignedDevice("GPU-2", "NVIDIA", 500, 10)]


def test_a_name_with_a_number_is_set_for_each_device_and_others_for_the_first() -> None:
    templates = (("LIMIT_{i}", "{memory}m"), ("CORES", "{cores}"), ("CACHE", "/{unique}.cache"))
    assert variables(templates, DEVICES, unique="x") == {
        "LIMIT_0": "3000m",
        "LIMIT_1": "500m",
        "CORES": "30",
        "CACHE": "/x.cache",
    }


def test_what_would_be_empty_is_not_set() -> None:
    assert variables((("SPECS", "{template}"),), DEVICES, template="") == {}
    assert variables((("LIMIT_{i}", "{memory}m"), ("CORES", "{cores}")), []) == {}
