"""What many units cost a kubelet: python -m tests.e2e.unit_costs 1.37.

Makes the tables of docs/performance.md, each row on a fresh cluster: a kubelet remembers what pods
held. All rows of a release take a quarter of an hour and more; words like `16384/4096x1` choose
some (listed/allocated x pods), and so do words like `pod=4096`.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .harness import Cluster, NotReachedInTime, Progress, parse_version
from .mock import ROOT, container, pod

RESTARTS = (
    "16384/0x0", "2048/2048x1", "4096/4096x1", "8192/8192x1", "16384/16384x1", "16384/16384x4",
    "16384/16384x64", "16384/4096x1", "65536/4096x1", "8192+8192/16384x1",
)  # fmt: skip
PODS = ("pod=1", "pod=4096", "pod=66000", "pod=78600", "pod=81920")
NAMES = ("nvidia.com/gpumem", "huawei.com/Ascend910-memory")
AGENT = ROOT / ".venv" / "bin" / "hami-mock"
OTHERS = ("--mlu-cards=0", "--iluvatar-cards=0")
LONGEST_S = 1200.0
"""How long a kubelet may be away."""
PENDING_S = 90.0
"""A pod that isn't Running by then never will be."""
READY = "http://127.0.0.1:9396/readyz"


@dataclass(frozen=True)
class Restart:
    listed: tuple[int, ...]
    allocated: int
    pods: int

    @classmethod
    def parse(cls, text: str) -> Restart:
        found = re.fullmatch(r"(\d+)(?:\+(\d+))?/(\d+)x(\d+)", text)
        if found is None:
            raise SystemExit(f"{text!r} is not like {RESTARTS[0]!r}, {RESTARTS[-1]!r}, {PODS[0]!r}")
        listed = tuple(int(count) for count in found.groups()[:2] if count)
        return cls(listed, int(found[3]), int(found[4]))

    def pod_requests(self) -> dict[str, int]:
        each = self.allocated // max(self.pods, 1) // len(self.listed)
        return dict(zip(NAMES[: len(self.listed)], [each, each], strict=False))


@contextmanager
def node_with(release: str, listed: tuple[int, ...]) -> Iterator[Cluster]:
    """A cluster of a release whose node has so many units of each resource."""
    nvidia, ascend = (*listed, 0)[:2]
    memory = ("--nvidia-cards=1", f"--nvidia-memory={nvidia}")
    more = ("--ascend-cards=1", f"--ascend-memory={ascend}") if ascend else ("--ascend-cards=0",)
    with Cluster.start(parse_version(release), Progress()) as cluster:
        agent = cluster.daemon("agent", [AGENT, "run", *memory, *more, *OTHERS])
        with cluster.also_running(agent):
            wait_for_units(cluster, listed)
            yield cluster


def wait_for_units(cluster: Cluster, listed: tuple[int, ...]) -> None:
    """Wait until the node is Ready and shows all units, by the word of this kubelet."""
    expected = dict(zip(NAMES, listed, strict=False))

    def look() -> dict[str, int]:
        cluster.http_get(READY)
        cluster.wait_node_ready(timeout=LONGEST_S)
        shown = cluster.allocatable()
        return {name: shown.get(name, 0) for name in expected}

    cluster.wait("all units", look, lambda shown: shown == expected, timeout=LONGEST_S)


def wait_until_running(cluster: Cluster, name: str, timeout: float) -> None:
    cluster.wait(
        f"pod {name} Running",
        lambda: cluster.get("pod", name)["status"]["phase"],
        lambda phase: phase == "Running",
        timeout=timeout,
    )


def restart_row(release: str, text: str) -> str:
    case = Restart.parse(text)
    with node_with(release, case.listed) as cluster:
        names = [f"holder-{number}" for number in range(case.pods)]
        if names:
            cluster.apply(*(pod(n, container("main", case.pod_requests())) for n in names))
        for name in names:
            wait_until_running(cluster, name, LONGEST_S)
        cluster.kill_kubelet()
        began = time.monotonic()
        cluster.start_kubelet()
        wait_for_units(cluster, case.listed)
        seconds = time.monotonic() - began
        used = cluster.kubelet.usage().cpu_seconds
    listed = " + ".join(f"{count:,}" for count in case.listed)
    return f"{listed} | {case.allocated:,} | {case.pods} | {seconds:.1f} s | {used:.1f} s |"


def pod_row(release: str, text: str) -> str:
    units = int(text.partition("=")[2])
    with node_with(release, (max(units, 4096),)) as cluster:
        began = time.monotonic()
        cluster.apply(pod("holder", container("main", {NAMES[0]: units})))
        try:
            wait_until_running(cluster, "holder", PENDING_S)
            outcome = f"Running after {time.monotonic() - began:.1f} s"
        except NotReachedInTime:
            refused = "Request entity too large" in cluster.kubelet_log()
            outcome = "Pending: too large for the API server" if refused else "Pending"
        size = len(cluster.kubectl("get", "--raw=/api/v1/namespaces/default/pods/holder"))
    return f"a pod of {units:,} | {outcome} | {size:,} bytes | {size / units:.1f} a unit |"


def main() -> None:
    release, *words = sys.argv[1:] or [""]
    parse_version(release)
    for word in words or (*RESTARTS, *PODS):
        row = pod_row if word.startswith("pod=") else restart_row
        print(f"| {release} | {row(release, word)}", flush=True)


if __name__ == "__main__":
    main()
