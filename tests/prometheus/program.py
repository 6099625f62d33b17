"""Prometheus: the user's own, an installed one, or Debian's."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e.harness.debian_package import unpacked
from tests.e2e.harness.named_program import named_program

PROGRAM_VARIABLE = "PROMETHEUS"


def prometheus() -> Path:
    """The program; promtool lies beside it.

    Raises RequirementsMissing when it can't be had, and HarnessError when the variable names
    something else: who has set it wants it used.
    """
    if given := named_program(PROGRAM_VARIABLE):
        return given
    if installed := shutil.which("prometheus"):
        return Path(installed)
    return unpacked("prometheus", PROGRAM_VARIABLE) / "usr" / "bin" / "prometheus"
