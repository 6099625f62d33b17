"""The library in the package: with a compiler, without one, and with another C library."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import hatch_build
from hami_mock.errors import StartError
from hami_mock.views.driver import layout, library
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


def test_a_wheel_without_one_is_pure(tmp_path: Path) -> None:
    made = wheel(tmp_path, {"PATH": "/nowhere"})
    assert made.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(made) as packed:
        assert not [name for name in packed.namelist() if "_native" in name]


@pytest.mark.parametrize(
    ("find", "name"), [(library.find, "libnvidia-ml.so.1"), (library.find_program, "nvidia-smi")]
)
def test_the_package_says_where_its_files_are(
    library_path: Path, tmp_path: Path, find: Callable[..., Path], name: str
) -> None:
    made = tmp_path / "riscv64" / name
    made.parent.mkdir()
    shutil.copy(library_path.with_name(name), made)
    assert find("riscv64", tmp_path) == made


def test_the_package_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="without a C compiler for riscv64; install gcc or clang"):
        library.find("riscv64", tmp_path)
    with pytest.raises(StartError, match="nvidia-smi isn't there: this hami-mock was built"):
        library.find_program("riscv64", tmp_path)


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
