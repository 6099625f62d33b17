"""One call of the kubelet's Allocate: find the pod, take its devices, give back the lock."""

import logging
from dataclasses import dataclass

import anyio

from hami_mock.cluster.kubernetes import Kubernetes, Object, annotations_of
from hami_mock.errors import Away, ClusterError, Conflict, NotAssigned
from hami_mock.hami.assignment import BIND_PHASE, BindPhase
from hami_mock.kit.concurrency import Backoff
from hami_mock.node.hami_side import HamiSide
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.views.hami import locks
from hami_mock.views.hami.answer import Answer, answer, vendors_of
from hami_mock.views.hami.waiting import WaitingPod, by_bind_time, choose, fits, waits

REASON = "hami-mock.io/bind-failed-reason"
"""Why a pod's bind phase is "failed"; HAMi has no place for that."""

CLEANUP_SECONDS = 2.0
"""For what must be written after an answer, or in place of one, whatever happens."""

_log = logging.getLogger(__name__)


@dataclass
class Attempt:
    """The way to an answer for containers that need so many devices each.

    `trouble` is what stood in the way last.
    """

    state: NodeState
    kubernetes: Kubernetes
    resource: Resource
    side: HamiSide
    sizes: list[int]
    pod: WaitingPod | None = None
    trouble: str = "the API server is slow"

    async def run(self) -> list[dict[str, str]]:
        """Find the pod and take its devices; try again until it is done or can't be."""
        backoff = Backoff(first=0.05, longest=1.0)
        sent: Answer | None = None
        while True:
            try:
                if sent is None or not await self._has_arrived(sent):
                    sent = await self._look()
                    await self._write(sent)
                if sent.is_last:
                    await self._release()
                return sent.environments
            except (Conflict, Away) as error:
                self.trouble = str(error)
                await anyio.sleep(backoff.next())

    async def _look(self) -> Answer:
        await self.find()
        if self.pod is None:
            raise NotAssigned(
                f"{self.resource.name}: no pod on this node is waiting for devices that HAMi "
                "assigned; does the pod use HAMi's scheduler?"
            )
        return answer(self.pod, self.resource, self.side, self.sizes, self.state)

    async def find(self) -> None:
        """Find the pod: the one that the node is locked for, else the one that waits longest."""
        name, vendor = self.state.node.name, self.side.vendor
        node = await self.kubernetes.node(name)
        pods = await self._named_by_lock(node)
        if not any(fits(pod, vendor, self.sizes) for pod in pods):
            bound = await self.kubernetes.pods_on(name)
            pods += by_bind_time(WaitingPod.of(pod) for pod in bound if waits(pod, name))
        self.pod = choose(pods, vendor, self.sizes)

    async def _named_by_lock(self, node: Object) -> list[WaitingPod]:
        kind = self.side.vendor.lock
        lock = locks.read_lock(annotations_of(node).get(kind.annotation)) if kind else None
        pod = await locks.pod_of(self.kubernetes, lock)
        return [WaitingPod.of(pod)] if pod and waits(pod, self.state.node.name) else []

    async def _write(self, found: Answer) -> None:
        assert self.pod is not None
        pod = self.pod
        await self.kubernetes.patch_pod_annotations(
            pod.namespace, pod.name, found.annotations, pod.version
        )
        _log.info("%s: allocated to pod %s", self.resource.name, pod)

    async def _has_arrived(self, sent: Answer) -> bool:
        """Tell whether a patch was taken whose answer never came: else it would be done twice."""
        assert self.pod is not None
        pod = await self.kubernetes.pod(self.pod.namespace, self.pod.name)
        return sent.annotations.items() <= annotations_of(pod).items()

    async def give_up(self, reason: str) -> None:
        """Say on the pod that it failed, and why, and give back the lock."""
        _log.warning("%s", reason)
        if self.pod is None:
            return
        failed = {REASON: reason}
        if self.side.vendor.scheduling.sets_bind_phase:
            failed[BIND_PHASE] = BindPhase.FAILED.value
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            try:
                await self.kubernetes.patch_pod_annotations(
                    self.pod.namespace, self.pod.name, failed
                )
            except ClusterError as error:
                _log.warning("can't mark pod %s as failed: %s", self.pod, error)
        await self._release()

    async def _release(self) -> None:
        """Give back the pod's locks. Without, it is only slower: they expire by themselves."""
        assert self.pod is not None
        pod = self.pod
        held = {
            lock
            for vendor in vendors_of(self.state)
            if (lock := vendor.lock) and vendor.pods.to_allocate in pod.annotations
        }
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True) as scope:
            try:
                await locks.release(
                    self.kubernetes, self.state.node.name, held, pod.namespace, pod.name
                )
            except ClusterError as error:
                _log.warning("can't release the lock of pod %s: %s", pod, error)
        if scope.cancelled_caught:
            _log.warning("can't release the lock of pod %s in time; it will expire", pod)
