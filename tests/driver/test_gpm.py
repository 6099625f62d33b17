"""GPM: what newer cards count of themselves, asked by NVIDIA's own Python client."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.driver.state_file import StateFile, cut, live, mig_uuid

HOPPER = {"architecture": 9, "decoders": 7, "jpegs": 7, "ofas": 1}
NOT_SUPPORTED, INVALID_ARGUMENT = 3, 2


@pytest.fixture
def hopper(nvml: ModuleType, state: StateFile) -> Iterator[tuple[Any, StateFile]]:
    """The second card of a node with new ones, linked to the first, and how to write its state."""
    other = state.replaced(2, unlike=HOPPER)
    yield nvml.nvmlDeviceGetHandleByIndex(1), other
    other.close()


def metrics(nvml: ModuleType, one: Any, other: Any, *ids: int) -> dict[int, tuple[int, float]]:
    """Return the result and the value of each metric."""
    asked = nvml.c_nvmlGpmMetricsGet_t(nvml.NVML_GPM_METRICS_GET_VERSION, len(ids), one, other)
    for place, number in enumerate(ids):
        asked.metrics[place].metricId = number
    nvml.nvmlGpmMetricsGet(asked)
    found = (asked.metrics[place] for place in range(len(ids)))
    return {each.metricId: (each.nvmlReturn, each.value) for each in found}


def test_metrics(nvml: ModuleType, hopper: Any) -> None:
    card, state = hopper
    assert nvml.nvmlGpmQueryDeviceSupport(card).isSupportedDevice
    one, other = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
    state.set(1, live(1) | {"links_sent": (0,) * 4, "links_received": (0,) * 4})
    nvml.nvmlGpmSampleGet(card, one)
    shown = {"tensor": 1234, "dram": 5, "decoder": 40, "pcie_sent": 1_048_576}
    state.set(1, live(1) | shown | {"links_sent": (1 << 20,) * 4, "links_received": (1 << 10,) * 4})
    nvml.nvmlGpmSampleGet(card, other)
    found = metrics(nvml, one, other, 1, 5, 10, 20, 30, 36, 50, 60, 61, 63, 69)
    values = {number: value for number, (result, value) in found.items() if result == 0}
    assert values.keys() == found.keys()
    assert (values[1], values[5], values[10]) == (41, 12.34, 0.05)
    assert (values[20], values[30], values[36], values[50]) == (1000, 40, 40, 0)
    # The time between the two looks is whatever it was: all four links send four times as much as
    # one, and a thousand times what they receive.
    assert values[61] > 0
    assert values[63] == values[69] == pytest.approx(values[61] / 4)
    assert values[60] == pytest.approx(values[61] / 1024)
    lacking = metrics(nvml, one, other, 2, 37, 51, 70, 71, 100)
    assert {result for result, _ in lacking.values()} == {NOT_SUPPORTED}
    wrong = metrics(nvml, one, other, 0, 477)
    assert {result for result, _ in wrong.values()} == {INVALID_ARGUMENT}
    for each in (one, other):
        nvml.nvmlGpmSampleFree(each)


def test_samples_that_dont_belong_together(nvml: ModuleType, hopper: Any) -> None:
    card, _ = hopper
    one, other = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        metrics(nvml, one, other, 1)
    nvml.nvmlGpmSampleGet(card, one)
    nvml.nvmlGpmSampleGet(nvml.nvmlDeviceGetHandleByIndex(0), other)
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        metrics(nvml, one, other, 1)
    nvml.nvmlGpmSampleGet(card, other)
    metrics(nvml, one, other, 1)
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        metrics(nvml, other, one, 1)  # the newer first
    nvml.nvmlGpmSampleFree(other)
    for wrong in (lambda: metrics(nvml, one, other, 1), lambda: nvml.nvmlGpmSampleFree(other)):
        with pytest.raises(nvml.NVMLError_InvalidArgument):
            wrong()
    nvml.nvmlGpmSampleFree(one)


def test_an_instance(nvml: ModuleType, hopper: Any) -> None:
    card, state = hopper
    shown = cut(1)
    # Two of its three slices are busy for half of the time.
    shown["compute_instances"][1] |= {"sm": 50}
    state.set(1, shown)
    one, other = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
    nvml.nvmlGpmMigSampleGet(card, 2, one)
    nvml.nvmlGpmMigSampleGet(card, 2, other)
    found = metrics(nvml, one, other, 1, 5)
    assert found[1][0] == 0
    assert found[1][1] == pytest.approx(100 / 3)
    assert found[5][0] == NOT_SUPPORTED
    with pytest.raises(nvml.NVMLError_NotFound):
        nvml.nvmlGpmMigSampleGet(card, 3, other)
    device = nvml.nvmlDeviceGetHandleByUUID(mig_uuid(1, 2))
    assert nvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice
    nvml.nvmlGpmSampleGet(device, other)
    assert metrics(nvml, one, other, 1) == {1: found[1]}
    for each in (one, other):
        nvml.nvmlGpmSampleFree(each)


def test_older_cards_dont_count(nvml: ModuleType) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    assert not nvml.nvmlGpmQueryDeviceSupport(card).isSupportedDevice
    sample = nvml.nvmlGpmSampleAlloc()
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlGpmSampleGet(card, sample)
    nvml.nvmlGpmSampleFree(sample)


def test_there_is_room_for_many(nvml: ModuleType) -> None:
    many = [nvml.nvmlGpmSampleAlloc() for _ in range(1024)]
    with pytest.raises(nvml.NVMLError_Memory):
        nvml.nvmlGpmSampleAlloc()
    nvml.nvmlGpmSampleFree(many[7])
    nvml.nvmlGpmSampleAlloc()
    # What a client forgot to free goes with the library's last user.
    nvml.nvmlShutdown()
    nvml.nvmlInit()
    nvml.nvmlGpmSampleAlloc()
