"""A trace of pods, and the nodes that they ran on, as Alibaba published them: openb. Pure.

A row is read, and asks for cards, as where `hami-mock fleet play` makes a pod of it.
"""

import io
import re
from collections import Counter

from hami_mock.fleet.tables import Row, read_table
from hami_mock.fleet.trace import (
    DEFAULT_NAMES,
    MODELS,
    MOST_CARDS,
    TracePod,
    cards_asked,
    model_of,
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
            _model_word(row),
            row.whole("gpu", MOST_CARDS),
            row.whole("cpu_milli"),
            row.whole("memory_mib"),
        )
        for row in read_table(path, io.StringIO(text), ("cpu_milli", "memory_mib", "gpu", "model"))
    )
    lines = ["# Made from a list of nodes.", "vendors: [nvidia]", "pools:"]
    for number, ((word, cards, cpu, ram), nodes) in enumerate(counts.items()):
        model = model_of(word)
        name = f"{re.sub('[^a-z0-9]+', '-', word.lower()) if model else 'cpu'}-{number}"
        own = f"cards: {cards}, model: {model.name}" if model else "cards: 0"
        size = f"cpu: {cpu}m, memory: {ram}Mi"
        lines.append(f"- {{name: {name}, nodes: {nodes}, {size}, nvidia: {{{own}}}}}")
    return "\n".join(lines) + "\n"


def _model_word(row: Row) -> str:
    """Return what the list calls the model of a node's cards; "" for a node without any."""
    if not row.whole("gpu", MOST_CARDS):
        return ""
    word = row.text("model")
    if not model_of(word):
        row.refuse("model", f"one of hami-mock models nvidia, or of openb's {', '.join(MODELS)}")
    return word
