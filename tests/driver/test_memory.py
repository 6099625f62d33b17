"""What a card says of its memory, asked by NVIDIA's own Python client."""

from contextlib import closing
from types import ModuleType
from typing import Any

import pytest

from hami_mock.views.driver.layout import FLAGS
from tests.driver.state_file import MIB, StateFile, identity, live

ROW_REMAPPER = FLAGS["FLAG_ROW_REMAPPER"]
DAMAGE = {"retired_single": 2, "retired_double": 1, "retired_pending": 1, "remapped_uncorrected": 4}


def test_memory_in_both_versions(nvml: ModuleType) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(1)
    first = nvml.nvmlDeviceGetMemoryInfo(card)
    assert (first.total, first.used, first.free) == (40960 * MIB, 1501 * MIB, 39459 * MIB)
    second = nvml.nvmlDeviceGetMemoryInfo(card, version=nvml.nvmlMemory_v2)
    assert (second.used, second.reserved, second.free) == (1001 * MIB, 500 * MIB, 39459 * MIB)


def test_errors_of_memory(nvml: ModuleType) -> None:
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    total, of_location = nvml.nvmlDeviceGetTotalEccErrors, nvml.nvmlDeviceGetMemoryErrorCounter
    assert [total(card, kind, counter) for kind in (0, 1) for counter in (0, 1)] == [5, 0, 0, 5]
    assert [of_location(card, 0, 0, place) for place in range(8)] == [0, 0, 3, 0, 0, 0, 0, 2]
    assert nvml.nvmlDeviceGetRemappedRows(card) == (0, 0, 0, 0)


def test_a_card_remaps_rows_or_retires_pages(nvml: ModuleType, state: StateFile) -> None:
    """Each kind refuses what the other has; one without ECC refuses both."""
    state.set(0, live(0) | DAMAGE)
    card = nvml.nvmlDeviceGetHandleByIndex(0)

    def told() -> list[Any]:
        found = nvml.nvmlDeviceGetFieldValues(card, [29, 30, 31, 92, 93, 142, 143])
        return [None if each.nvmlReturn else each.value.uiVal for each in found]

    def refuses_pages() -> None:
        with pytest.raises(nvml.NVMLError_NotSupported):
            nvml.nvmlDeviceGetRetiredPages(card, 0)
        with pytest.raises(nvml.NVMLError_NotSupported):
            nvml.nvmlDeviceGetRetiredPagesPendingStatus(card)

    assert nvml.nvmlDeviceGetRemappedRows(card) == (0, 4, 0, 0)
    assert told() == [None, None, None, None, None, 0, 4]
    refuses_pages()
    flags = identity(0, 2)["flags"] & ~ROW_REMAPPER
    with closing(state.replaced(2, 2, unlike={"flags": flags})) as old:
        old.set(0, live(0) | DAMAGE)
        assert [len(nvml.nvmlDeviceGetRetiredPages(card, cause)) for cause in (0, 1)] == [2, 1]
        assert nvml.nvmlDeviceGetRetiredPagesPendingStatus(card) == 1
        assert told() == [2, 1, 1, 1, 1, None, None]
        with pytest.raises(nvml.NVMLError_NotSupported):
            nvml.nvmlDeviceGetRemappedRows(card)
        old.replaced(2, 3, unlike={"flags": flags & ~FLAGS["FLAG_ECC"]}).close()
        assert told() == [None] * 7
        refuses_pages()
