"""A program that the user names by a variable, instead of one that we would make."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import HarnessError


def named_program(variable: str) -> Path | None:
    """The program, or None if the variable isn't set.

    Raises HarnessError when it names something else: who has set it wants it used.
    """
    given = os.environ.get(variable)
    if not given:
        return None
    program = Path(given).absolute()
    if not program.is_file() or not os.access(program, os.X_OK):
        raise HarnessError(f"{variable}: there is no program {given}")
    return program
