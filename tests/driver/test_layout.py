"""The layout: what Python packs, and the sizes that C has for NVML's records."""

import ctypes
import re
import subprocess
from pathlib import Path

import pynvml
import pytest

import hatch_build
from hami_mock.views.driver import layout
from hami_mock.views.driver.layout import LIVE
from hami_mock.views.driver.messages import REPLY, REQUEST
from hami_mock.views.driver.record import Field, Record

HANDLES = {
    "nvmlDevice_t",
    "nvmlGpuInstance_t",
    "nvmlComputeInstance_t",
    "nvmlEventSet_t",
    "nvmlGpmSample_t",
}
# Our names of records that NVML's client calls otherwise.
RENAMED = {
    "nvmlPciInfo_v3_t": "nvmlPciInfo_t",
    "nvmlDeviceAttributes_v2_t": "c_nvmlDeviceAttributes",
    "nvmlEventData_v2_t": "nvmlEventData_t",
    "nvmlPlacement_t": "c_nvmlGpuInstancePlacement_t",
    "nvmlGpuInstanceInfo_t": "c_nvmlGpuInstanceInfo_t",
    "nvmlComputeInstanceInfo_v2_t": "c_nvmlComputeInstanceInfo_t",
    "nvmlGpuFabricInfo_v2_t": "c_nvmlGpuFabricInfo_v2_t",
    "nvmlGpuFabricInfo_v3_t": "c_nvmlGpuFabricInfo_v3_t",
    "nvmlEventSetWait_v3_t": "c_nvmlEventSetWait_v3_t",
    "nvmlDeviceClockText_v1_t": "c_nvmlDevicePerfModes_v1_t",
    "nvmlPlatformInfo_t": "c_nvmlPlatformInfo_v2_t",
}
# Those that the client doesn't have, by the bytes that the headers of their time gave them.
OLD = {
    "nvmlPciInfo_v1_t": 32,
    "nvmlPciInfo_v2_t": 52,
    "nvmlProcessInfo_v1_t": 16,
    "nvmlDeviceAttributes_v1_t": 24,
    "nvmlEventData_v1_t": 24,
    "nvmlComputeInstanceInfo_v1_t": 24,
    "nvmlEngines_t": 24,
    "nvmlUnrepairableMemoryStatus_v1_t": 4,
    "nvmlGpuInstanceProfileInfo_v3_t": 152,
    "nvmlComputeInstanceProfileInfo_v3_t": 140,
    "nvmlGpuFabricClique_v1_t": 8,
    "nvmlGpuFabricInfo_v4_t": 548,
}


def client_size(name: str) -> int | None:
    plain = name.replace("_v1_t", "_t")
    for candidate in (RENAMED.get(name, name), name, plain, name.removesuffix("_t")):
        for spelling in (candidate, f"c_{candidate}"):
            found = getattr(pynvml, spelling, None)
            if isinstance(found, type) and issubclass(found, ctypes.Structure | ctypes.Union):
                return ctypes.sizeof(found)
    return None


def test_records_have_the_sizes_that_clients_expect(tmp_path: Path) -> None:
    header = (hatch_build.ROOT / "native/nvml.h").read_text()
    names = set(re.findall(r"\b(nvml\w+_t);$", header, re.MULTILINE)) - {"nvmlReturn_t", *HANDLES}
    program = tmp_path / "sizes.c"
    lines = [f'printf("{n} %zu\\n", sizeof({n}));' for n in names]
    program.write_text(
        '#include <stdio.h>\n#include "nvml.h"\nint main(void) {' + "\n".join(lines) + "}"
    )
    command = hatch_build.own_compiler()
    if command is None:
        pytest.skip("no C compiler")
    native = str(hatch_build.ROOT / "native")
    subprocess.check_call([*command, f"-I{native}", "-o", tmp_path / "sizes", program])
    output = subprocess.check_output([tmp_path / "sizes"], text=True)
    sizes = {name: int(size) for name, size in map(str.split, output.splitlines())}
    expected = {name: OLD.get(name) or client_size(name) for name in sizes}
    assert {name for name, size in expected.items() if size is None} == set()
    assert sizes == expected


def test_all_cards_fit_into_two_mebibytes() -> None:
    assert layout.file_size(layout.MOST_CARDS) < 2 << 20


@pytest.mark.parametrize("record", [*layout.RECORDS, REQUEST, REPLY], ids=lambda each: each.name)
def test_numbers_stand_at_multiples_of_their_size(record: Record) -> None:
    assert record.size % 8 == 0
    assert all(offset % field.alignment == 0 for offset, field in record.placed)
    ends = [offset + field.size for offset, field in record.placed]
    assert [offset for offset, _ in record.placed[1:]] + [record.size] == ends


def test_what_is_packed_is_unpacked() -> None:
    given = {"gpu": 7, "links_sent": (1, 2), "processes": [{"pid": 5, "name": "x"}]}
    found = LIVE.unpack(LIVE.pack(given))
    assert (found["gpu"], found["memory"]) == (7, 0)
    assert found["links_sent"][:3] == (1, 2, 0)
    assert (found["processes"][0]["pid"], found["processes"][0]["name"]) == (5, "x")
    assert LIVE.pack(found) == LIVE.pack(given)


def test_a_text_is_cut_between_characters() -> None:
    record = Record("r", "", [Field("text", "char", "", 8)])
    assert record.unpack(record.pack({"text": "aüüüü"})) == {"text": "aüüü"}
    assert record.unpack(record.pack({"text": "üüüü"})) == {"text": "üüü"}


def test_what_has_no_place_is_refused() -> None:
    with pytest.raises(KeyError, match="live has no gpus"):
        LIVE.pack({"gpus": 1})
    with pytest.raises(ValueError, match="65 elements, 64 at most"):
        LIVE.pack({"processes": [{}] * 65})
