"""A trace of pods, and the nodes that they ran on, as Alibaba published them: openb. Pure.

Columns are found by their header; more of them are passed over. A pod with `gpu_milli` below 1000
has a share of one card: as many percent of its memory, and of its cores.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from hami_mock.errors import UsageError
from hami_mock.kit.text import cut
from hami_mock.kit.values import Mistakes
from hami_mock.whatif.demand import CPU, RAM, Arrival, Container, PodKind, Workload

COUNT, PERCENT, CORES = "nvidia.com/gpu", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
_TYPES = "nvidia.com/use-gputype"
_WHOLE = 1000
_MOST_CARDS = 128

MODELS: Mapping[str, str] = {
    "P100": "P100-PCIE-16GB",
    "T4": "T4",
    "V100M16": "V100-SXM2-16GB",
    "V100M32": "V100-SXM2-32GB",
    "A10": "A10",
    # Nobody has said which cards these are.
    "G1": "RTX-3090",
    "G2": "L20",
    "G3": "H800-SXM5-80GB",
}
"""The trace's words for cards, and the models that stand for them here."""
_OTHER_MODEL = "A40"


class _Row(NamedTuple):
    """A line of the file by column, its place, and where its mistakes go."""

    values: Mapping[str, str]
    place: str
    mistakes: Mistakes

    def whole(self, key: str, most: int, default: int = 0) -> int:
        text = (self.values.get(key) or "").strip()
        if not text:
            return default
        try:
            # Tables write 1000.0 too.
            number = float(text)
            if number.is_integer() and 0 <= number <= most:
                return int(number)
        except ValueError:
            pass
        self.mistakes.refuse(f"{self.place}: {key}", text, f"a whole number from 0 to {most}")
        return default

    def seconds(self, key: str) -> float | None:
        text = (self.values.get(key) or "").strip()
        return float(self.whole(key, 2**40)) if text else None

    def text(self, key: str) -> str:
        return cut((self.values.get(key) or "").strip())


def is_table(path: str) -> bool:
    return path.lower().endswith(".csv")


def read_trace(path: str, text: str) -> Workload:
    """Return the pods of a trace, in the order of their creation. Raises UsageError."""
    needed = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    kinds: dict[object, PodKind] = {}
    rows = list(_rows(path, text, needed))
    found = [_arrival(row, kinds) for row in rows]
    _raise(rows)
    first = min((each.time for each in found), default=0.0)
    found.sort(key=lambda each: each.time)
    return Workload(tuple(each._replace(time=each.time - first) for each in found))


def _arrival(row: _Row, kinds: dict[object, PodKind]) -> Arrival:
    cpu, ram = row.whole("cpu_milli", 10**9), row.whole("memory_mib", 10**9)
    cards, milli = row.whole("num_gpu", _MOST_CARDS), row.whole("gpu_milli", _WHOLE, _WHOLE)
    wanted = row.text("gpu_spec")
    key = cpu, ram, cards, milli, wanted
    if key not in kinds:
        kinds[key] = _kind(*key)
    begin = row.seconds("creation_time")
    end, started = row.seconds("deletion_time"), row.seconds("scheduled_time")
    begun = started if started is not None else begin
    lasts = max(0.0, end - begun) if end is not None and begun is not None else None
    return Arrival(row.text("name"), "trace", kinds[key], begin or 0.0, lasts)


def _kind(cpu: int, ram: int, cards: int, milli: int, wanted: str) -> PodKind:
    asks = {CPU: cpu, RAM: ram * 2**20}
    if cards:
        percent = max(1, -(-milli // (_WHOLE // 100))) if cards == 1 else 100
        asks |= {COUNT: cards, PERCENT: percent, CORES: percent}
    words = [each.strip() for each in wanted.split("|") if each.strip()]
    types = ",".join(MODELS.get(word, word) for word in words)
    annotations = {_TYPES: types} if types and cards else {}
    asked = {name: amount for name, amount in asks.items() if amount}
    return PodKind((Container(asked),), annotations=annotations)


def read_nodes(path: str, text: str) -> str:
    """Return a fleet's file for a list of nodes, a pool for each kind. Raises UsageError."""
    rows = list(_rows(path, text, ("cpu_milli", "memory_mib", "gpu", "model")))
    counts = Counter(
        (
            row.text("model"),
            row.whole("gpu", _MOST_CARDS),
            row.whole("cpu_milli", 10**9),
            row.whole("memory_mib", 10**9),
        )
        for row in rows
    )
    _raise(rows)
    lines = ["# Made from a list of nodes.", "vendors: [nvidia]", "pools:"]
    for number, ((model, cards, cpu, ram), nodes) in enumerate(counts.items()):
        word = f"{model.lower()}-" if model.isalnum() and model.isascii() and cards else "cpu-"
        own = f"cards: {cards}, model: {MODELS.get(model, _OTHER_MODEL)}" if cards else "cards: 0"
        size = f"cpu: {cpu}m, memory: {ram}Mi"
        lines.append(f"- {{name: {word}{number}, nodes: {nodes}, {size}, nvidia: {{{own}}}}}")
    return "\n".join(lines) + "\n"


def _rows(path: str, text: str, needed: Iterable[str]) -> Iterator[_Row]:
    mistakes = Mistakes(path)
    try:
        reader = csv.DictReader(io.StringIO(text))
        header = list(map(str.strip, reader.fieldnames or ()))
        reader.fieldnames = header
        if missing := [column for column in needed if column not in header]:
            raise UsageError(
                f"{path}: line 1: there is no column {' and no column '.join(missing)}"
            )
        for row in reader:
            yield _Row(row, f"line {reader.line_num}", mistakes)
    except csv.Error as error:
        raise UsageError(f"{path}: line {reader.line_num}: {error}") from error


def _raise(rows: list[_Row]) -> None:
    if rows and rows[0].mistakes.lines:
        raise UsageError(rows[0].mistakes.lines)
