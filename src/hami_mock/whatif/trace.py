"""A trace of pods, and the nodes that they ran on, as Alibaba published them: openb. Pure.

A row is read, and asks for cards, as where `hami-mock fleet play` makes a pod of it.
"""

import io
from collections import Counter

from hami_mock.fleet.tables import read_table
from hami_mock.fleet.trace import (
    DEFAULT_NAMES,
    MODELS,
    MOST_CARDS,
    TracePod,
    cards_asked,
    read,
    types_asked,
)
from hami_mock.whatif.demand import (
    CPU,
    RAM,
    Arrival,
    Container,
    PodKind,
    Toleration,
    Workload,
)

_OTHER_MODEL = "A40"


def is_table(path: str) -> bool:
    return path.lower().endswith(".csv")


def read_trace(path: str, text: str) -> Workload:
    """Return the pods of a trace, in the order of their creation. Raises UsageError."""
    kinds: dict[TracePod, PodKind] = {}
    arrivals = []
    for row in read(io.StringIO(text), path):
        alike = row._replace(name="", begins=0.0, seconds=None)
        if alike not in kinds:
            kinds[alike] = _kind(alike)
        arrivals.append(Arrival(row.name, "trace", kinds[alike], row.begins, row.seconds))
    return Workload(tuple(arrivals))


def _kind(row: TracePod) -> PodKind:
    asks = {CPU: row.cpu, RAM: row.memory * 2**20, **cards_asked(row, DEFAULT_NAMES)}
    return PodKind(
        (Container({name: amount for name, amount in asks.items() if amount}),),
        annotations=types_asked(row, DEFAULT_NAMES),
        tolerations=(Toleration(),),
    )


def read_nodes(path: str, text: str) -> str:
    """Return a fleet's file for a list of nodes, a pool for each kind. Raises UsageError."""
    counts = Counter(
        (
            row.text("model"),
            row.whole("gpu", MOST_CARDS),
            row.whole("cpu_milli"),
            row.whole("memory_mib"),
        )
        for row in read_table(path, io.StringIO(text), ("cpu_milli", "memory_mib", "gpu", "model"))
    )
    lines = ["# Made from a list of nodes.", "vendors: [nvidia]", "pools:"]
    for number, ((model, cards, cpu, ram), nodes) in enumerate(counts.items()):
        word = f"{model.lower()}-" if model.isalnum() and model.isascii() and cards else "cpu-"
        own = f"cards: {cards}, model: {MODELS.get(model, _OTHER_MODEL)}" if cards else "cards: 0"
        size = f"cpu: {cpu}m, memory: {ram}Mi"
        lines.append(f"- {{name: {word}{number}, nodes: {nodes}, {size}, nvidia: {{{own}}}}}")
    return "\n".join(lines) + "\n"
