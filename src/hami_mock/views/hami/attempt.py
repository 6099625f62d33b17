"""One call of the kubelet's Allocate: find the pod, take its devices, give back the lock."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace

from hami_mock.cluster.kubernetes import Object, annotations_of
from hami_mock.errors import NotAssigned
from hami_mock.hami.assignment import awaits_devices
from hami_mock.node.hami_side import HamiSide
from hami_mock.node.resources import Resource
from hami_mock.views.hami import locks
from hami_mock.views.hami.answer import Answer, answer, assigned_cards
from hami_mock.views.hami.handover import Handover
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

_log = logging.getLogger(__name__)


@dataclass
class Attempt(Handover):
    """The way to an answer for containers that need so many devices each.

    `told` has the UIDs of pods that can't be read, once that was said.
    """

    resource: Resource
    side: HamiSide
    sizes: list[int]
    told: set[str]

    @property
    def told_as(self) -> str:
        return self.resource.name

    async def look(self) -> Answer:
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
            _log.warning("pod %s is skipped if another one fits: %s", *wrong[uid])
        self.told.update(wrong)
        self.told.intersection_update(pod.uid for pod in pods)

    async def _named_by_lock(self, node: Object) -> list[WaitingPod]:
        kind = self.side.vendor.lock
        lock = locks.read_lock(annotations_of(node).get(kind.annotation)) if kind else None
        pod = await locks.pod_of(self.kubernetes, lock)
        return [WaitingPod.of(pod)] if pod and waits(pod, self.state.node.name) else []

    def says_phase(self) -> bool:
        return self.side.vendor.scheduling.sets_bind_phase
