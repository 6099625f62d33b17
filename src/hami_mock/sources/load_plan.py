"""Which load a container has: set with `ctl load`, from an annotation, a trace, or the default."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from hami_mock.errors import UsageError
from hami_mock.kit.text import LONGEST_LINE, cut
from hami_mock.kubelet.holder import Container
from hami_mock.node.cards import Card
from hami_mock.node.holders import Load
from hami_mock.node.load_reader import MOST_CHARACTERS, read
from hami_mock.node.load_shapes import Moment, Shape, key_of
from hami_mock.node.load_sharing import shared
from hami_mock.node.physics import Work
from hami_mock.node.pods import Pod
from hami_mock.node.readings import Usage
from hami_mock.vendors.physics import traits

if TYPE_CHECKING:
    from hami_mock.node.load_trace import Series, Trace

ANNOTATION = "hami-mock.io/load"
"""For all containers of a pod; with .NAME behind it for one of them."""
FAKE_GPU_OPERATOR = "run.ai/simulated-gpu-utilization"
_MOST_TOLD = 1000
_IDLE = read("idle", "load")

_log = logging.getLogger(__name__)


class Wish(NamedTuple):
    """What a container would do if it were alone: percent of the card, MiB of memory."""

    busy: float
    memory: float


Wishing = Callable[[Moment], Wish]


class Bounds(NamedTuple):
    """What a container may use at most, and the MiB of its context, which it uses in any case."""

    memory: int
    cores: int
    context: int


class Held(NamedTuple):
    """A container on a card, with all that decides on its load."""

    card: Card
    usage: Usage
    pod: Pod | None
    begun: float
    is_linked: bool

    @property
    def bounds(self) -> Bounds:
        memory = self.usage.memory_limit
        context = traits(self.card.vendor.maker, self.card.model).context_memory
        return Bounds(memory, self.usage.cores_limit, min(context, memory))


@dataclass(frozen=True)
class Rule:
    """A load that was set while the agent ran, for cards by UUID or for containers by a pattern.

    `since` is the model's time from which on it counts.
    """

    word: str
    shape: Shape
    since: float
    uuids: frozenset[str] = frozenset()

    def applies(self, uuid: str, container: Container) -> bool:
        return uuid in self.uuids if self.uuids else names(self.word, container)


@dataclass(frozen=True)
class Job:
    """A container on a card, and what it wishes; `begun` is the model's time of its start."""

    container: Container
    wish: Wishing
    begun: float
    key: int
    is_linked: bool


def wishes(jobs: Iterable[Job], moment: float) -> list[Wish]:
    """Return what the containers on a card would do at a moment, each if it were alone."""
    return [job.wish(Moment(max(0.0, moment - job.begun), moment, job.key)) for job in jobs]


def work_of(
    jobs: Sequence[Job], moment: float, most_memory: int, *, is_stopped: bool
) -> tuple[Work, list[Load]]:
    """Return what the containers on a card do together, and each of them, in whole numbers."""
    wanted = wishes(jobs, moment)
    busy = shared([0 if is_stopped else wish.busy for wish in wanted], 100)
    memory = shared([wish.memory for wish in wanted], most_memory)
    linked = sum(part for part, job in zip(busy, jobs, strict=True) if job.is_linked)
    loads = [Load(*amounts) for amounts in zip(busy, memory, strict=True)]
    return Work(sum(busy), sum(memory), len(wanted), linked), loads


def names(word: str, container: Container) -> bool:
    """Tell whether a word is a container's name or its pod's, or a pattern of either."""
    full = "/".join(container)
    pod = "/".join(container[:2])
    return word in (full, pod) or fnmatchcase(pod, word) or fnmatchcase(full, word)


class Chooser:
    """Chooses loads. What is wrong with an annotation is told once, and it is passed over."""

    def __init__(self, seed: int, trace: "Trace | None") -> None:
        self.trace = trace
        self.rules: dict[str, Rule] = {}
        """By the word that names their targets; the newest is the last one, and counts."""
        self._seed = seed
        self._told: set[tuple[tuple[str, str], str, int]] = set()

    def job(self, held: Held, default: str) -> Job:
        container, bounds = held.usage.container, held.bounds
        key = key_of(self._seed, *container)
        rules = reversed(self.rules.values())
        if rule := next((rule for rule in rules if rule.applies(held.card.uuid, container)), None):
            return Job(container, _shaped(rule.shape, bounds), rule.since, key, held.is_linked)
        if shape := self._annotated(held.pod, container):
            wish = _shaped(shape, bounds)
        elif self.trace and (series := self.trace.find(container, key)):
            wish = _recorded(self.trace, series, bounds)
        else:
            wish = _shaped(_shape(default) or _IDLE, bounds)
        return Job(container, wish, held.begun, key, held.is_linked)

    def _annotated(self, pod: Pod | None, container: Container) -> Shape | None:
        for name, text in _annotations(pod, container[2]):
            if shape := _shape(text) if len(text) <= MOST_CHARACTERS else None:
                return shape
            self._tell(container, name, text)
        return None

    def _tell(self, container: Container, name: str, text: str) -> None:
        what = container[:2], name, hash(text)
        if what in self._told or len(self._told) >= _MOST_TOLD:
            return
        self._told.add(what)
        try:
            read(text, f"pod {'/'.join(container[:2])}: annotation {name}")
        except UsageError as error:
            _log.warning("%s", cut(error.problems[0], LONGEST_LINE))

    def forget_all_but(self, pods: Mapping[tuple[str, str], Pod]) -> None:
        self._told = {what for what in self._told if what[0] in pods}


def _annotations(pod: Pod | None, container: str) -> Iterator[tuple[str, str]]:
    """Yield those that say how busy a container is, the strongest first."""
    given = pod.annotations if pod else {}
    for name in (f"{ANNOTATION}.{container}", ANNOTATION, FAKE_GPU_OPERATOR):
        if name in given:
            yield name, given[name]


@lru_cache(1024)
def _shape(text: str) -> Shape | None:
    """Return what a text stands for; None: nothing. Many containers have the same, all the time."""
    try:
        return read(text, "load")
    except UsageError:
        return None


def _shaped(shape: Shape, bounds: Bounds) -> Wishing:
    def wish(moment: Moment) -> Wish:
        memory = bounds.memory * shape.memory_part(moment) / 100
        return Wish(min(bounds.cores, shape.value(moment)), max(bounds.context, memory))

    return wish


def _recorded(trace: "Trace", series: "Series", bounds: Bounds) -> Wishing:
    def wish(moment: Moment) -> Wish:
        busy, part, memory = trace.at(series, moment.elapsed)
        wanted = bounds.memory * part / 100 if part is not None else memory or 0.0
        memory = max(bounds.context, min(bounds.memory, wanted))
        return Wish(min(bounds.cores, busy or 0.0), memory)

    return wish


def listed(rules: Sequence[Rule]) -> dict[str, str]:
    return {rule.word: cut(rule.shape.text) for rule in rules}
