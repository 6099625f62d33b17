"""Clients of PyPI, in a virtual environment of their own."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import CommandFailed
from tests.judges.having import NotServed, given, made_once, mark_of

NAME = "python"
_REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "judges.txt"


def client_python() -> Path:
    """Return a Python that has them all.

    Call them as modules (`-m`): the folder was renamed, which scripts in it don't know.
    Raises RequirementsMissing when they can't be had.
    """
    own = given(NAME, is_installed_one_good=False)
    return own or made_once(_folder_name(), _install) / "bin" / "python"


def _folder_name() -> str:
    return f"{NAME}-{sys.version_info.major}.{sys.version_info.minor}-{mark_of([_REQUIREMENTS])}"


def _install(folder: Path) -> None:
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    pip.append("--disable-pip-version-check")
    try:
        run([*pip, "--require-hashes", f"--requirement={_REQUIREMENTS}"], timeout=600)
    except CommandFailed as error:
        raise NotServed.by("a client of PyPI", error) from error
