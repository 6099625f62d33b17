"""A workload: pods in the order in which they arrive. Pods that are alike share one `PodKind`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

CPU, RAM = "cpu", "memory"
FIELD = "metadata.name"
"""A term's key for the name of a node."""


class Container(NamedTuple):
    """What a container requests of each resource: thousandths of a CPU, bytes of memory, devices.

    A sidecar is an init container that runs for as long as the others do.
    """

    asks: Mapping[str, int]
    is_init: bool = False
    is_sidecar: bool = False


class Toleration(NamedTuple):
    """A taint that a pod bears; "" for any key, any effect. `value` None: any value."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class Match(NamedTuple):
    """A condition on a label: one of In, NotIn, Exists, DoesNotExist, Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case "In":
                return found in self.values
            case "NotIn":
                return found not in self.values
            case "Exists":
                return found is not None
            case "DoesNotExist":
                return found is None
        if found is None or not _is_whole(found):
            return False
        limit = int(self.values[0])
        return int(found) > limit if self.operator == "Gt" else int(found) < limit


class Spread(NamedTuple):
    """A hard topology spread constraint: pods that match are so evenly spread over a label."""

    key: str
    skew: int
    matches: tuple[Match, ...]


Term = tuple[Match, ...]
"""Conditions that must all hold; one on the field metadata.name has that for its key."""


@dataclass(frozen=True, eq=False)
class PodKind:
    """All that a scheduler looks at, the same for each pod of a workload.

    - terms: of the required node affinity and the node selector; one of them must hold
    - on_each_node: a pod for each node that may have one (DaemonSet)
    """

    containers: tuple[Container, ...]
    namespace: str = "default"
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[Term, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spreads: tuple[Spread, ...] = ()
    overhead: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0
    node_name: str = ""
    on_each_node: bool = False


class Arrival(NamedTuple):
    """A pod that arrives after so many seconds; `lasts` None: it stays."""

    name: str
    owner: str
    kind: PodKind
    time: float = 0.0
    lasts: float | None = None


@dataclass(frozen=True)
class Workload:
    """Pods, and what was read and means nothing here."""

    arrivals: tuple[Arrival, ...]
    notes: tuple[str, ...] = ()


def totals(kind: PodKind) -> dict[str, int]:
    """Return what the scheduler counts for a pod, as kube-scheduler does.

    Containers run at the same time; before them init containers, one after the other, but for
    sidecars, which stay.
    """
    most: dict[str, int] = {}
    staying: dict[str, int] = {}
    for container in sorted(kind.containers, key=lambda each: not each.is_init):
        for name, amount in container.asks.items():
            most[name] = max(most.get(name, 0), staying.get(name, 0) + amount)
            if container.is_sidecar or not container.is_init:
                staying[name] = staying.get(name, 0) + amount
    for name, amount in kind.overhead.items():
        most[name] = most.get(name, 0) + amount
    return {name: amount for name, amount in most.items() if amount}


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 19
