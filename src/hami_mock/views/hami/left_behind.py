"""Pods that failed before they had their devices, and locks that nobody gives back.

The kubelet refuses some pods without asking a device plugin: it has too few devices left, or they
are on the wrong NUMA nodes. Then the node stays locked, and all other pods are stopped until the
lock expires. The same happens if an agent ends in the middle of an Allocate, or can't reach the API
server just then. So whenever a pod fails or goes that HAMi's scheduler has bound here and that has
yet to get devices, after each trouble with an Allocate and at the start, the node's locks are
looked at, and those of pods that can't come any more are removed.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes, Object, annotations_of
from hami_mock.errors import ClusterError, NotAllowed, NotThere
from hami_mock.hami.assignment import BIND_PHASE, BindPhase, awaits_devices
from hami_mock.hami.errors import Malformed
from hami_mock.hami.kinds import Lock
from hami_mock.hami.lock import NodeLock
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import Backoff, first_of
from hami_mock.kit.text import cut
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from hami_mock.sources.pods import read_pod
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.views.hami import locks
from hami_mock.views.hami.answer import says_phase, vendors_of
from hami_mock.views.hami.handover import LONGEST_REASON, explain, mark_failed
from hami_mock.views.hami.waiting import WaitingPod, bind_time

_log = logging.getLogger(__name__)


class LeftBehind:
    """Fails pods that failed, and removes their locks. `troubles` tells that one may stand."""

    def __init__(self, state: NodeState, kubernetes: Kubernetes, troubles: Broadcast) -> None:
        self._state = state
        self._kubernetes = kubernetes
        self._troubles = troubles
        self._waiting: dict[str, Pod] = {}
        """Pods that have yet to get devices, by UID."""
        self._ended: dict[str, Pod] = {}
        """Those that won't get them any more, until that is cleared up."""
        self._cleared: set[str] = set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        backoff = Backoff(first=0.2, longest=30.0)
        is_due = True
        while True:
            pods, trouble = self._state.pod_changes.next(), self._troubles.next()
            self._follow()
            if is_due or self._ended:
                try:
                    await self.clear_up()
                except Exception as error:
                    # Whatever it is, no lock may stand for want of somebody who looks.
                    why = explain(error)
                    _log.warning("can't check for a lock that was left behind: %s", why)
                    await anyio.sleep(backoff.next(getattr(error, "retry_after", 0.0)))
                    continue
                backoff.reset()
            await first_of(pods.wait, trouble.wait)
            is_due = trouble.is_set()

    def _follow(self) -> None:
        """Notice which pods wait, and which of those that did can't come any more."""
        name, vendors = self._state.node.name, vendors_of(self._state)
        known = {pod.uid: pod for pod in self._state.pods.values()}
        bound = {
            uid: pod
            for uid, pod in known.items()
            if _is_allocating(pod.annotations, name) and _has_claims(WaitingPod.seen(pod), vendors)
        }
        self._ended |= {uid: pod for uid, pod in self._waiting.items() if uid not in known}
        self._ended |= {
            uid: pod for uid, pod in bound.items() if pod.is_over and uid not in self._cleared
        }
        self._waiting = {uid: pod for uid, pod in bound.items() if not pod.is_over}
        self._cleared &= known.keys()

    async def clear_up(self) -> None:
        """Fail the pods that have failed, and remove locks that were left. Raises ClusterError."""
        ended = dict(self._ended)
        node = await self._kubernetes.node(self._state.node.name)
        left: dict[str, str | None] = {}
        failed: dict[str, Object] = {}
        for kind, lock in self._locks(node):
            pod = await locks.pod_of(self._kubernetes, lock)
            if pod is not None and read_pod(pod).phase == "Failed":
                failed[pod["metadata"]["uid"]] = pod
            if self._is_left(lock, kind, pod, ended.values()):
                left[kind.annotation] = None
        failed |= await self._failed(pod for uid, pod in ended.items() if uid not in failed)
        trouble = await self._mark(failed.values())
        # Whatever is wrong with a pod, all others wait for the lock.
        if left:
            version = node["metadata"]["resourceVersion"]
            await self._kubernetes.patch_node_annotations(node["metadata"]["name"], left, version)
            _log.warning("removed a lock that was left behind on the node: %s", ", ".join(left))
        if trouble is not None:
            raise trouble
        self._cleared |= ended.keys()
        self._ended = {uid: pod for uid, pod in self._ended.items() if uid not in ended}

    def _locks(self, node: Object) -> Iterator[tuple[Lock, NodeLock]]:
        kinds = {vendor.lock for vendor in vendors_of(self._state) if vendor.lock is not None}
        for kind in sorted(kinds):
            lock = locks.read_lock(annotations_of(node).get(kind.annotation))
            if lock is not None:
                yield kind, lock

    def _is_left(
        self, lock: NodeLock, kind: Lock, pod: Object | None, ended: Iterable[Pod]
    ) -> bool:
        """Tell whether a lock's pod can't come any more."""
        if lock.names_pod:
            return pod is None or _is_over(pod)
        # Nobody can tell whose it is but by the time, and by who waits for what.
        vendors = [each for each in vendors_of(self._state) if each.lock == kind]
        waiting, gone = (
            [pod for pod in pods if _has_claims(WaitingPod.seen(pod), vendors)]
            for pods in (self._waiting.values(), ended)
        )
        return not waiting and any(_was_locked(pod, lock, kind) for pod in gone)

    async def _failed(self, pods: Iterable[Pod]) -> dict[str, Object]:
        """Return what the API server has of pods that failed, by UID."""
        found = {}
        for pod in pods:
            if pod.phase == "Failed":
                try:
                    found[pod.uid] = await self._kubernetes.pod(pod.namespace, pod.name)
                except NotThere:
                    continue
        return found

    async def _mark(self, pods: Iterable[Object]) -> ClusterError | None:
        """Say on pods that they didn't get their devices, and why, if nobody has said so.

        Return why that should be tried again.
        """
        trouble = None
        for pod in pods:
            now, status = WaitingPod.of(pod), pod["status"]
            ours = [each for each in vendors_of(self._state) if _has_claims(now, [each])]
            is_ours = bool(ours) and _is_allocating(now.annotations, self._state.node.name)
            if status.get("phase") != "Failed" or not is_ours:
                continue
            told = filter(None, (str(status.get(key, "")) for key in ("reason", "message")))
            reason = cut(
                f"the pod failed before it had its devices: {': '.join(told)}", LONGEST_REASON
            )
            _log.warning("pod %s: %s", now, reason)
            says = any(says_phase(vendor, now.annotations) for vendor in ours)
            try:
                await mark_failed(self._kubernetes, now, reason, says_phase=says)
            except NotAllowed as error:
                _log.warning("can't mark pod %s as failed: %s", now, explain(error))
            except ClusterError as error:
                trouble = error
        return trouble


def _is_allocating(annotations: Mapping[str, str], node_name: str) -> bool:
    is_bound = awaits_devices(annotations, node_name)
    return is_bound and annotations[BIND_PHASE] == BindPhase.ALLOCATING


def _is_over(pod: Object) -> bool:
    decided = annotations_of(pod).get(BIND_PHASE) in (BindPhase.SUCCESS, BindPhase.FAILED)
    return read_pod(pod).is_over or decided


def _has_claims(pod: WaitingPod, vendors: Iterable[HamiVendor]) -> bool:
    """Tell whether a pod has yet to get devices; one that can't be read never gets any."""
    try:
        return any(pod.next(vendor, 0) is not None for vendor in vendors)
    except Malformed:
        return True


def _was_locked(pod: Pod, lock: NodeLock, kind: Lock) -> bool:
    """Tell whether a lock can be the one that the scheduler set when it bound a pod."""
    since = lock.time.timestamp() - bind_time(pod.annotations)
    return 0 <= since <= kind.lifetime.total_seconds()
