"""The pods on the fleet's nodes: one watch of all of them, each given to its node.

Of a pod so much is kept as is needed to know what it holds and how busy it is: there are tens of
thousands, and many are alike.
"""

import sys
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskStatus

from hami_mock import vendors
from hami_mock.cluster.objects import Change, Object
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member, PodKey
from hami_mock.node.pods import Pod
from hami_mock.sources.load_plan import ANNOTATION, FAKE_GPU_OPERATOR
from hami_mock.sources.pods import read_pod

BOUND = "spec.nodeName!="
"""The field selector of pods that are on a node."""
_MOST_PODS = 2000
"""Of a node; no kubelet runs more. Others aren't seen."""
_MOST_SHARED = 10_000
_T = TypeVar("_T", bound=Hashable)

Watch = Callable[[], AsyncGenerator[Change, None]]
"""Yields all bound pods, in pages, and each change of one."""
Seen = Callable[[Member, Object, bool], None]
"""Is told of each pod on a node as the API server has it, and whether it is gone."""


class FleetPods:
    """Keeps `Member.pods`: those that aren't over."""

    name = "pods"

    def __init__(
        self,
        fleet: Fleet,
        watch: Watch,
        seen: Seen | None = None,
        may_begin: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make one that begins when it may: a fleet of before may have had other nodes."""
        self._may_begin = may_begin
        self._fleet = fleet
        self._watch = watch
        self._seen = seen
        self._listed: set[tuple[Member, PodKey]] | None = None
        """Those that have come so far of a list; None: none is being read. A pod of the same name
        may have been on another node."""
        self._shared: dict[Hashable, Any] = {}
        self.is_read = False
        """Whether all pods have been read once."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the pods until cancelled."""
        task_status.started()
        await self._fleet.changes.wait_until(self._may_begin)
        async with aclosing(self._watch()) as changes:
            async for change in changes:
                self.follow(change)
                # A page of pods is milliseconds of work, and there may be a hundred.
                await anyio.lowlevel.checkpoint()

    def follow(self, change: Change) -> None:
        """Take over what a watch yields."""
        if change.is_all:
            self._listed = set()
        for thing in change.things:
            member = self._fleet.members.get(thing["spec"].get("nodeName", ""))
            if member is None:
                continue
            key = thing["metadata"]["namespace"], thing["metadata"]["name"]
            if self._listed is not None:
                self._listed.add((member, key))
            self._take(member, key, None if change.is_gone else read_pod(thing))
            if self._seen is not None:
                self._seen(member, thing, change.is_gone)
        if self._listed is not None and not change.has_more:
            self._drop_all_but(self._listed)
            self._listed = None
            if not self.is_read:
                self.is_read = True
                self._fleet.tell_orders()

    def _take(self, member: Member, key: PodKey, pod: Pod | None) -> None:
        """Keep a pod, or forget it if there is none (any more)."""
        before = member.pods.get(key) if member.pods else None
        if pod is None or pod.is_over:
            if member.pods and before is not None:
                del member.pods[key]
                member.pods = member.pods or None
                self._tell(member)
            return
        small = self._small(pod)
        if small == before:
            return
        if member.pods is None:
            member.pods = {}
        if before is None and len(member.pods) >= _MOST_PODS:
            return
        # The key's texts are the pod's own, not those of an object that goes.
        member.pods[small.namespace, small.name] = small
        self._tell(member)

    def _tell(self, member: Member) -> None:
        if self.is_read:
            self._fleet.pods_changed(member)
        else:
            # Whoever keeps the nodes looks at them when all pods have been read.
            self._fleet.changes.send()

    def _drop_all_but(self, listed: set[tuple[Member, PodKey]]) -> None:
        for member in self._fleet.members.values():
            for key in [*member.pods] if member.pods else ():
                if (member, key) not in listed:
                    self._take(member, key, None)

    def _small(self, pod: Pod) -> Pod:
        """Return a pod without what nobody reads once it is bound; what is alike is the same."""
        requests = pod.requests
        told = tuple((name, *sorted(asked.items())) for name, asked in requests.items())
        if len(self._shared) > _MOST_SHARED:
            self._shared.clear()
        return replace(
            pod,
            namespace=sys.intern(pod.namespace),
            phase=sys.intern(pod.phase),
            annotations={sys.intern(key): value for key, value in _kept(pod.annotations)},
            init_containers=self._same(pod.init_containers),
            containers=self._same(pod.containers),
            sidecars=self._same(pod.sidecars),
            requests=self._shared.setdefault(told, requests),
        )

    def _same(self, value: _T) -> _T:
        found: _T = self._shared.setdefault(value, value)
        return found


def _kept(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in annotations.items():
        if key in _READ or key.startswith(f"{ANNOTATION}."):
            yield key, value


def _read_of_pods() -> Iterator[str]:
    """Yield the annotations that say what a bound pod has, and how busy it is."""
    yield from (ANNOTATION, FAKE_GPU_OPERATOR)
    for vendor in vendors.VENDORS:
        for chip in vendor.chips.values():
            yield chip.pods.allocated
            yield chip.scheduling.shared
            if instances := chip.scheduling.instances:
                yield instances.annotation


_READ = frozenset(filter(None, _read_of_pods()))
