"""The wheel is a function of the source: whoever builds it gets the same bytes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unit.deploy.program import ROOT

_COMPILED = ("__pycache__", "_native")
SOURCES = [
    *(ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py")),
    *sorted(
        file
        for folder in ("src", "native")
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and not set(_COMPILED) & set(file.parts)
    ),
]


def build(folder: Path, files: list[Path], *, umask: int, when: int) -> Path:
    """Copy the sources, with that umask and time of change, and build the wheel from the copy."""
    source, out = folder / "source", folder / "out"
    before = os.umask(umask)
    try:
        for file in files:
            copy = source / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
            os.utime(copy, (when, when))
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
            cwd=source,
            check=True,
            capture_output=True,
            timeout=60,
        )
    finally:
        os.umask(before)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel for all tests: to build one means to compile the driver's library."""
    return build(tmp_path_factory.mktemp("wheel"), SOURCES, umask=0o077, when=1_000_000_000)


def test_the_wheel_is_the_same_wherever_and_whenever_it_is_built(
    wheel: Path, tmp_path: Path
) -> None:
    second = build(tmp_path / "somewhere" / "else", SOURCES[::-1], umask=0o002, when=1_700_000_000)
    assert wheel.name == second.name
    digests = [hashlib.sha256(each.read_bytes()).hexdigest() for each in (wheel, second)]
    assert digests[0] == digests[1]


def test_the_wheel_has_every_source_file_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    in_src = [file for file in SOURCES if file.is_relative_to(ROOT / "src")]
    package = {str(file.relative_to(ROOT / "src")) for file in in_src}
    assert package <= names
    compiled = {name for name in names if "/_native/" in name}
    others = {name.split("/", 1)[1] for name in names - package - compiled}
    assert others == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
