"""What talking to the API server costs: the start and the memory of agents that do."""

import json
import time
from collections.abc import Iterator
from statistics import median

import trustme

from bench.agent import NODE, RESOURCES, agent
from bench.api_server import api_server
from bench.progress import say
from bench.report import Figure, Section
from bench.workspace import Workspace
from tests.integration.fake_api_server import FakeApiServer, Object

_SETTLE_SECONDS = 2.0
_PEER_MB = 49
_CARRIER = "carrier"
"""The node with a real plugin's cards."""
_CARD = {"count": 10, "devcore": 100, "devmem": 32768, "type": "NVIDIA-V100", "health": True}
_CARDS = [{**_CARD, "id": f"GPU-{index}", "index": index} for index in range(2)]
_ALONE = "without it"
_PLUGINS = "--units=plugin"
_MORE = (
    "--labels=all", "--kubernetes-events=on",
    "--dcgm-listen=127.0.0.1:0", "--hami-monitor-listen=127.0.0.1:0",
)  # fmt: skip
_MODES = {
    _ALONE: ((_PLUGINS,), RESOURCES),
    "--units auto": ((), 3),
    "--hami on": (("--hami=on", _PLUGINS), RESOURCES),
    "--source hami": (("--source=hami", f"--node-name={_CARRIER}", _PLUGINS), 3),
    "all together": (("--hami=on", _PLUGINS, *_MORE), RESOURCES),
}
"""The flags, and how many resources have device plugins."""


def cluster_figures(work: Workspace, repeats: int) -> Section:
    """Measure agents with and without an API server, by turns."""
    starts: dict[str, list[float]] = {mode: [] for mode in _MODES}
    memory: dict[str, list[float]] = {mode: [] for mode in _MODES}
    with api_server(work, FakeApiServer(), _nodes(), trustme.CA()) as (connected, _):
        # The first round fills the page cache and writes bytecode; it doesn't count.
        for number in range(repeats + 1):
            for mode, (flags, resources) in _MODES.items():
                say(f"API server: {mode}: {number} of {repeats}")
                with agent(connected, *flags, resources=resources) as running:
                    time.sleep(_SETTLE_SECONDS)
                    if number:
                        starts[mode].append(running.start_seconds * 1000)
                        memory[mode].append(running.resident_mb())
    figures = []
    for mode in _MODES:
        most, peer = (1.2 * _PEER_MB, str(_PEER_MB)) if mode != _ALONE else (None, "")
        figures += [
            Figure(f"{mode}: start, best", min(starts[mode]), "ms"),
            Figure(f"{mode}: resident, median", median(memory[mode]), "MB", most, peer),
        ]
    for mode in (mode for mode in _MODES if mode != _ALONE):
        start = min(starts[mode]) / min(starts[_ALONE])
        resident = median(memory[mode]) / median(memory[_ALONE])
        figures += [
            Figure(f"{mode} / {_ALONE}: start, best / best", start, "x"),
            Figure(f"{mode} / {_ALONE}: resident", resident, "x"),
        ]
    return Section(
        "API server: agents that talk to it, and one that doesn't",
        figures,
        notes=[
            f"{repeats} interleaved runs; the server is asked over TLS. --units auto, the default,",
            f"and --source hami have 3 device plugins, the others {RESOURCES}. All together:",
            "--hami on, labels, Events and two exporters. The peer is HAMi's mock, in Go.",
        ],
    )


def _nodes() -> Iterator[tuple[str, Object]]:
    """Yield a node for each mode."""
    yield "nodes", {"metadata": {"name": NODE}}
    annotations = {"hami.io/node-nvidia-register": json.dumps(_CARDS)}
    yield "nodes", {"metadata": {"name": _CARRIER, "annotations": annotations}}
