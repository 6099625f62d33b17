"""By which rules pods are placed: whose scheduler, and which of the nodes and cards it prefers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Scheduler(StrEnum):
    """HAMi's sees cards; kube-scheduler alone sees what a node has of each resource."""

    HAMI = "hami"
    KUBE = "kube"


class NodePolicy(StrEnum):
    """Which node comes first of those with room: the fullest, or the emptiest."""

    BINPACK = "binpack"
    SPREAD = "spread"


class CardPolicy(StrEnum):
    """Which cards of a node come first; `mutex`: those that nobody else has a part of."""

    BINPACK = "binpack"
    SPREAD = "spread"
    TOPOLOGY = "topology-aware"
    MUTEX = "mutex"


POLICIES = {
    "binpack": (NodePolicy.BINPACK, CardPolicy.BINPACK),
    "spread": (NodePolicy.SPREAD, CardPolicy.SPREAD),
    "topology": (NodePolicy.BINPACK, CardPolicy.TOPOLOGY),
    "hami": (NodePolicy.BINPACK, CardPolicy.SPREAD),
}
"""The policies by the names that users give; `hami` is what HAMi's chart sets."""

DEFAULT_POLICIES = {Scheduler.HAMI: "hami", Scheduler.KUBE: "spread"}
"""What a scheduler does that nobody has told anything."""


@dataclass(frozen=True)
class Rules:
    """How pods that say nothing else are placed; HAMi's annotations on a pod count more."""

    policy: str = "binpack"
    scheduler: Scheduler = Scheduler.HAMI

    @property
    def nodes(self) -> NodePolicy:
        return POLICIES[self.policy][0]

    @property
    def cards(self) -> CardPolicy:
        return POLICIES[self.policy][1]

    @classmethod
    def of(cls, policy: str, scheduler: str = "hami") -> Self:
        """Return the rules of a policy by name. Raises ValueError for none."""
        if policy not in POLICIES:
            raise ValueError(policy)
        return cls(policy, Scheduler(scheduler))
