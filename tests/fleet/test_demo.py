"""`hami-mock fleet demo`, as a person runs it, on the real programs; the test reads what it prints
and looks at its API server meanwhile."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.fleet.api import NODES, PODS, Api, Object, phase, readiness

pytestmark = pytest.mark.usefixtures("programs")
COUNT = 60
RACK = "hami-mock.io/rack=a100-r2"
IN_RACK = 6
_END_S = 60.0


class Demo:
    """A demo that runs; its output is read as it comes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.process = process
        self._output = process.stdout
        self.told: list[str] = []

    def read_until(self, pattern: str) -> str:
        """Return the first line with the pattern; AssertionError if the demo ends before."""
        for line in self._output:
            self.told.append(line.rstrip())
            if re.search(pattern, line):
                return self.told[-1]
        raise AssertionError(f"it never said {pattern!r}: {self.told}")

    def end(self) -> int:
        self.told += [line.rstrip() for line in self._output]
        return self.process.wait(_END_S)


@contextmanager
def demo(temporary: Path, nodes: int) -> Iterator[Demo]:
    release = os.environ.get("FLEET_KUBERNETES", "")
    words = ["fleet", "demo", "--nodes", str(nodes), "--kubernetes", release]
    with subprocess.Popen(
        [sys.executable, "-m", "hami_mock", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "TMPDIR": str(temporary)},
        text=True,
    ) as process:
        try:
            yield Demo(process)
        finally:
            process.kill()


@contextmanager
def api_of(running: Demo) -> Iterator[Api]:
    line = running.read_until("^export KUBECONFIG=")
    with closing(Api(Path(line.partition("=")[2]))) as api:
        yield api


def processes_in(folder: Path) -> set[str]:
    """The programs of this machine that were told of a folder."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        if any(str(folder) in word for word in words[1:]):
            found.add(Path(words[0]).name)
    return found


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Where a demo makes its folder."""
    folder = tmp_path / "t"
    folder.mkdir()
    return folder


def test_it_is_told_to_its_end_and_leaves_nothing(temporary: Path) -> None:
    with demo(temporary, COUNT) as running:
        with api_of(running) as api:
            running.read_until(f"^  {COUNT} pods running after")
            pods = api.all(PODS)
            assert len(pods) == COUNT
            assert {phase(pod) for pod in pods} <= {"Running", "Succeeded"}
            # Only these nodes have Ascend cards, and only these pods ask for them.
            on_npu = {_name(pod) for pod in pods if pod["spec"]["nodeName"].startswith("npu-")}
            assert on_npu == {name for name in map(_name, pods) if name.startswith("npu-")} != set()
            running.read_until("^3/5")
            api.wait("down", NODES, readiness, _are("Unknown"), selector=RACK, seconds=30)
            running.read_until("^4/5")
            api.wait("up", NODES, readiness, _are("True"), selector=RACK, seconds=30)
        running.read_until("^  all nodes ready again after")
        assert {"etcd", "kube-apiserver", "kwok"} <= processes_in(temporary)
        running.read_until("^  all pods have succeeded after")
        assert running.end() == 0
    assert running.told[-1] == "Nothing is left behind."
    assert not processes_in(temporary)
    assert not [*temporary.iterdir()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_ends_it_early_has_nothing_left(temporary: Path, number: signal.Signals) -> None:
    with demo(temporary, 20) as running:
        running.read_until("^  20 nodes ready after")
        running.process.send_signal(number)
        assert running.end() == 0
    assert running.told[-1] == "Nothing is left behind."
    assert not processes_in(temporary)
    assert not [*temporary.iterdir()]


def _are(status: str) -> Callable[[Counter[str]], bool]:
    return lambda seen: +seen == {status: IN_RACK}


def _name(pod: Object) -> str:
    return str(pod["metadata"]["name"])
