"""A small program on the Rust crate nvml-wrapper, compiled once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import CommandFailed
from tests.judges.having import NotServed, given, made_once, mark_of, need

NAME = "nvml-wrapper"
_PROJECT = Path(__file__).parent / "rust"
_FILES = ("Cargo.toml", "src/main.rs")
_COMPILE_TIMEOUT = 900.0


def nvml_wrapper() -> Path:
    """Return the program; another one for other sources.

    Raises RequirementsMissing when it can't be had, and HarnessError when it doesn't compile.
    """
    own = given(NAME, is_installed_one_good=False)
    return (
        own or made_once(f"{NAME}-{mark_of(_PROJECT / name for name in _FILES)}", _compile) / NAME
    )


def _compile(folder: Path) -> None:
    need(NAME, ("cargo", "cc"))
    cargo = ["nice", "-n", "10", "cargo"]
    # Apart from the tree: cargo writes down beside it which crates it chose.
    project = folder.parent / "project"
    shutil.copytree(_PROJECT, project)
    where = ["--quiet", f"--manifest-path={project / 'Cargo.toml'}"]
    try:
        run([*cargo, "fetch", *where], timeout=300)
    except CommandFailed as error:
        raise NotServed.by(f"a crate that {NAME} needs", error) from error
    target = folder.parent / "target"
    run(
        [*cargo, "build", "--release", "--offline", *where],
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
        timeout=_COMPILE_TIMEOUT,
    )
    (target / "release" / NAME).rename(folder / NAME)
