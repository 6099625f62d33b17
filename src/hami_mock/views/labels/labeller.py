"""Keeps the node's labels as those who discover hardware would write them."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Set
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes, annotations_of, labels_of
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import first_of
from hami_mock.node.labels import node_labels, stamps
from hami_mock.node.state import NodeState
from hami_mock.vendors.labelling import LabelSet
from hami_mock.views.labels.ownership import ANNOTATION, Difference, difference, noted
from hami_mock.views.node_keeper import NodeKeeper

_log = logging.getLogger(__name__)


class Registrations(NamedTuple):
    """Whether the kubelet has every resource, and when to ask again.

    An autoscaler takes a node that has the labels, and not the resource, for one that isn't ready.
    """

    are_complete: Callable[[], bool]
    changes: Broadcast


class Wanted(NamedTuple):
    """Which labels, the version of NVIDIA's driver in them, and whether they go at the end."""

    sets: Collection[LabelSet]
    driver: str
    remove: bool = False


class Labeller:
    """Writes labels once the kubelet has every resource, and corrects them from then on.

    It writes only what differs from what the node shows, in one patch.
    """

    name = "labels"

    def __init__(
        self,
        state: NodeState,
        kubernetes: Kubernetes,
        wanted: Wanted,
        registrations: Registrations,
    ) -> None:
        self._state = state
        self._keeper = NodeKeeper(kubernetes, state.node.name, "the agent's labels")
        self._wanted = wanted
        self._registrations = registrations
        self._now = int(time.time())
        self._stamps = stamps()
        self._ours: Set[str] = frozenset()
        self._foreign: Set[str] = frozenset()
        self._told: set[str] = set()
        self._written: Mapping[str, str | None] = {}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the labels until cancelled; then remove them, if that is wanted."""
        task_status.started()
        try:
            await self._keeper.run(self._keep_up)
        finally:
            if self._wanted.remove and self._ours:
                removed = {"labels": dict.fromkeys(self._ours), "annotations": {ANNOTATION: None}}
                await self._keeper.withdraw(removed)

    def status(self) -> dict[str, Any]:
        """Return the labels that are ours, those we leave to somebody else, and what is wrong."""
        return {
            "labels": sorted(self._ours),
            "foreign": sorted(self._foreign),
            "error": self._keeper.error,
        }

    @property
    def not_ready(self) -> str:
        return self._keeper.not_ready

    async def _keep_up(self) -> None:
        state_changed = self._state.changes.next()
        others = self._keeper.changes.next(), self._registrations.changes.next()
        if self._keeper.node is not None:
            if self._registrations.are_complete():
                found = self._look()
                if not found.is_none:
                    with anyio.move_on_after(await self._write(found)):
                        await state_changed.wait()
                    return
                self._ours = found.ours
            self._keeper.is_right()
        await first_of(state_changed.wait, *(event.wait for event in others))

    def _look(self) -> Difference:
        node = self._keeper.node
        assert node is not None
        annotations, labels = annotations_of(node), labels_of(node)
        sets, driver, _ = self._wanted
        wanted = node_labels(self._state.node, sets, self._now, driver, self._state.lost)
        found = difference(
            wanted, labels, annotations, self._ours | noted(annotations), self._stamps
        )
        self._foreign = found.foreign
        if unheard := found.foreign - self._told:
            self._told |= unheard
            names = ", ".join(f"{key}={labels[key]}" for key in sorted(unheard))
            _log.warning("leaving the labels that somebody else set on the node: %s", names)
        return found

    async def _write(self, found: Difference) -> float:
        """Patch the node; return for how long it shouldn't be patched again."""
        before = self._ours
        # If the end comes amid this, some of it may be there.
        self._ours = before | found.ours
        metadata: dict[str, Mapping[str, str | None]] = {
            kind: values
            for kind, values in (
                ("labels", found.labels),
                ("annotations", {} if found.is_noted else {ANNOTATION: found.note}),
            )
            if values
        }
        corrected = [key for key, value in found.labels.items() if self._is_correction(key, value)]
        # What somebody else has just written must not be overwritten.
        is_done, pause = await self._keeper.patch(metadata, corrected, as_seen=True)
        self._ours = found.ours if is_done else before
        if is_done:
            self._written = {**self._written, **found.labels}
        return pause

    def _is_correction(self, key: str, value: str | None) -> bool:
        return value is not None and self._written.get(key) == value
