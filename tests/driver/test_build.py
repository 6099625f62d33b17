"""The library in the package: with a compiler, without one, and with another C library."""

import ctypes
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hatch_build
from hami_mock.errors import StartError
from hami_mock.views.driver import layout
from hami_mock.views.driver.compiled import find_library
from tests.driver.state_file import StateFile

LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments)
{
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    if (!library) {
        puts(dlerror());
        return 100;
    }
    int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    int (*cards)(unsigned *) = (int (*)(unsigned *))dlsym(library, "nvmlDeviceGetCount_v2");
    unsigned found = 0;
    int result = init();
    return result ? result : cards(&found) ? 101 : (int)found;
}
"""


def wheel(folder: Path, environment: dict[str, str]) -> Path:
    """Build the project's wheel from a copy of its source."""
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(hatch_build.ROOT / name, source)
    shutil.copytree(hatch_build.ROOT / "native", source / "native")
    shutil.copytree(
        hatch_build.ROOT / "src", source / "src", ignore=shutil.ignore_patterns("_native")
    )
    target = str(folder / "wheels")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", target]
    subprocess.run(command, cwd=source, check=True, capture_output=True, env=environment)
    (made,) = (folder / "wheels").glob("*.whl")
    return made


def test_a_wheel_with_a_compiler_is_for_this_machine(tmp_path: Path) -> None:
    if hatch_build.own_compiler() is None:
        pytest.skip("no C compiler")
    made = wheel(tmp_path, {**os.environ})
    machine = os.uname().machine
    assert made.name.endswith(f"-py3-none-manylinux2014_{machine}.musllinux_1_1_{machine}.whl")
    with zipfile.ZipFile(made) as packed:
        assert f"hami_mock/_native/{machine}/libnvidia-ml.so.1" in packed.namelist()
        program = packed.getinfo(f"hami_mock/_native/{machine}/nvidia-smi")
        assert program.external_attr >> 16 & 0o111, "nobody could run it"


@pytest.mark.parametrize(
    "environment",
    [{"PATH": "/nowhere"}, {"CC": "/bin/false"}, {"CC": "/nowhere/cc"}],
    ids=["none", "broken", "missing"],
)
def test_a_wheel_without_one_is_pure_and_says_so(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    made = wheel(tmp_path, {**os.environ, **environment})
    assert made.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(made) as packed:
        assert not [name for name in packed.namelist() if "_native" in name]
        packed.extractall(tmp_path / "installed")
    root = tmp_path / "root"
    ran = subprocess.run(
        [sys.executable, "-m", "hami_mock", "driver", "all", f"--driver-root={root}"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "this hami-mock was built without a C compiler" in ran.stderr
    assert not root.exists()


def test_the_package_says_where_its_library_is(library_path: Path, tmp_path: Path) -> None:
    made = tmp_path / "riscv64" / library_path.name
    made.parent.mkdir()
    shutil.copy(library_path, made)
    assert find_library("riscv64", tmp_path) == made


def test_the_package_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="without a C compiler for riscv64; install gcc or clang"):
        find_library("riscv64", tmp_path)


def test_what_stands_in_for_other_libraries_fails_cleanly(library_path: Path) -> None:
    library = ctypes.CDLL(str(library_path.with_name(hatch_build.PLACEHOLDER)))
    count, text = ctypes.c_int(7), ctypes.c_char_p()
    assert (library.cuInit(0), library.cuDeviceGetCount(ctypes.byref(count))) == (100, 100)
    assert count.value == 0
    assert library.cuGetErrorString(100, ctypes.byref(text)) == 0
    assert text.value is not None
    assert b"no CUDA-capable device" in text.value
    assert library.NvEncodeAPICreateInstance(None) == 1
    assert library.cuvidCreateDecoder(None, None) == 100


@pytest.mark.parametrize("compiler", ["cc", "musl-gcc"])
def test_programs_of_any_c_library_load_it(
    library_path: Path, state: StateFile, tmp_path: Path, compiler: str
) -> None:
    found = shutil.which(compiler)
    if found is None:
        pytest.skip(f"no {compiler}")
    program = tmp_path / "loader.c"
    program.write_text(LOADER)
    subprocess.check_call([found, "-o", tmp_path / "loader", program, "-ldl"])
    environment = {**os.environ, layout.STATE_VARIABLE: str(state.folder)}
    result = subprocess.run(
        [tmp_path / "loader", library_path], check=False, capture_output=True, env=environment
    )
    assert (result.returncode, result.stdout) == (8, b"")
