"""What a Node object shows of ours, and what to write where that isn't as it should be. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hami_mock.cluster.objects import Object, annotations_of, labels_of
from hami_mock.fleet import names, note
from hami_mock.fleet.nodes import node_object, state_of
from hami_mock.fleet.note import Note
from hami_mock.hami.handshake import HandshakeState
from hami_mock.kit.quantities import quantity
from hami_mock.node.labels import stamps
from hami_mock.node.state import NodeState
from hami_mock.settings.pools import Pool
from hami_mock.views.hami.registration import difference, registration

_JUST_NOW = timedelta(0)
_OWN = (names.KWOK_NODE, names.FAULTS, names.MADE)
"""Annotations of ours that have nothing to do with cards."""
_EVERY_LABEL = frozenset({names.FLEET, names.POOL, names.HOSTNAME, *names.MACHINE})
_EVERY_RESOURCE = frozenset({"cpu", "memory", "pods"})
"""What nodes have whatever the file says need not be noted."""
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class Ours(NamedTuple):
    """What is ours of a pool's nodes; all else is left as others write it.

    `reports` are the annotations in which plugins report: ours too, but written every half minute.
    `stamps` are those labels that only say when they were written.
    `note` is what a node's annotation says of all this.
    """

    labels: tuple[str, ...]
    annotations: tuple[str, ...]
    resources: tuple[str, ...]
    reports: tuple[str, ...]
    stamps: tuple[str, ...]
    note: str

    @classmethod
    def of(cls, pool: Pool, fleet: str) -> "Ours":
        """Return what a node has with which nothing is wrong: no other has more."""
        state = state_of(pool, 0)
        whole = node_object(pool, state, fleet)
        found = registration(state) if pool.settings.hami else None
        cards = (*(found.annotations if found else ()),)
        reports = (*(found.handshakes if found else ()),)
        labels, resources = (*whole["metadata"]["labels"],), (*whole["status"]["capacity"],)
        own = Note(
            tuple(key for key in labels if key not in _EVERY_LABEL),
            (*cards, *reports),
            tuple(key for key in resources if key not in _EVERY_RESOURCE),
        )
        stamped = tuple(stamps().intersection(labels))
        return cls(labels, (*_OWN, *cards), resources, reports, stamped, own.text)

    def noted(self, node: Object) -> Object:
        """Return a node as it was made, with the annotation that says what of it is ours."""
        node["metadata"]["annotations"][names.MADE] = self.note
        return node

    def mark(self, node: Object) -> int:
        """Return a number for what a node shows of ours: as long as it stays, nothing has changed.

        It is all that is kept of a node that is as it should be.
        """
        labels, notes, status = labels_of(node), annotations_of(node), node["status"]
        capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
        told = {key: labels.get(key, "").isdecimal() for key in self.stamps}
        shown = (
            tuple(map({**labels, **told}.get, self.labels)),
            tuple(map(notes.get, self.annotations)),
            tuple(map(capacity.get, self.resources)),
            tuple(map(allocatable.get, self.resources)),
            tuple(HandshakeState.DELETED in notes.get(key, "") for key in self.reports),
        )
        return hash(shown) or 1


def is_ready(node: Object) -> bool:
    conditions = node["status"].get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


class Made(NamedTuple):
    """A node as it should be: its state, and the whole object."""

    pool: Pool
    state: NodeState
    wanted: Object


def patch(made: Made, ours: Ours, node: Object | None, now: float) -> Object:
    """Return what to write of a node; empty if it is as it should be.

    Without the node as it is now, that is all that is ours of it but for the note: who looks next
    sees by the old one what has to go.
    """
    wanted = made.wanted
    labels = labels_of(node) if node else {}
    notes = annotations_of(node) if node else {}
    metadata, status = wanted["metadata"], wanted["status"]
    right = {key: labels[key] for key in ours.stamps if labels.get(key, "").isdecimal()}
    own = {key: metadata["annotations"].get(key) for key in (_OWN if node else _OWN[:-1])}
    changed = {
        "labels": _differing(ours.labels, {**metadata["labels"], **right}, labels, is_all=not node),
        "annotations": {key: value for key, value in own.items() if notes.get(key) != value},
    }
    if not node:
        changed["annotations"] = own
    if made.pool.settings.hami:
        here = notes if node else dict.fromkeys(ours.annotations, "")
        since = _JUST_NOW if node else None
        moment = datetime.fromtimestamp(now).astimezone()
        cards = {*ours.annotations} - {*_OWN}
        found = difference(registration(made.state), here, cards, moment, since)
        changed["annotations"] |= found.annotations
    shown = node["status"] if node else {}
    parts: Object = {
        key: _amounts(ours.resources, status[key], shown.get(key) or {}, is_all=not node)
        for key in ("capacity", "allocatable")
    }
    before = note.read(notes.get(names.MADE))
    changed["labels"] |= _left(before.labels, ours.labels, labels)
    changed["annotations"] |= _left(before.annotations, (*ours.annotations, *ours.reports), notes)
    for key in parts:
        parts[key] |= _left(before.resources, ours.resources, shown.get(key) or {})
    if names.KWOK_NODE not in metadata["annotations"] and (node is None or is_ready(node)):
        parts["conditions"] = _stopped(now)
    whole = {"metadata": _full(changed), "status": _full(parts)}
    return _full(whole)


def _left(
    before: tuple[str, ...], ours: tuple[str, ...], shown: Mapping[str, Any]
) -> dict[str, None]:
    """Return what was ours before and still shows, to be removed."""
    return {key: None for key in before if key in shown and key not in ours}


def _differing(
    keys: tuple[str, ...],
    wanted: Mapping[str, str],
    shown: Mapping[str, str],
    *,
    is_all: bool,
) -> dict[str, str | None]:
    return {key: wanted.get(key) for key in keys if is_all or shown.get(key) != wanted.get(key)}


def _amounts(
    keys: tuple[str, ...],
    wanted: Mapping[str, str],
    shown: Mapping[str, Any],
    *,
    is_all: bool,
) -> dict[str, str | None]:
    """Compare amounts by what they come to: the server writes 64000m as 64."""
    differ = _differing(keys, wanted, shown, is_all=is_all)
    return {
        key: value
        for key, value in differ.items()
        if is_all or quantity(shown.get(key), 1000) != quantity(value, 1000)
    }


def _stopped(now: float) -> list[dict[str, str]]:
    """Return the conditions of a node that nobody hears of, as the node controller writes them."""
    stamp = datetime.fromtimestamp(now, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        {
            "type": kind,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
        }
        for kind in _CONDITIONS
    ]


def _full(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if value}
