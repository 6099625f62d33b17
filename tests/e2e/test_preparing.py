"""What takes minutes is made before the first test, where nobody takes it for a test that hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from .conftest import skip_or_fail
from .durations import durations_table
from .harness import DEFAULT, Progress, RequirementsMissing
from .harness.requirements import ensure_requirements
from .mock import ROOT

SLOW = """\
#!/bin/sh
sleep 2
echo this is the end of $0
exit 1
"""


def test_a_cold_cache_shows_no_threads(tmp_path: Path) -> None:
    try:
        ensure_requirements(DEFAULT, Progress())
    except RequirementsMissing as missing:
        skip_or_fail(missing)
    for name in ("go", "debootstrap"):
        (tmp_path / name).write_text(SLOW)
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/e2e/test_cluster.py", "-p", "no:cacheprovider",
         "--exitfirst", "-o", "faulthandler_timeout=1"],
        cwd=ROOT,
        env={**os.environ, "E2E_CACHE": str(tmp_path), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )  # fmt: skip
    said = run.stdout + run.stderr
    assert "most recent call first" not in said, "a dump of threads"
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, said
    assert "the tests can't be prepared" in said
    assert "this is the end of" in said


def test_the_end_shows_where_the_time_went() -> None:
    def report(nodeid: str, when: Literal["setup", "call"], seconds: float) -> pytest.TestReport:
        place = ("", 0, "")
        return pytest.TestReport(nodeid, place, {}, "passed", None, when, duration=seconds)

    lines = durations_table(
        [("start the node", 3.0), ("start the node", 4.0)],
        [
            report("tests/e2e/test_pods.py::test_a[spread-1.35.8]", "setup", 10),
            report("tests/e2e/test_pods.py::test_b[1.35.8]", "call", 20),
            report("tests/e2e/test_pods.py::test_b[1.36.4]", "call", 1),
            report("tests/e2e/test_requirements.py::test_c", "call", 0.5),
        ],
    )
    assert lines == [
        "    7.0 s  start the node",
        "   30.0 s  tests/e2e/test_pods.py on 1.35.8",
        "    1.0 s  tests/e2e/test_pods.py on 1.36.4",
        "    0.5 s  tests/e2e/test_requirements.py",
    ]
