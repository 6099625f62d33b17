"""Giving a pod what HAMi assigned to it: written on it, and the node's lock given back."""

import logging
from dataclasses import dataclass, field, replace
from typing import ClassVar

import anyio

from hami_mock.cluster.kubernetes import Kubernetes, annotations_of
from hami_mock.errors import Away, ClusterError, Conflict, HamiMockError
from hami_mock.hami.assignment import BIND_PHASE, BindPhase
from hami_mock.kit.concurrency import Backoff
from hami_mock.kit.text import cut
from hami_mock.node.state import NodeState
from hami_mock.views.allotted import Allotted
from hami_mock.views.hami import locks
from hami_mock.views.hami.answer import Answer, vendors_of
from hami_mock.views.hami.waiting import WaitingPod

REASON = "hami-mock.io/bind-failed-reason"
"""Why a pod's bind phase is "failed"; HAMi has no place for that."""

CLEANUP_SECONDS = 2.0
"""For what must be written after an answer, or in place of one, whatever happens."""

LONGEST_REASON = 500

_log = logging.getLogger(__name__)


def explain(error: Exception) -> str:
    """Return why something failed, in one line that isn't long, whatever the error is."""
    if isinstance(error, HamiMockError):
        return cut(str(error), LONGEST_REASON)
    _log.debug("an unexpected error", exc_info=error)
    return cut(f"{type(error).__name__}: {error}", LONGEST_REASON)


async def mark_failed(
    kubernetes: Kubernetes, pod: WaitingPod, reason: str, *, says_phase: bool
) -> None:
    """Say on a pod why it failed, and that, if its vendor's plugin does. Raises ClusterError.

    The pod must be the version that was read, if that is known.
    """
    phase = {BIND_PHASE: BindPhase.FAILED.value} if says_phase else {}
    version = pod.version or None
    where = pod.namespace, pod.name
    try:
        await kubernetes.patch_pod_annotations(*where, {REASON: reason, **phase}, version)
    except Conflict:
        raise
    except ClusterError:
        if not phase:
            raise
        # The phase alone: a pod's annotations may leave no room for a reason.
        await kubernetes.patch_pod_annotations(*where, phase, version)


@dataclass
class Handover:
    """The way to what a pod's containers get; who knows which pod it is says it with `look`.

    - trouble: what stood in the way last
    - leaves_lock: the lock couldn't be given back
    """

    state: NodeState
    kubernetes: Kubernetes
    pod: WaitingPod | None = field(default=None, kw_only=True)
    trouble: str = field(default="the API server is slow", kw_only=True)
    leaves_lock: bool = field(default=False, kw_only=True)
    cleanup_seconds: ClassVar[float] = CLEANUP_SECONDS
    """How long what must be written in the end may take."""

    @property
    def told_as(self) -> str:
        """What the log calls it."""
        return self.state.node.name

    async def look(self) -> Answer:
        """Return what the pod gets, as it is now. Raises DeviceError or Malformed."""
        raise NotImplementedError

    def says_phase(self) -> bool:
        """Tell whether the pod is to say that it failed."""
        raise NotImplementedError

    async def run(self) -> list[Allotted]:
        """Look at the pod and take its devices; try again until it is done or can't be."""
        backoff = Backoff(first=0.05, longest=1.0)
        sent: Answer | None = None
        while True:
            try:
                if sent is None or not await self._has_arrived(sent):
                    sent = await self.look()
                    await self._write(sent)
                if sent.is_last:
                    await self.release()
                return sent.allotted
            except (Conflict, Away) as error:
                self.trouble = cut(str(error))
                await anyio.sleep(backoff.next(error.retry_after))

    async def _write(self, found: Answer) -> None:
        assert self.pod is not None
        pod = self.pod
        await self.kubernetes.patch_pod_annotations(
            pod.namespace, pod.name, found.annotations, pod.version
        )
        _log.info("%s: allocated to pod %s", self.told_as, pod)

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
        unversioned, says = replace(self.pod, version=""), self.says_phase()
        with anyio.move_on_after(self.cleanup_seconds, shield=True):
            try:
                await mark_failed(self.kubernetes, unversioned, reason, says_phase=says)
            except ClusterError as error:
                _log.warning("can't mark pod %s as failed: %s", self.pod, cut(str(error)))
        await self.release()

    async def release(self) -> None:
        """Give back the pod's locks; who looks for those that were left does it if it fails."""
        assert self.pod is not None
        pod = self.pod
        self.leaves_lock = True
        held = {
            lock
            for vendor in vendors_of(self.state)
            if (lock := vendor.lock) and vendor.pods.to_allocate in pod.annotations
        }
        with anyio.move_on_after(self.cleanup_seconds, shield=True) as scope:
            try:
                await locks.release(
                    self.kubernetes, self.state.node.name, held, pod.namespace, pod.name
                )
                self.leaves_lock = False
            except ClusterError as error:
                _log.warning("can't release the lock of pod %s: %s", pod, cut(str(error)))
        if scope.cancelled_caught:
            _log.warning("can't release the lock of pod %s in time", pod)
