"""Why pods are refused, in words that need no source code of a scheduler. Pure.

A node refuses a pod because of its kind (it could never take it) or for want of room. What a pod
lacks is room on nodes that could take it, however many others there are.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hami_mock.doctor.refusal import WORDS
from hami_mock.whatif.outcome import Refusal

_KIND = {
    "CardTypeMismatch": "the type of card",
    "CardUuidMismatch": "one particular card",
    "CardNotHealth": "healthy cards",
    "CardCordoned": "cards that aren't cordoned",
    "ModeNotFit": "cards that are sliced another way",
    "NodeInsufficientDevice": "that many cards in one node",
    "node unregistered": "cards of the vendor",
    "node(s) had untolerated taint(s)": "nodes without a taint",
    "node(s) didn't match Pod's node affinity/selector": "nodes that its selector matches",
    "node(s) didn't match the requested node name": "the node that it names",
    "node(s) didn't match pod topology spread constraints (missing required label)": (
        "nodes with the label that it is spread over"
    ),
}
_ROOM = {
    "CardInsufficientMemory": "card memory",
    "CardInsufficientCore": "card cores",
    "CardComputeUnitsExhausted": "card cores",
    "CardTimeSlicingExhausted": "slots of cards",
    "ExclusiveDeviceAllocateConflict": "cards that nobody uses",
    "AllocatedCardsInsufficientRequest": "enough free cards on one node",
    "CardMigTopologyInfeasible": "MIG instances",
    "NumaNotFit": "cards on one NUMA node",
    "Insufficient cpu": "CPU",
    "Insufficient memory": "memory of nodes",
    "Insufficient pods": "nodes with room for more pods",
    "Too many pods": "nodes with room for more pods",
    "node(s) didn't match pod topology spread constraints": "room where it is spread evenly",
}
_OF_RESOURCE = re.compile(r"Insufficient ([^/\s]+/\S+)")


@dataclass(frozen=True)
class Group:
    """Pods that are refused for the same reason; the first of them is the example."""

    reason: str
    refusals: tuple[Refusal, ...]

    @property
    def words(self) -> str:
        return words_of(self.reason)


def words_of(reason: str) -> str:
    """Return what a pod lacks, to be put behind "for"; the reason itself if nobody knows it."""
    if found := _OF_RESOURCE.fullmatch(reason):
        return found[1]
    return _ROOM.get(reason) or _KIND.get(reason) or reason or "any node at all"


def meaning_of(reason: str) -> str:
    """Return what a scheduler means by a reason, where that needs a sentence; else nothing."""
    return WORDS.get(reason, {}).get("meaning", "")


def telling(refusal: Refusal) -> str:
    """Return the reason that says most: of the nodes that could take the pod, that of most."""
    told = refusal.near or refusal.reasons
    of_room = [each for each in told if each not in _KIND]
    return min(of_room or told, key=lambda each: (-told[each], each), default="")


def grouped(refusals: Iterable[Refusal]) -> list[Group]:
    """Return the refused pods by the reason that says most, the largest group first."""
    found: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        found.setdefault(telling(refusal), []).append(refusal)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [Group(reason, tuple(own)) for reason, own in ordered]
