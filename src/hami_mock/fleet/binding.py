"""HAMi's node side for pods on nodes without a kubelet: what Allocate would do, done at once.

HAMi's scheduler has locked the node, said which cards the pod gets, and bound it. We take what it
assigned, container by container, say on the pod that it has its devices, and give the lock back,
if it is this pod's. A node's pods come one after the other, those of different nodes at the same
time. Nothing runs for a node that nobody is bound to.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Object
from hami_mock.cluster.resources import PODS
from hami_mock.errors import ClusterError, HamiMockError, NotThere
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.left_locks import LeftLocks
from hami_mock.fleet.member import Member
from hami_mock.fleet.nodes import node_of, state_with, with_slots_only
from hami_mock.fleet.paid import Paid
from hami_mock.hami.assignment import BIND_PHASE, BindPhase
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.text import cut
from hami_mock.node.fault import Call
from hami_mock.node.fault_kinds import DOWN
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings
from hami_mock.views.call_faults import held_up
from hami_mock.views.deviceplugin.counters import Histogram
from hami_mock.views.hami.answer import Answer, answer_all, says_phase, vendors_of
from hami_mock.views.hami.handover import Handover, explain
from hami_mock.views.hami.waiting import WaitingPod, waits

MOST_AT_ONCE = 1000
"""Nodes that pods are bound on at the same time: most of them wait for a fault to end."""
_SECONDS = 60.0
"""For all that is written for a pod. The scheduler takes the lock away after five minutes."""
_REFUSED = "UnexpectedAdmissionError"
"""What the kubelet says of a pod whose devices it couldn't get."""

_log = logging.getLogger(__name__)


class _NotWaitingError(HamiMockError):
    """The pod has its devices already, or is gone: there is nothing to do for it."""


@dataclass
class _Bind(Handover):
    """A pod that is known: the watch has told of it."""

    shared: Callable[[str], tuple[str, ...]]
    """What the node's other pods have in an annotation."""
    left: LeftLocks
    is_read: bool = field(default=True, kw_only=True)
    cleanup_seconds: ClassVar[float] = 30.0
    """Longer than on a node of its own: there are others whose writes come first."""

    async def look(self) -> Answer:
        assert self.pod is not None
        if not self.is_read:
            self.pod = await self._read(self.pod)
        self.is_read = False
        vendors = vendors_of(self.state)
        annotation = next((v.scheduling.shared for v in vendors if v.scheduling.shared), "")
        pod = replace(self.pod, shared=self.shared(annotation)) if annotation else self.pod
        return answer_all(pod, self.state)

    async def _read(self, pod: WaitingPod) -> WaitingPod:
        thing = await self.kubernetes.pod(pod.namespace, pod.name)
        is_same = thing["metadata"]["uid"] == pod.uid
        if not (is_same and waits(thing, self.state.node.name) and _is_allocating(thing)):
            raise _NotWaitingError
        return WaitingPod.of(thing)

    async def release(self) -> None:
        """Give back the lock as the watch has told of it; else look at the node first."""
        assert self.pod is not None
        try:
            with anyio.move_on_after(self.cleanup_seconds, shield=True):
                if await self.left.give_back(self.state.node.name, self.pod):
                    return
        except ClusterError as error:
            _log.debug("the lock has changed since it was read: %s", error)
        await super().release()

    def says_phase(self) -> bool:
        pod = self.pod
        return any(says_phase(each, pod.annotations) for each in vendors_of(self.state) if pod)


