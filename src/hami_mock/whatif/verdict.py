"""Compare what a real kube-scheduler decided with the placer's rules, pod by pod.

Of nodes with the same score kube-scheduler takes one at random. So the placer follows it: before
each pod it has the same pods in the same places, and the real choice must be one of those that it
would choose from; or nobody takes the pod, and for the same reasons. That is exact, and whatever
differs is said with the pod it begins with.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hami_mock.whatif.placing import Choice, Placing
from hami_mock.whatif.waiting import Waiting

_REASON = re.compile(r"(\d+) (.+)")
_HEAD = re.compile(r"\d+/\d+ nodes are available: ")


class Decision(NamedTuple):
    """What a scheduler decided: a node, or "" and how many nodes refused for what."""

    node: str
    reasons: Mapping[str, int]


class Difference(NamedTuple):
    """A pod that the placer would have treated in another way, and what is behind it."""

    pod: str
    real: str
    ours: str
    why: str


class Verdict(NamedTuple):
    """How far both agree.

    `placed` are pods that the real scheduler placed; `chance` those of them for which it had
    several equal nodes. `unlike` are the differences; without any, all totals are equal. `alone` is
    how many the placer places that follows nobody: of equal nodes it takes the first.
    """

    pods: int
    placed: int
    chance: int
    unlike: tuple[Difference, ...]
    alone: int = 0


def reasons_of(message: str) -> dict[str, int]:
    """Return the reasons in a message such as 0/3 nodes are available: 3 Insufficient cpu."""
    text = _HEAD.sub("", message).partition(". ")[0].rstrip(".")
    found = (_REASON.fullmatch(part.strip()) for part in text.split(", "))
    return {match[2]: int(match[1]) for match in found if match}


def compare(placing: Placing, queue: Sequence[Waiting], decisions: Sequence[Decision]) -> Verdict:
    """Follow the decisions, in the order of the queue, on an empty cluster."""
    unlike: list[Difference] = []
    placed = chance = 0
    for pod, decision in zip(queue, decisions, strict=True):
        kind = pod.arrival.kind
        best = placing.best(kind, placing.fits(kind, pod.only))
        if difference := _difference(placing, pod, decision, best):
            unlike.append(difference)
        node = placing.cluster.node_named(decision.node) if decision.node else None
        if node is not None:
            placed += 1
            chance += len(best) > 1
            placing.put(kind, Choice(node, {}))
    return Verdict(len(queue), placed, chance, tuple(unlike))


def _difference(
    placing: Placing, pod: Waiting, decision: Decision, best: Sequence[int]
) -> Difference | None:
    name, kind = pod.arrival.name, pod.arrival.kind
    names = [placing.cluster.name(node) for node in best]
    ours = _shown(names)
    if decision.node:
        if decision.node in names:
            return None
        node = placing.cluster.node_named(decision.node)
        is_room = node is not None and bool(placing.fits(kind, pod.only)[node])
        why = "another score" if is_room else "the placer sees no room on that node"
        return Difference(name, decision.node, ours, why)
    if names:
        return Difference(name, "nowhere", ours, "the placer sees room")
    known = placing.refusals(kind, pod.only)
    if known == decision.reasons:
        return None
    return Difference(name, _counted(decision.reasons), _counted(known), "other reasons")


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more or "nowhere"


def _counted(reasons: Mapping[str, int]) -> str:
    return (
        ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "no reason"
    )
