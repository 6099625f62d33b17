"""At the memory limit of the manifest, with everybody wanting something at once, nothing is killed.

This comes late: the kubelet remembers what pods held.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .harness import cgroups
from .mock import ONLY_NVIDIA, ROOT, Figures, Mock, nvidia_counts

LIMIT = 192 * 1024 * 1024
SECONDS = 60
MEMORY = 16_000
COUNTS = nvidia_counts(2, MEMORY)
# More than half of all units, in one Allocate of the kubelet's own.
LARGE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 18_000}
SMALL = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2_000}


class MemoryGroup:
    """The control group that limits a process's memory, of either version."""

    def __init__(self, pid: int) -> None:
        places = {}
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            places[controllers] = place.lstrip("/")
        self._is_first = any("memory" in names.split(",") for names in places)
        name = next((n for n in places if "memory" in n.split(",")), "")
        self._folder = self._find(places[name])

    def _find(self, place: str) -> Path:
        limits = "memory.limit_in_bytes" if self._is_first else "memory.max"
        found = [root / place for root in cgroups.hierarchies() if (root / place / limits).exists()]
        assert found, f"no control group {place} with {limits}"
        return found[0]

    def _read(self, first: str, second: str) -> str:
        return (self._folder / (first if self._is_first else second)).read_text()

    @property
    def limit(self) -> int:
        return int(self._read("memory.limit_in_bytes", "memory.max"))

    @property
    def kills(self) -> int:
        """How often the kernel has killed something in it."""
        words = self._read("memory.oom_control", "memory.events").split()
        return int(words[words.index("oom_kill") + 1])


def peak_mib(pid: int) -> float:
    """The most that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (peak,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(peak.split()[1]) / 1024


def container_status(mock: Mock) -> Any:
    (status,) = mock.agent_pod()["status"]["containerStatuses"]
    return status


def start_flood(pid: int) -> subprocess.Popen[str]:
    """Flood the agent from its pod's network, with the machine's files and memory."""
    inside = ["nsenter", f"--target={pid}", "--net", "--"]
    return subprocess.Popen(
        [*inside, sys.executable, "-m", "tests.e2e.flood", str(pid), str(SECONDS)],
        cwd=ROOT,
        env={**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_nothing_is_killed_at_192_mib_while_everybody_wants_something(
    mock: Mock, figures: Figures
) -> None:
    mock.deploy(f"--nvidia-memory={MEMORY}", *ONLY_NVIDIA)
    mock.wait_for(COUNTS)
    mock.wait_until_ready()
    pid = mock.agent_pid()
    group = MemoryGroup(pid)
    assert group.limit == LIMIT
    with start_flood(pid) as flood:
        try:
            # In the thick of it, pods come and go as ever.
            mock.start_pod("large", LARGE)
            mock.wait_for_phase("large", "Running")
            mock.delete_pods("large")
            mock.start_pod("small", SMALL)
            mock.wait_for_phase("small", "Running")
            output, _ = flood.communicate(timeout=SECONDS * 3)
        finally:
            flood.kill()
    assert flood.returncode == 0
    served = json.loads(output)
    print(f"served in {SECONDS} s: {served}")
    # A flood that nobody answers would prove nothing.
    wanted = ("scrapes", "large Allocates", "lists", "views", "idle", "slow", "large headers")
    assert all(served.get(name) for name in wanted), served
    status = container_status(mock)
    assert status["lastState"] == {}, "it ended, perhaps killed for its memory"
    assert status["restartCount"] == 0
    assert mock.agent_pid() == pid
    assert group.limit == LIMIT
    assert group.kills == 0
    figures.add(mock.cluster.version, "agent's memory under pressure", peak_mib(pid), "MiB")
    mock.wait_until_ready()
    mock.wait_for(COUNTS)
    mock.start_pod("after", SMALL)
    mock.wait_for_phase("after", "Running")
