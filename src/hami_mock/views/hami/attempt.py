"""One call of the kubelet's Allocate: find the pod, take its devices, give back the lock."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace

import anyio

from hami_mock.cluster.kubernetes import Kubernetes, Object, annotations_of
from hami_mock.errors import Away, ClusterError, Conflict, HamiMockError, NotAssigned
from hami_mock.hami.assignment import BIND_PHASE, BindPhase, awaits_devices
from hami_mock.kit.concurrency import Backoff
from hami_mock.kit.text import cut
from hami_mock.node.hami_side import HamiSide
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.views.deviceplugin.allocation import Allotted
from hami_mock.views.hami import locks
from hami_mock.views.hami.answer import Answer, answer, assigned_cards, vendors_of
from hami_mock.views.hami.waiting import (
    Fit,
    WaitingPod,
    by_bind_time,
    choose,
    fit,
    has_ended,
    problem,
    waits,
)

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
    _log.debug("nobody foresaw this", exc_info=error)
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
class Attempt:
    """The way to an answer for containers that need so many devices each.

    - told: the UIDs of pods that can't be read, once that was said
    - trouble: what stood in the way last
    - leaves_lock: the lock couldn't be given back
    """

    state: NodeState
    kubernetes: Kubernetes
    resource: Resource
    side: HamiSide
    sizes: list[int]
    told: set[str]
    pod: WaitingPod | None = None
    trouble: str = "the API server is slow"
    leaves_lock: bool = False

    async def run(self) -> list[Allotted]:
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
                return sent.allotted
            except (Conflict, Away) as error:
                self.trouble = cut(str(error))
                await anyio.sleep(backoff.next(error.retry_after))

    async def _look(self) -> Answer:
        await self.find()
        if self.pod is None:
            raise NotAssigned(
                f"{self.resource.name}: no pod on this node is waiting for devices that HAMi "
                "assigned; does the pod use HAMi's scheduler?"
            )
        pod = replace(self.pod, shared=await self._shared(self.pod))
        return answer(pod, self.resource, self.side, self.sizes, self.state)

    async def _shared(self, pod: WaitingPod) -> tuple[str, ...]:
        """Return what the node's other pods have in the annotation that decides what is left.

        The API server is asked: a pod may have got its part a moment ago.
        """
        annotation = self.side.vendor.scheduling.shared
        others = await self.kubernetes.pods_on(self.state.node.name) if annotation else ()
        return tuple(
            annotations_of(other).get(annotation, "")
            for other in others
            if not has_ended(other) and other["metadata"].get("uid", "") != pod.uid
        )

    def cards(self) -> list[Collection[str]]:
        """Return the UUIDs of the cards that the containers should have slots of."""
        if self.pod is None:
            return []
        return [*assigned_cards(self.pod, self.resource, self.side, self.sizes, self.state)]

    def recall(self) -> None:
        """Find the pod among those that are known, without asking for any."""
        name = self.state.node.name
        known = (
            WaitingPod.seen(pod)
            for pod in self.state.pods.values()
            if pod.phase == "Pending" and awaits_devices(pod.annotations, name)
        )
        self.pod = choose((), by_bind_time(known), self.side.vendor, self.sizes)

    async def find(self) -> None:
        """Find the pod: the one that the node is locked for, else the one that waits longest."""
        name, vendor = self.state.node.name, self.side.vendor
        node = await self.kubernetes.node(name)
        locked = await self._named_by_lock(node)
        others: list[WaitingPod] = []
        if not any(fit(pod, vendor, self.sizes) is Fit.FITS for pod in locked):
            bound = await self.kubernetes.pods_on(name)
            others = by_bind_time(WaitingPod.of(pod) for pod in bound if waits(pod, name))
            self._say_skipped(others)
        self.pod = choose(locked, others, vendor, self.sizes)

    def _say_skipped(self, pods: list[WaitingPod]) -> None:
        """Say once of each pod that it can't be read; of pods that are gone nothing is kept."""
        wrong = {pod.uid: (pod, why) for pod in pods if (why := problem(pod, self.side.vendor))}
        for uid in wrong.keys() - self.told:
            _log.warning("pod %s is passed over if another will do: %s", *wrong[uid])
        self.told.update(wrong)
        self.told.intersection_update(pod.uid for pod in pods)

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
        says_phase = self.side.vendor.scheduling.sets_bind_phase
        unversioned = replace(self.pod, version="")
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            try:
                await mark_failed(self.kubernetes, unversioned, reason, says_phase=says_phase)
            except ClusterError as error:
                _log.warning("can't mark pod %s as failed: %s", self.pod, cut(str(error)))
        await self._release()

    async def _release(self) -> None:
        """Give back the pod's locks; who looks for those that were left does it if it fails."""
        assert self.pod is not None
        pod = self.pod
        self.leaves_lock = True
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
                self.leaves_lock = False
            except ClusterError as error:
                _log.warning("can't release the lock of pod %s: %s", pod, cut(str(error)))
        if scope.cancelled_caught:
            _log.warning("can't release the lock of pod %s in time", pod)
