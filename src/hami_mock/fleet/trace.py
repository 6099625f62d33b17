"""Pods from a recorded trace: Alibaba's openb, read by its header. Pure.

Its columns: name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase,
creation_time, deletion_time, scheduled_time; times are seconds.
"""

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hami_mock.errors import UsageError
from hami_mock.fleet import names
from hami_mock.kit import durations
from hami_mock.kit.values import shown

MOST_ROWS = 1_000_000
_NEEDED = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time")
_NUMBER = re.compile(r"\d{1,12}(\.\d{1,9})?", re.ASCII)
_WHOLE_CARD = 1000
_LABEL = "hami-mock.io/trace"


class TracePod(NamedTuple):
    """A row: `share` is the thousandths of each card that it asks for, 1000 being all of it.

    `begins` counts from the first row's time; `seconds` is how long it runs, None: for ever.
    """

    name: str
    cpu: int
    memory: int
    cards: int
    share: int
    models: tuple[str, ...]
    begins: float
    seconds: float | None


@dataclass(frozen=True)
class Wanted:
    """How a row becomes a pod; a name of a resource that is empty is left out."""

    namespace: str
    scheduler: str = ""
    count: str = ""
    memory: str = ""
    cores: str = ""
    time_factor: float = 1.0


def read(text: Iterable[str], place: str) -> list[TracePod]:
    """Read a trace, sorted by the time at which pods come. Raises UsageError with what is wrong."""
    rows = csv.DictReader(text)
    missing = [name for name in _NEEDED if name not in (rows.fieldnames or ())]
    if missing:
        raise UsageError(
            f"{place}: the header lacks {', '.join(missing)}: write a line with the names of the "
            "columns first, as Alibaba's openb traces have it"
        )
    found = []
    for number, row in enumerate(rows, start=2):
        if number > MOST_ROWS:
            raise UsageError(f"{place}: it has more than {MOST_ROWS} rows")
        found.append(_row(row, f"{place}:{number}"))
    first = min((pod.begins for pod in found), default=0.0)
    return sorted((pod._replace(begins=pod.begins - first) for pod in found), key=_begins)


def _begins(pod: TracePod) -> float:
    return pod.begins


def _row(row: Mapping[str, Any], place: str) -> TracePod:
    created = _number(row, "creation_time", place)
    begun = _number(row, "scheduled_time", place, created)
    ended = _number(row, "deletion_time", place, -1.0)
    cards = int(_number(row, "num_gpu", place, 0.0))
    models = tuple(filter(None, re.split(r"[|,\s]+", row.get("gpu_spec") or "")))
    return TracePod(
        str(row["name"] or ""),
        int(_number(row, "cpu_milli", place, 0.0)),
        int(_number(row, "memory_mib", place, 0.0)),
        cards,
        min(_WHOLE_CARD, int(_number(row, "gpu_milli", place, _WHOLE_CARD)) or _WHOLE_CARD),
        models,
        created,
        max(0.001, ended - begun) if ended >= 0 else None,
    )


def _number(row: Mapping[str, Any], name: str, place: str, default: float | None = None) -> float:
    text = (row.get(name) or "").strip()
    if not text and default is not None:
        return default
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"{place}: {name}: {shown(text)} is not a number")
    return float(text)


def last_end(trace: Iterable[TracePod]) -> float:
    """Return when the last pod ends; infinite if one runs for ever."""
    return max(
        (p.begins + (math.inf if p.seconds is None else p.seconds) for p in trace), default=0.0
    )


def pods(trace: Iterable[TracePod], wanted: Wanted) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield each pod, and how many seconds after the begin it comes."""
    for number, row in enumerate(trace):
        yield row.begins / wanted.time_factor, _pod(number, row, wanted)


def _pod(number: int, row: TracePod, wanted: Wanted) -> dict[str, Any]:
    slug = re.sub("[^a-z0-9]+", "-", row.name.lower()).strip("-")[:40].strip("-") or "pod"
    asked = {"cpu": f"{row.cpu}m", "memory": f"{row.memory}Mi"}
    limits = {name: amount for name, amount in asked.items() if amount[:-1].strip("0M")}
    if row.cards:
        percent = -(-row.share // 10)
        own = {wanted.count: row.cards, wanted.memory: percent, wanted.cores: percent}
        parts = own if row.share < _WHOLE_CARD else {wanted.count: row.cards}
        limits |= {name: str(amount) for name, amount in parts.items() if name}
    lasting = row.seconds and durations.show(max(0.001, row.seconds / wanted.time_factor))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{slug}-{number}",
            "namespace": wanted.namespace,
            "labels": {_LABEL: "true"},
            "annotations": {names.DURATION: lasting} if lasting else {},
        },
        "spec": {
            **({"schedulerName": wanted.scheduler} if wanted.scheduler else {}),
            "restartPolicy": "Never",
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {"name": "c", "image": "trace", "resources": {"limits": limits, "requests": limits}}
            ],
        },
    }
