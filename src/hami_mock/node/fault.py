"""A fault, its kind, and the verbs that begin and end faults. Pure; `fault_kinds` has the rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hami_mock.kit.values import Kind as ValueKind
from hami_mock.node.event_kinds import Kind as EventKind


class On(StrEnum):
    """What a verb acts on."""

    CARDS = "cards"
    RESOURCES = "resources"
    BOTH = "cards and resources"
    NODES = "nodes"
    """Of a fleet."""


class Call(StrEnum):
    """The kubelet's calls that can be slow, hang or fail."""

    ALLOCATE = "allocate"
    PRESTART = "prestart"


@dataclass(frozen=True, eq=False)
class Parameter:
    """One thing that a verb can be told, by the same name in `ctl`, in a scenario and on the wire.

    - is_required: `ctl` takes it as a word of its own, not as a flag
    - is_drawn: a scenario may give a list, and one of it is drawn each time
    """

    name: str
    kind: ValueKind[Any]
    help: str
    is_required: bool = False
    is_drawn: bool = False


@dataclass(frozen=True, eq=False)
class Verb:
    """Something to do to cards or resources, on command or in a scenario.

    `needs_plugin`: it does nothing to a resource in the Node's status.
    """

    verb: str
    on: On
    help: str
    examples: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    needs_plugin: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class FaultKind(Verb):
    """A kind of fault, and the verb that begins one.

    - name: what its targets are for as long as it lasts: unhealthy, down
    - mended_by: the verb that ends it, besides `clear`, which ends every fault
    - began, ended: the events of its begin, and of its end when no other fault of the kind is left
    """

    name: str
    mended_by: str = "clear"
    began: EventKind = EventKind.FAULT_BEGAN
    ended: EventKind = EventKind.FAULT_ENDED

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Fault:
    """Something that is wrong for as long as it lasts.

    Two faults that say the same are still two: ending one doesn't end the other. `targets` are
    UUIDs of cards, or names of resources; `details` has its kind's parameters besides the reason.
    """

    kind: FaultKind
    targets: frozenset[str]
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def call(self) -> Call | None:
        return self.details.get("call")

    @property
    def seconds(self) -> float:
        """For how long it holds up a call."""
        return float(self.details.get("seconds", 0.0))

    @property
    def text(self) -> str:
        words = f"{self.call} {self.kind}" if self.call else str(self.kind)
        if self.seconds:
            words += f" for {self.seconds:g} s"
        for name, value in self.details.items():
            # What an error number means stands in the reason.
            if name not in ("call", "seconds", "xid"):
                words += f", {name} {value}"
        return words + (self.reason and f": {self.reason}")
