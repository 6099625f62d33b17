"""Starting a module of this package as a program, whatever name the package was imported by."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .commands import hearing_signals


def module_command(module: str) -> list[str]:
    return hearing_signals([sys.executable, "-m", f"{__package__}.{module}"])


def module_environment() -> dict[str, str]:
    assert __package__
    import_root = Path(__file__).resolve().parents[__package__.count(".") + 1]
    return {**os.environ, "PYTHONPATH": str(import_root), "PYTHONDONTWRITEBYTECODE": "1"}
