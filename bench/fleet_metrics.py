"""A scrape of a whole fleet, and its memory: python -m bench.fleet_metrics [NODES] [PODS]

The nodes have eight cards each. Nothing is at an API server: what is measured is our own process.
Pods are HAMi's, as the watch tells of them, each with a part of one card.
"""

import gc
import json
import resource
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

_POOLS = """
hami: true
pools:
  - {name: a, nodes: %d, nvidia: {cards: 8, model: A100-SXM4-80GB}%s}
"""
_NONE = "".join(f", {maker}: {{cards: 0}}" for maker in ("mlu", "iluvatar", "ascend"))


def _rss() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 1e6, 1)


def _pod(number: int, node: str, card: str) -> dict[str, Any]:
    from tests.unit.views.hami.rig import pod, segment

    thing = pod(
        f"job-{number:06d}-abcde",
        node=node,
        bind_phase="success",
        phase="Running",
        vgpu=segment(card),
    )
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}
    thing["spec"]["containers"] = [{"name": "c", "resources": {"limits": limits}}]
    thing["metadata"]["uid"] = f"0b8e7a52-5a0f-4c58-9d5c-{number:012d}"
    thing["status"]["startTime"] = "2026-01-01T00:00:00Z"
    return thing


def _scrape(make: Generator[bytes, None, None]) -> dict[str, float]:
    before, size, pieces, longest = time.process_time(), 0, 0, 0.0
    while True:
        since = time.process_time()
        text = next(make, b"")
        if not text:
            break
        longest = max(longest, time.process_time() - since)
        size += len(text)
        pieces += 1
    return {
        "cpu_s": round(time.process_time() - before, 2),
        "megabytes": round(size / 1e6, 1),
        "pieces": pieces,
        "longest_piece_ms": round(longest * 1000, 1),
        "rss_mb": _rss(),
    }


def main(words: list[str]) -> None:
    nodes = int(words[0]) if words else 1000
    pods = int(words[1]) if len(words) > 1 else 0
    from hami_mock.cluster.objects import Change
    from hami_mock.fleet.fleet import Fleet
    from hami_mock.fleet.metrics import FleetMetrics
    from hami_mock.fleet.pods import FleetPods
    from hami_mock.fleet.running import Running  # noqa: F401  (as large as the process is)
    from hami_mock.node.cards import card_uuid
    from hami_mock.settings.settings import load_pools

    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "fleet.yaml"
        config.write_text(_POOLS % (nodes, _NONE))
        pools = load_pools(str(config))
    found: dict[str, Any] = {"loaded_mb": _rss()}
    fleet = Fleet("bench", pools)
    found["nodes_mb"] = _rss()
    watch: Any = FleetPods(fleet, None)  # type: ignore[arg-type]
    (vendor,) = {card.vendor for card in fleet.state(next(iter(fleet.members.values()))).node.cards}
    names = [*fleet.members]
    before = time.process_time()
    for number in range(pods):
        node = names[number % nodes]
        card = card_uuid(node, vendor, number // nodes % 8)
        watch.follow(Change([_pod(number, node, card)]))
    found["pods_mb"], found["pods_cpu_s"] = _rss(), round(time.process_time() - before, 2)
    gc.collect()
    metrics = FleetMetrics(fleet)
    for name in ("first", "second"):
        found[name] = _scrape(metrics.everything())
    found["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, 1)
    print(json.dumps({"nodes": nodes, "pods": pods, **found}, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
