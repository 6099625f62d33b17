"""What became of a workload on a fleet: who is where, who is nowhere and why, and what is left.

Plain data: whoever shows it needs neither numpy nor the placer. Memory of cards is in MiB, CPU in
thousandths, memory of nodes in bytes, times in seconds since the first pod arrived.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class CardShare(NamedTuple):
    """What a pod has of one card; `profile` is the MIG instance that it is, if it is one.

    `vendor` is HAMi's word for the card's vendor, `card` the card's number among that vendor's
    cards of the node, `mig` the compute slices of an instance. A scheduler that sees no cards gives
    shares of no card (-1).
    """

    vendor: str
    card: int
    memory: int
    cores: int
    profile: str = ""
    slots: int = 1
    mig: int = 0


class Placement(NamedTuple):
    """A pod that found a node.

    `owner` is the document or trace that the pod is of (deployment/web), `number` its place in the
    order of arrival, `waited` how long it had to wait for others to end, `after` how many pods had
    arrived by then, `ended` when it was over (None: it wasn't).
    """

    pod: str
    owner: str
    number: int
    pool: str
    node: str
    cards: tuple[CardShare, ...]
    arrived: float = 0.0
    waited: float = 0.0
    after: int = 0
    ended: float | None = None


class Refusal(NamedTuple):
    """A pod that found none. `reasons` has the number of nodes that refused it, by reason.

    A node may have several reasons. They are in the words of who refused: HAMi's
    (CardInsufficientMemory) or kube-scheduler's (Insufficient cpu). `asks` says what it asked for.
    `near` are the reasons of those nodes alone that would take the pod if they were empty; where
    there are none, `reasons` are those of all nodes when they are empty.
    """

    pod: str
    owner: str
    number: int
    asks: str
    reasons: Mapping[str, int]
    arrived: float = 0.0
    near: Mapping[str, int] = {}


class Amounts(NamedTuple):
    """Something of cards and of the nodes that they are in: what there is, is taken, is asked for.

    `mig` counts compute slices of cards that are cut into instances.
    """

    slots: int = 0
    memory: int = 0
    cores: int = 0
    mig: int = 0
    cpu: int = 0
    ram: int = 0
    pods: int = 0

    def plus(self, other: "Amounts") -> "Amounts":
        return Amounts(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: "Amounts") -> "Amounts":
        return Amounts(*(a - b for a, b in zip(self, other, strict=True)))


class Stranded(NamedTuple):
    """What is free and yet of no use: the rest of the card, or of its node, is full.

    - memory_without_cores, memory_without_slots: MiB free on cards without a free core, or slot
    - cores_without_memory, cores_without_slots: cores free on cards without memory, or slot
    - memory_without_node: MiB free on cards of full nodes: without CPU, memory or room for a pod
    - cards_without_node: cards of full nodes that nobody has a part of
    """

    memory_without_cores: int = 0
    memory_without_slots: int = 0
    cores_without_memory: int = 0
    cores_without_slots: int = 0
    memory_without_node: int = 0
    cards_without_node: int = 0

    def plus(self, other: "Stranded") -> "Stranded":
        return Stranded(*(a + b for a, b in zip(self, other, strict=True)))


class CardUse(NamedTuple):
    """A card at the fullest moment; `mig` and `mig_used` are compute slices, where it is cut.

    `type` and `mode` are what HAMi's scheduler calls its kind, and how it is sliced.
    """

    pool: str
    node: str
    vendor: str
    type: str
    mode: str
    card: int
    memory: int
    memory_used: int
    cores: int
    cores_used: int
    slots: int
    slots_used: int
    mig: int = 0
    mig_used: int = 0


@dataclass(frozen=True)
class PoolUse:
    """A pool at the fullest moment. `cards_touched` are those that somebody has a part of."""

    pool: str
    nodes: int
    nodes_touched: int
    cards: int
    cards_touched: int
    there: Amounts
    taken: Amounts
    stranded: Stranded


class Moment(NamedTuple):
    """The fleet after `arrived` pods: what had been asked for until then, what was taken.

    `asked` is what is taken, and what those that wait ask for; what has ended is in neither.
    """

    time: float
    arrived: int
    placed: int
    refused: int
    asked: Amounts
    taken: Amounts
    stranded: Stranded


class Fullest(NamedTuple):
    """When the fleet was fullest: how many pods had arrived by then, and how many ran."""

    time: float
    arrived: int
    running: int


@dataclass(frozen=True)
class Outcome:
    """All of it. `policy` and `scheduler` are the rules by which it came about.

    Where the workload has durations, `placements` are all that ever ran, and `refusals` tell of
    the end: who still waits is refused. `pools` and `cards` tell of the moment `fullest`; None: of
    the end, when nothing has been fuller.
    """

    policy: str
    scheduler: str
    placements: tuple[Placement, ...]
    refusals: tuple[Refusal, ...]
    pools: tuple[PoolUse, ...]
    cards: tuple[CardUse, ...]
    timeline: tuple[Moment, ...]
    seconds: float = 0.0
    """How long the placer took."""
    fullest: Fullest | None = None

    @property
    def arrived(self) -> int:
        return len(self.placements) + len(self.refusals)

    @property
    def there(self) -> Amounts:
        return _sum(pool.there for pool in self.pools)

    @property
    def taken(self) -> Amounts:
        return _sum(pool.taken for pool in self.pools)


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total = Amounts()
    for part in parts:
        total = total.plus(part)
    return total
