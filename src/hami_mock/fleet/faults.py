"""Faults of fleet nodes: in words, and in a node's annotation, where they outlive us. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from hami_mock.fleet.kinds import FLEET_VERBS
from hami_mock.fleet.member import Member
from hami_mock.kit.values import LINE
from hami_mock.node.fault import Fault, FaultKind
from hami_mock.node.state import NodeState

_MOST = 1000
"""No more entries are read of an annotation."""


class Kept(NamedTuple):
    """A fault, and when it ends by itself: seconds since 1970; None: never."""

    fault: Fault
    until: float | None = None


def alike(
    faults: Mapping[Member, Iterable[Fault]],
) -> Iterator[tuple[Fault, int, list[Member]]]:
    """Yield one of all faults that say the same, how many they are, and on which nodes."""
    same: dict[str, list[tuple[Fault, Member]]] = {}
    for member, own in faults.items():
        for fault in own:
            same.setdefault(fault.text, []).append((fault, member))
    for found in same.values():
        yield found[0][0], len(found), [*dict.fromkeys(member for _, member in found)]


def told(fault: Fault, count: int, when: str) -> str:
    """Return what so many faults that are alike did: 2 cards now unhealthy: no power."""
    noun = f"{fault.kind.on.removesuffix('s')}{'s' if count != 1 else ''}"
    return f"{count} {noun} {when} {f'with {fault.text}' if fault.call else fault.text}"


def write(state: NodeState, kept: Iterable[Kept]) -> str | None:
    """Return the annotation; None: nothing is wrong, and there should be none.

    What is the same for several cards is written once.
    """
    alike: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for fault, until in kept:
        row: dict[str, Any] = {"verb": fault.kind.verb}
        row |= {"reason": fault.reason} if fault.reason else {}
        row |= {"details": dict(fault.details)} if fault.details else {}
        row |= {"until": until} if until is not None else {}
        names = alike.setdefault(json.dumps(row, sort_keys=True), (row, []))[1]
        names += sorted(map(state.name_of, fault.targets))
    if not alike:
        return None
    return json.dumps([{**row, "targets": names} for row, names in alike.values()])


def read(text: str | None, state: NodeState) -> tuple[Kept, ...]:
    """Return the faults that an annotation tells of; what makes no sense is passed over.

    Anybody may have written it, and the pool may have other cards than when it was written.
    """
    try:
        rows = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return ()
    if not isinstance(rows, list):
        return ()
    known = {card.name: uuid for uuid, card in state.cards.items()}
    known |= {name: name for name in (*state.resources, state.node.name)}
    return tuple(found for row in rows[:_MOST] for found in _read(row, known))


def _read(row: object, known: Mapping[str, str]) -> Iterable[Kept]:
    if not isinstance(row, dict):
        return
    kind, names = FLEET_VERBS.get(str(row.get("verb"))), row.get("targets")
    details, until = row.get("details", {}), row.get("until")
    if not (isinstance(kind, FaultKind) and isinstance(names, list) and isinstance(details, dict)):
        return
    if isinstance(until, bool) or not isinstance(until, int | float | None):
        return
    kinds = {each.name: each.kind for each in kind.parameters}
    try:
        checked = {name: kinds[name].read(value) for name, value in details.items()}
        reason = LINE.read(row["reason"]) if "reason" in row else ""
    except (KeyError, ValueError):
        return
    for name in names:
        if isinstance(name, str) and name in known:
            yield Kept(Fault(kind, frozenset({known[name]}), reason, checked), until)
