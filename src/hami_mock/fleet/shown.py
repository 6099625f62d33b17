"""What a Node object shows of ours, and what to write where that isn't as it should be. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hami_mock.cluster.objects import Object, annotations_of, labels_of
from hami_mock.fleet import names
from hami_mock.fleet.nodes import node_object, state_of
from hami_mock.hami.handshake import HandshakeState
from hami_mock.kit.quantities import quantity
from hami_mock.node.labels import stamps
from hami_mock.node.state import NodeState
from hami_mock.settings.pools import Pool
from hami_mock.views.hami.registration import difference, registration

_JUST_NOW = timedelta(0)
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class Ours(NamedTuple):
    """What is ours of a pool's nodes; all else is left as others write it.

    `reports` are the annotations in which plugins report: ours too, but written every half minute.
    """

    labels: tuple[str, ...]
    annotations: tuple[str, ...]
    resources: tuple[str, ...]
    reports: tuple[str, ...]

    @classmethod
    def of(cls, pool: Pool, fleet: str) -> "Ours":
        """Return what a node has with which nothing is wrong: no other has more."""
        state = state_of(pool, 0)
        whole = node_object(pool, state, fleet)
        found = registration(state) if pool.settings.hami else None
        annotations = (names.KWOK_NODE, names.FAULTS, *(found.annotations if found else ()))
        return cls(
            (*whole["metadata"]["labels"],),
            annotations,
            (*whole["status"]["capacity"],),
            (*(found.handshakes if found else ()),),
        )

    def mark(self, node: Object) -> int:
        """Return a number for what a node shows of ours: as long as it stays, nothing has changed.

        It is all that is kept of a node that is as it should be.
        """
        labels, notes, status = labels_of(node), annotations_of(node), node["status"]
        capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
        shown = (
            tuple(map(labels.get, self.labels)),
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

    Without the node as it is now, that is all that is ours of it.
    """
    wanted = made.wanted
    labels = labels_of(node) if node else {}
    notes = annotations_of(node) if node else {}
    metadata, status = wanted["metadata"], wanted["status"]
    right = {key: labels[key] for key in stamps() if labels.get(key, "").isdecimal()}
    own = {key: metadata["annotations"].get(key) for key in (names.KWOK_NODE, names.FAULTS)}
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
        found = difference(registration(made.state), here, {*ours.annotations[2:]}, moment, since)
        changed["annotations"] |= found.annotations
    shown = node["status"] if node else {}
    parts: Object = {
        key: _amounts(ours.resources, status[key], shown.get(key) or {}, is_all=not node)
        for key in ("capacity", "allocatable")
    }
    if names.KWOK_NODE not in metadata["annotations"] and (node is None or is_ready(node)):
        parts["conditions"] = _stopped(now)
    whole = {"metadata": _full(changed), "status": _full(parts)}
    return _full(whole)


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
