"""Pods from a recorded trace: Alibaba's openb, read by its header. Pure.

Its columns: name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase,
creation_time, deletion_time, scheduled_time; times are seconds.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hami_mock.fleet.names import DURATION
from hami_mock.fleet.tables import Row, read_table
from hami_mock.kit import durations
from hami_mock.vendors import VENDORS, catalog
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.hami_vendor import known

MOST_CARDS = 128
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
_NEEDED = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_WHOLE_CARD = 1000
_SHORTEST = 0.001
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
class Names:
    """What the cards' resources are called: their number, percent of memory, and of cores."""

    count: str = "nvidia.com/gpu"
    memory: str = "nvidia.com/gpumem-percentage"
    cores: str = "nvidia.com/gpucores"


DEFAULT_NAMES = Names()


@dataclass(frozen=True)
class Wanted:
    """How a row becomes a pod."""

    namespace: str
    scheduler: str = ""
    names: Names = DEFAULT_NAMES
    time_factor: float = 1.0


def read(text: Iterable[str], place: str) -> list[TracePod]:
    """Read a trace, sorted by the time at which pods come. Raises UsageError with what is wrong."""
    found = [_pod_of(row) for row in read_table(place, text, _NEEDED)]
    first = min((pod.begins for pod in found), default=0.0)
    return sorted((pod._replace(begins=pod.begins - first) for pod in found), key=_begins)


def _begins(pod: TracePod) -> float:
    return pod.begins


def _pod_of(row: Row) -> TracePod:
    created = row.needed_seconds("creation_time")
    begun, ended = row.seconds("scheduled_time"), row.seconds("deletion_time")
    begun = created if begun is None else begun
    return TracePod(
        row.text("name"),
        row.whole("cpu_milli"),
        row.whole("memory_mib"),
        row.whole("num_gpu", MOST_CARDS),
        # Who says 0 of a card, or nothing, has all of it.
        row.whole("gpu_milli", _WHOLE_CARD) or _WHOLE_CARD,
        tuple(filter(None, re.split(r"[|,\s]+", row.text("gpu_spec")))),
        created,
        None if ended is None else max(_SHORTEST, ended - begun),
    )


def cards_asked(row: TracePod, names: Names) -> dict[str, int]:
    """Return what a row asks for of each resource of cards; a name that is empty is left out.

    A share is as many percent of each card's memory and of its cores; whole cards are only counted.
    """
    if not row.cards:
        return {}
    percent = -(-row.share // (_WHOLE_CARD // 100))
    part = {names.memory: percent, names.cores: percent} if row.share < _WHOLE_CARD else {}
    return {name: amount for name, amount in {names.count: row.cards, **part}.items() if name}


def types_asked(row: TracePod, names: Names) -> dict[str, str]:
    """Return the annotation with the models of cards that a row wants, if it wants any."""
    key = _selector_of(names.count)
    wanted = ",".join(map(_type_of, row.models))
    return {key: wanted} if key and wanted and row.cards else {}


def model_of(word: str) -> Model | None:
    """Return the model that a trace means: by its own word, or by the catalog's name."""
    return catalog.find("nvidia", MODELS.get(word, word))


def _type_of(word: str) -> str:
    """Return what HAMi calls cards that a trace wants; a word that nobody knows stays as it is."""
    model = model_of(word)
    return model.product if model else word


def _selector_of(count: str) -> str:
    """Return the annotation for types of cards of the vendor whose cards are called so."""
    every = (each for vendor in VENDORS for each in known(vendor).values())
    found = (
        each.scheduling.asking.selectors.types for each in every if each.resources.count == count
    )
    return next(found, "")


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
    limits |= {name: str(amount) for name, amount in cards_asked(row, wanted.names).items()}
    lasting = row.seconds and durations.show(max(0.001, row.seconds / wanted.time_factor))
    lasts = {DURATION: lasting} if lasting else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{slug}-{number}",
            "namespace": wanted.namespace,
            "labels": {_LABEL: "true"},
            "annotations": {**types_asked(row, wanted.names), **lasts},
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