class Binder:
    """Binds what HAMi's scheduler has bound to nodes of the fleet."""

    name = "binding"

    def __init__(
        self, fleet: Fleet, kubernetes: Paid, clock: Callable[[], float] = anyio.current_time
    ) -> None:
        self._fleet = fleet
        self._kubernetes = kubernetes
        self._clock = clock
        self._waiting: dict[str, dict[str, tuple[float, WaitingPod]]] = {}
        """By node and UID, in the order in which they came, with the time of that."""
        self._busy: set[str] = set()
        self._more = Broadcast()
        self._first: dict[str, tuple[Settings, Node]] = {}
        """A node of each pool, from which the others are made."""
        self.left = LeftLocks(fleet, kubernetes, self._waiting.__contains__)
        self.bound = 0
        self.failed = 0
        self.seconds = Histogram()
        """From when a pod was seen to be bound until its lock was given back."""

    def status(self) -> dict[str, Any]:
        waiting = sum(map(len, self._waiting.values()))
        return {
            "bound": self.bound,
            "failed": self.failed,
            "waiting": waiting,
            "seconds": round(self.seconds.total / self.seconds.number, 4) if self.bound else 0.0,
            "locks_left": self.left.removed,
        }

    def see(self, member: Member, thing: Object, is_gone: bool) -> None:
        """Look at a pod of a node; one that waits for its devices gets them soon."""
        name, uid = member.name, thing["metadata"]["uid"]
        if not is_gone and waits(thing, name) and _is_allocating(thing):
            pods = self._waiting.setdefault(name, {})
            since, _ = pods.get(uid, (self._clock(), None))
            pods[uid] = since, WaitingPod.of(thing)
            self._more.send()
        elif name in self._waiting and name not in self._busy:
            self._waiting[name].pop(uid, None)
            if not self._waiting[name]:
                del self._waiting[name]

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Bind pods until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.left.run)
            task_status.started()
            while True:
                more = self._more.next()
                free = [name for name in self._waiting if name not in self._busy]
                for name in free[: MOST_AT_ONCE - len(self._busy)]:
                    self._busy.add(name)
                    tasks.start_soon(self._serve, name)
                await more.wait()

    async def _serve(self, name: str) -> None:
        """Bind the pods of a node, one after the other."""
        try:
            while pods := self._waiting.get(name):
                uid, (since, pod) = next(iter(pods.items()))
                member = self._fleet.members.get(name)
                if member is not None:
                    await self._bind(member, pod, since)
                pods.pop(uid, None)
                if not pods:
                    del self._waiting[name]
        finally:
            self._busy.discard(name)
            self._more.send()

    async def _bind(self, member: Member, pod: WaitingPod, since: float) -> None:
        await self._fleet.changes.wait_until(lambda: not member.is_stopped)
        trouble = await self._trouble(member, pod)
        told = partial(_told, member, pod)
        attempt = _Bind(self._state(member), self._kubernetes, told, self.left, pod=pod)
        reason = trouble
        if not trouble:
            try:
                with anyio.fail_after(_SECONDS):
                    await attempt.run()
            except (NotThere, _NotWaitingError):
                await attempt.release()
                return
            except TimeoutError:
                reason = f"not bound within {_SECONDS:g} s: {attempt.trouble}"
            except HamiMockError as error:
                reason = explain(error)
            except Exception as error:
                # Also what nobody foresaw must neither leave the pod waiting nor the node locked.
                reason = f"the devices can't be given: {explain(error)}"
        if reason:
            self.failed += 1
            await attempt.give_up(f"{member.name}: {reason}")
            await self._refuse(pod, reason)
        else:
            self.bound += 1
            self.seconds.observe(self._clock() - since)
        self._fleet.changes.send()
        if attempt.leaves_lock:
            self.left.suspect(member.name)

    def _state(self, member: Member) -> NodeState:
        """Return what HAMi assigns devices of: the state of a whole node takes longer to make."""
        pool = member.pool
        settings, first = self._first.get(pool.name, (None, None))
        if settings is not pool.settings or first is None:
            first = node_of(pool, 0)
            self._first[pool.name] = pool.settings, first
        node = with_slots_only(first, member.name)
        return state_with(node, pool.settings.ignored_xids, member.faults)

    async def _trouble(self, member: Member, pod: WaitingPod) -> str:
        """Be as late as the node's faults say; return why nothing is given, "" if it is."""
        asked = {name for of in pod.spec.requests.values() for name in of}
        faults = [f for f in member.faults if f.call is Call.ALLOCATE and f.targets & asked]
        failing = await held_up(faults, lambda: member.faults, self._fleet.changes)
        if failing is None:
            failing = next((f for f in member.faults if f.kind is DOWN and f.targets & asked), None)
        return f"{', '.join(failing.targets)}: {failing.text}" if failing else ""

    async def _refuse(self, pod: WaitingPod, reason: str) -> None:
        """Let the pod fail, as the kubelet does: whoever made it may make another."""
        why = {"phase": "Failed", "reason": _REFUSED, "message": cut(reason)}
        try:
            await self._kubernetes.patch(PODS, pod.name, {"status": why}, pod.namespace, "status")
        except ClusterError as error:
            _log.warning("can't mark pod %s as failed: %s", pod, cut(str(error)))


def _is_allocating(thing: Mapping[str, Any]) -> bool:
    return bool(thing["metadata"]["annotations"].get(BIND_PHASE) == BindPhase.ALLOCATING)


def _told(member: Member, pod: WaitingPod, annotation: str) -> tuple[str, ...]:
    others = (each for each in (member.pods or {}).values() if each.uid != pod.uid)
    return tuple(other.annotations.get(annotation, "") for other in others)
