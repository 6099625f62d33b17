"""Locks of nodes that nobody gives back: the pod went, or the fleet's process died in between."""

import logging
from collections.abc import Callable

import anyio

from hami_mock.cluster.kubernetes import Object, annotations_of
from hami_mock.cluster.resources import NODES
from hami_mock.errors import ClusterError, Invalid
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.fleet.paid import Paid
from hami_mock.hami.assignment import BIND_PHASE, BindPhase
from hami_mock.hami.kinds import Lock
from hami_mock.kit.text import cut
from hami_mock.vendors import VENDORS
from hami_mock.views.hami import locks
from hami_mock.views.hami.waiting import WaitingPod, waits

GRACE_SECONDS = 10.0
"""A lock that stands for so long without a pod that waits here is looked at."""
_KINDS = {
    chip.lock.annotation: chip.lock
    for vendor in VENDORS
    for chip in vendor.chips.values()
    if chip.lock
}

_log = logging.getLogger(__name__)


class LeftLocks:
    """Looks at locks that stand for long, and removes those whose pod can't come any more."""

    def __init__(self, fleet: Fleet, kubernetes: Paid, is_waiting: Callable[[str], bool]) -> None:
        self._fleet = fleet
        self._kubernetes = kubernetes
        self._is_waiting = is_waiting
        self._since: dict[str, float] = {}
        """The nodes that are locked, and since when they were seen to be."""
        self.seen: dict[str, dict[str, str]] = {}
        """Their locks as they were seen last, by annotation."""
        self.removed = 0

    def see(self, member: Member, node: Object) -> None:
        """Notice whether a node is locked."""
        shown = annotations_of(node)
        if held := {key: shown[key] for key in _KINDS if key in shown}:
            self._since.setdefault(member.name, anyio.current_time())
            self.seen[member.name] = held
        else:
            self._since.pop(member.name, None)
            self.seen.pop(member.name, None)

    async def give_back(self, node_name: str, pod: WaitingPod) -> bool:
        """Remove a pod's locks as they were seen, without another look; tell whether that went.

        The server refuses it if a lock isn't the same any more. Raises ClusterError.
        """
        held = self.seen.get(node_name, {})
        if not held or not all(_names(text, pod) for text in held.values()):
            return False
        tests = [{"op": "test", "path": _path(key), "value": text} for key, text in held.items()]
        removals = [{"op": "remove", "path": _path(key)} for key in held]
        try:
            await self._kubernetes.patch(NODES, node_name, [*tests, *removals])
        except Invalid:
            return False
        return True

    def suspect(self, name: str) -> None:
        """Look at a node soon: a lock could not be given back."""
        self._since.setdefault(name, anyio.current_time())

    async def run(self) -> None:
        while True:
            await anyio.sleep(GRACE_SECONDS / 2)
            await self.clear_up()

    async def clear_up(self) -> None:
        """Look at all locks that have stood for long enough."""
        old = anyio.current_time() - GRACE_SECONDS
        for name, since in [*self._since.items()]:
            if since > old or self._is_waiting(name):
                continue
            if name not in self._fleet.members:
                del self._since[name]
                continue
            try:
                await self._look_at(name)
            except ClusterError as error:
                _log.warning("can't check the lock of node %s: %s", name, cut(str(error)))

    async def _look_at(self, name: str) -> None:
        node = await self._kubernetes.node(name)
        held = [
            (kind, text) for key, kind in _KINDS.items() if (text := annotations_of(node).get(key))
        ]
        for kind, text in held:
            await self._release(name, kind, text)
        if not held:
            self._since.pop(name, None)

    async def _release(self, name: str, kind: Lock, text: str) -> None:
        lock = locks.read_lock(text)
        if lock is None or not lock.names_pod:
            return  # nobody can tell whose it is: it expires
        pod = await locks.pod_of(self._kubernetes, lock)
        if pod is not None and not _is_done(pod, name):
            return
        await locks.release(self._kubernetes, name, [kind], lock.namespace, lock.name)
        self.removed += 1
        _log.warning("removed a lock that was left behind on node %s", name)


def _is_done(pod: Object, node_name: str) -> bool:
    """Tell whether the pod of a lock won't come for it any more."""
    phase = annotations_of(pod).get(BIND_PHASE)
    if phase in (BindPhase.SUCCESS, BindPhase.FAILED):
        return True
    # One that isn't bound yet may still be.
    return "nodeName" in pod["spec"] and not waits(pod, node_name)


def _names(text: str, pod: WaitingPod) -> bool:
    lock = locks.read_lock(text)
    return lock is not None and lock.names_pod and lock.is_of(pod.namespace, pod.name)


def _path(annotation: str) -> str:
    return f"/metadata/annotations/{annotation.replace('/', '~1')}"
