"""Chromium: the user's own, an installed one, or Debian's with the libraries that it needs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

from tests.e2e.harness.debian_package import unpacked
from tests.e2e.harness.errors import HarnessError
from tests.e2e.harness.named_program import named_program

PROGRAM_VARIABLE = "CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)


@dataclass(frozen=True)
class Chromium:
    path: Path
    environment: dict[str, str] = field(default_factory=dict)
    """What it needs beside our own, to find what lies beside it."""

    @property
    def flags(self) -> list[str]:
        # As root, as in most containers, its sandbox refuses to start.
        return [*_QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else ())]


def chromium() -> Chromium:
    """The program.

    Raises RequirementsMissing when it can't be had, and HarnessError when the variable names
    something else: who has set it wants it used.
    """
    if given := named_program(PROGRAM_VARIABLE):
        return Chromium(given)
    if installed := next(filter(None, map(shutil.which, _NAMES)), None):
        return Chromium(Path(installed))
    folder = unpacked("chromium", PROGRAM_VARIABLE, with_dependencies=True)
    program = folder / "usr" / "lib" / "chromium" / "chromium"
    libraries = {
        str(file.parent) for file in folder.rglob("lib*.so*") if file.parent != program.parent
    }
    environment = {
        "LD_LIBRARY_PATH": ":".join(sorted(libraries)),
        "FONTCONFIG_FILE": str(_font_configuration(folder)),
    }
    return Chromium(program, environment)


def _font_configuration(folder: Path) -> Path:
    """A file that adds the unpacked fonts to the machine's, which may have none."""
    file = folder / "fonts.conf"
    fonts = escape(str(folder / "usr" / "share" / "fonts"))
    file.write_text(
        '<?xml version="1.0"?>\n<fontconfig>\n'
        '<include ignore_missing="yes">/etc/fonts/fonts.conf</include>\n'
        f"<dir>{fonts}</dir>\n</fontconfig>\n"
    )
    return file


if __name__ == "__main__":
    try:
        print(f"Chromium: {chromium().path}")
    except HarnessError as error:
        raise SystemExit(f"make browser needs Chromium: {error}") from error
