"""Where the time went: the steps of the harness, then the files of tests on each release."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

RELEASE = re.compile(r"\[.*?(1\.\d+\.\d+)")


def durations_table(
    steps: Iterable[tuple[str, float]], reports: Iterable[pytest.TestReport]
) -> list[str]:
    """One line each; a file's seconds include the steps that its fixtures took."""
    total: dict[str, float] = {}
    for label, seconds in steps:
        total[label] = total.get(label, 0.0) + seconds
    for report in reports:
        label = report.nodeid.partition("::")[0]
        if release := RELEASE.search(report.nodeid):
            label += f" on {release[1]}"
        total[label] = total.get(label, 0.0) + report.duration
    return [f"{seconds:7.1f} s  {label}" for label, seconds in total.items()]
