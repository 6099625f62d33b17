"""What the load model costs: the CPU of one second of it, with many containers."""

import time
from statistics import median

from bench.progress import say
from bench.report import Figure, Section
from hami_mock.kubelet.holder import Holder
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.sources.load import LoadSource

CARDS, CONTAINERS = 16, 100
_LOADS = ("80", "20-60", "sine:20-80:10m", "training", "inference:10-80")


def load_model_figures(repeats: int) -> Section:
    """Measure a second at the usual speed, one with new holders, and one that lasts long."""
    say("load model")
    usual, fast = at_work(CARDS, CONTAINERS), at_work(CARDS, CONTAINERS, time_factor=10_000)
    return Section(
        f"Load model: {CARDS} cards x {CONTAINERS} containers, CPU of one second",
        [
            Figure("a second", _milliseconds(usual[1], repeats), "ms", 20),
            Figure("a second after pods came or went", _after_change(*usual, repeats), "ms"),
            Figure("a second at --time-factor 10000", _milliseconds(fast[1], repeats), "ms"),
        ],
        notes=["Each container has a shape of its own; all of them want more than there is."],
    )


def at_work(cards: int, containers: int, time_factor: int = 1) -> tuple[NodeState, LoadSource]:
    """Return a node with so many containers at work on each card, and what lets time pass there."""
    given = {"nvidia-cards": cards, "nvidia-split": containers, "time-factor": time_factor}
    given["nvidia-memory-factor"] = 1024
    settings = load({"vendors": "nvidia", **{name: str(value) for name, value in given.items()}})
    state = NodeState(configured_node(settings, None))
    holders = []
    for card in state.node.cards:
        for slot in range(containers):
            name = f"p{card.index}-{slot}"
            annotations = {"hami-mock.io/load": _LOADS[slot % len(_LOADS)]}
            state.pods["default", name] = Pod("default", name, annotations=annotations)
            devices = {"nvidia.com/gpu": [f"{card.uuid}-{slot}"]}
            holders.append(Holder(("default", name, "main"), devices))
    state.holders.name(holders)
    source = LoadSource(state, lambda: settings)
    source.advance(1.0)
    return state, source


def _milliseconds(source: LoadSource, repeats: int) -> float:
    return median(_once(source) for _ in range(repeats * 4))


def _after_change(state: NodeState, source: LoadSource, repeats: int) -> float:
    found = []
    for _ in range(repeats):
        state.holders.changes.send()
        found.append(_once(source))
    return median(found)


def _once(source: LoadSource) -> float:
    began = time.process_time()
    source.advance(1.0)
    return (time.process_time() - began) * 1000
