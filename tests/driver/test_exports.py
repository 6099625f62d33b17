"""What the library exports, and what it needs."""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import hatch_build

NAMES = re.findall(
    r"^NAME\((\w+)\)$", (hatch_build.ROOT / "native/names.h").read_text(), re.MULTILINE
)
UNINITIALIZED, NOT_SUPPORTED = 1, 3
GO_NVML = "v0.13.4-0"
"""Its header is that of 13.4, as native/names.h is."""


def test_all_names_are_there(library: ctypes.CDLL) -> None:
    assert len(NAMES) == len(set(NAMES)) == 431
    assert [name for name in NAMES if not hasattr(library, name)] == []


# Not in the header as functions with NVML's own result, or any more.
BESIDE_THE_HEADER = {
    "nvmlErrorString", "nvmlInternalGetExportTable", "nvmlGetBlacklistDeviceCount",
    "nvmlGetBlacklistDeviceInfoByIndex",
}  # fmt: skip


def test_nvidias_header_has_the_same_names() -> None:
    """The header that go-nvml comes with, where Go's cache of modules has it (`make judges`)."""
    modules = Path(os.environ.get("GOMODCACHE") or Path.home() / "go/pkg/mod")
    header = modules / f"github.com/!n!v!i!d!i!a/go-nvml@{GO_NVML}/gen/nvml/nvml.h"
    if not header.exists():
        pytest.skip(f"go-nvml {GO_NVML} isn't in {modules}")
    declared = set(re.findall(r"DECLDIR\s+(nvml\w+)\s*\(", header.read_text()))
    assert declared == set(NAMES) - BESIDE_THE_HEADER


def test_the_client_knows_no_other_names(client: ModuleType) -> None:
    source = Path(str(client.__file__)).read_text()
    asked = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', source))
    assert len(asked) > 350
    # Of an interface that the header has no more, or not yet.
    assert {name for name in asked - set(NAMES) if "Vgpu" not in name} == set()


def test_it_needs_nothing(library_path: Path) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("no readelf")
    dynamic = subprocess.check_output([readelf, "-d", library_path], text=True)
    assert "NEEDED" not in dynamic
    assert "[libnvidia-ml.so.1]" in dynamic
    segments = subprocess.check_output([readelf, "-lW", library_path], text=True)
    assert "TLS" not in segments
    symbols = subprocess.check_output([readelf, "--dyn-syms", "-W", library_path], text=True)
    assert re.findall(r"(\w+)\s+DEFAULT  UND ([a-z]\w*)", symbols) == [("WEAK", "environ")]
    assert symbols.count(" nvml") == 431


def test_a_preloaded_library_stands_only_between_it_and_its_callers(library_path: Path) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("no readelf")
    relocations = subprocess.check_output([readelf, "-rW", library_path], text=True)
    assert "environ" in relocations
    assert "nvml" not in relocations, "a name that is looked up when the library is loaded"


def test_what_is_not_implemented_says_so(nvml: ModuleType, library: ctypes.CDLL) -> None:
    assert library.nvmlDeviceGetVgpuMetadata(None, None, None) == NOT_SUPPORTED
    nvml.nvmlShutdown()
    assert library.nvmlDeviceGetVgpuMetadata(None, None, None) == UNINITIALIZED


def test_each_error_has_words_of_its_own(nvml: ModuleType) -> None:
    codes = {value for name, value in vars(nvml).items() if name.startswith("NVML_ERROR_")}
    told = {code: nvml.nvmlErrorString(code) for code in {nvml.NVML_SUCCESS, *codes}}
    assert len(set(told.values())) == len(told) > 30
    unknown = [code for code, words in told.items() if words == "Unknown Error"]
    assert unknown == [nvml.NVML_ERROR_UNKNOWN]
    assert told[nvml.NVML_ERROR_GPU_IS_LOST] == "GPU is lost"
    assert nvml.nvmlErrorString(12345) == "Unknown Error"


# These are what one calls before; of the table, the real library too says nothing of it.
BEFORE = {"nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlErrorString",
          "nvmlInternalGetExportTable"}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BEFORE])
@pytest.mark.parametrize("given", ["nothing", "room"])
def test_nothing_answers_before_it_is_initialized(
    library: ctypes.CDLL, name: str, given: str
) -> None:
    """Whatever is wrong with the arguments, or nothing: that comes first."""
    room = [ctypes.create_string_buffer(1 << 14) if given == "room" else None for _ in range(6)]
    assert getattr(library, name)(*room) == UNINITIALIZED
    assert not any(each and any(each.raw) for each in room)


def test_the_table_of_nvidia_smi(nvml: ModuleType, library: ctypes.CDLL) -> None:
    name = bytes.fromhex("c4fe3e6cc98f6c4ea327ee696e12f7c4")
    table = ctypes.POINTER(ctypes.c_void_p)()
    assert library.nvmlInternalGetExportTable(ctypes.byref(table), b"\0" * 16) == NOT_SUPPORTED
    assert library.nvmlInternalGetExportTable(ctypes.byref(table), name) == 0
    assert table[0] == 0x1000
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    device, number = ctypes.c_void_p(), ctypes.c_uint()
    assert call(table[81])(3, ctypes.addressof(device), 0x22) == 0
    assert nvml.nvmlDeviceGetIndex(device) == 3
    assert call(table[230])(device, ctypes.addressof(number), 0) == 0
    assert number.value == 4
    processes = ctypes.create_string_buffer(4128 * 10)
    number.value = 10
    assert call(table[213])(device, ctypes.addressof(number), ctypes.addressof(processes)) == 0
    assert number.value == 2
    assert int.from_bytes(processes.raw[4128 : 4128 + 4], "little") == 1031
    assert processes.raw[4128 + 32 :].partition(b"\0")[0] == b"train-1"
    number.value = 10
    assert call(table[214])(device, ctypes.addressof(number), ctypes.addressof(processes)) == 0
    assert number.value == 0, "both compute, none draws"
    # Told that it went well, nvidia-smi -q would read what nobody wrote, and crash.
    assert call(table[100])(device, ctypes.addressof(number), 0) == NOT_SUPPORTED
