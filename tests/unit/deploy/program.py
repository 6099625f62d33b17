"""What the program says of itself, asked as people ask it: at the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
NODE = "gpu-1"


def planned(variables: Mapping[str, str], *flags: str) -> dict[str, int]:
    """Resource → how many of it a node with these variables registers.

    Raises AssertionError with what the program says when it refuses them.
    """
    return dict(_counts(json.loads(_hami_mock("plan", "-o", "json", *flags, **variables))))


@cache
def flags() -> frozenset[str]:
    return frozenset(re.findall(r"--([a-z-]+)\b", _hami_mock("plan", "--help")))


def vendors() -> frozenset[str]:
    """How the flags call the vendors: --nvidia-cards is nvidia's."""
    return frozenset(flag.removesuffix("-cards") for flag in flags() if flag.endswith("-cards"))


def _hami_mock(*words: str, **variables: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "hami_mock", *words],
        env={"NODE_NAME": NODE, "COLUMNS": "200", **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _counts(told: Any) -> Iterator[tuple[str, int]]:
    """Every resource with its count, wherever in the plan it stands."""
    if isinstance(told, list):
        for part in told:
            yield from _counts(part)
    elif isinstance(told, dict):
        if "resource" in told and "count" in told:
            yield told["resource"], told["count"]
        for part in told.values():
            yield from _counts(part)
