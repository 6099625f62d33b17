"""The kubelet's Allocate, answered with what HAMi's scheduler assigned.

What becomes of a pod if the agent dies on the way (the kubelet doesn't ask twice: the pod fails its
admission, and its controller makes another):

- before the pod's patch: nothing is written, and the node's lock stands.
- between the pod's patch and the lock's removal: the pod says "success", and the lock stands.
- after both, before the kubelet has the answer: the pod says "success" and fails all the same; the
  scheduler counts it no more as soon as it has failed.

A lock that stands stops all pods for the node until it expires, or until its pod is deleted. So the
next agent looks at once whether the lock's pod can still come, and else removes it.

A kubelet that restarts between an answer and the admission asks again for devices that are taken
from the annotation already; that pod fails too, as with HAMi's own plugins.
"""

import logging
from collections.abc import Collection, Sequence, Sized

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes, Object, annotations_of
from hami_mock.errors import HamiMockError, NotAssigned
from hami_mock.hami.assignment import BIND_PHASE, BindPhase
from hami_mock.hami.kinds import HAMI_LOCK
from hami_mock.hami.lock import NodeLock
from hami_mock.kit.text import cut
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.views.deviceplugin.allocation import Allotted
from hami_mock.views.hami import locks
from hami_mock.views.hami.attempt import CLEANUP_SECONDS, Attempt, explain
from hami_mock.views.hami.waiting import takes_part

_LOOK_AGAIN_SECONDS = 5.0
_PREFERENCE_SECONDS = 1.0
"""The kubelet admits no other pod while it waits, and slots of another card do no harm."""

_log = logging.getLogger(__name__)


class Allocator:
    """Hands out assigned devices, to one pod at a time on the whole node."""

    def __init__(self, state: NodeState, kubernetes: Kubernetes, seconds: float = 10.0) -> None:
        self._state = state
        self._kubernetes = kubernetes
        self._seconds = seconds
        self._one_at_a_time = anyio.Lock()
        self._failed = anyio.Event()
        self._told: set[str] = set()

    def handles(self, resource: Resource) -> bool:
        return takes_part(resource)

    async def assign(self, resource: Resource, requests: Sequence[Sequence[str]]) -> list[Allotted]:
        """Return what each container gets that the kubelet asks devices for.

        Raises NotAssigned, and then the pod's bind phase is "failed" and the lock is given back.
        """
        attempt = self._attempt(resource, requests)
        if not attempt.sizes:
            return [Allotted({}) for _ in requests]
        async with self._one_at_a_time:
            try:
                with anyio.fail_after(self._seconds):
                    answers = iter(await attempt.run())
                    return [
                        next(answers) if device_ids else Allotted({}) for device_ids in requests
                    ]
            except TimeoutError:
                trouble = attempt.trouble
                reason = f"{resource.name}: not assigned within {self._seconds:g} s: {trouble}"
            except HamiMockError as error:
                reason = explain(error)
            except Exception as error:
                # Also what nobody foresaw must neither leave the pod waiting nor the node locked.
                reason = f"{resource.name}: the devices can't be given: {explain(error)}"
            await attempt.give_up(reason)
        self._failed.set()
        raise NotAssigned(reason)

    async def cards_for(self, resource: Resource, sizes: Sequence[int]) -> list[Collection[str]]:
        """Return the UUIDs of the cards that HAMi has assigned to the pod that is being bound.

        The kubelet asks before it allocates; without an answer its slots may be on any card.
        """
        found: list[Collection[str]] = []
        with anyio.move_on_after(_PREFERENCE_SECONDS):
            try:
                found = await self._attempt(resource, [*map(range, sizes)]).cards()
            except Exception as error:
                # The Allocate that follows says it louder, if it is still so.
                _log.debug("%s: any slots are preferred: %s", resource.name, explain(error))
        return [*found, *[()] * (len(sizes) - len(found))]

    async def refuse(
        self, resource: Resource, requests: Sequence[Sequence[str]], reason: str
    ) -> None:
        """Fail the pod that the kubelet asks for, because it won't get its devices."""
        attempt = self._attempt(resource, requests)
        if not attempt.sizes:
            return
        async with self._one_at_a_time:
            with anyio.move_on_after(CLEANUP_SECONDS):
                try:
                    await attempt.find()
                except Exception as error:
                    _log.warning("can't find the pod to fail: %s", explain(error))
            await attempt.give_up(cut(reason))

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Remove locks that were left behind, by an agent before this one or after a failure.

        Look at the start, and whenever devices could not be given.
        """
        task_status.started()
        while True:
            await self.clear_lock()
            await self._failed.wait()
            self._failed = anyio.Event()

    async def clear_lock(self) -> None:
        """Look at the lock that stands now until it is gone: its pod may take a moment to fail."""
        first: NodeLock | None = None
        while True:
            pause = _LOOK_AGAIN_SECONDS
            try:
                async with self._one_at_a_time:
                    lock = await self._standing_lock()
            except Exception as error:
                why = explain(error)
                _log.warning("can't check for a lock that was left behind: %s", why)
                pause = max(pause, getattr(error, "retry_after", 0.0))
            else:
                first = first or lock
                if lock is None or lock != first:
                    return
            await anyio.sleep(pause)

    def _attempt(self, resource: Resource, requests: Sequence[Sized]) -> Attempt:
        assert resource.hami is not None, "the caller asks `handles` first"
        sizes = [len(device_ids) for device_ids in requests if len(device_ids)]
        return Attempt(self._state, self._kubernetes, resource, resource.hami, sizes, self._told)

    async def _standing_lock(self) -> NodeLock | None:
        """Return the lock of a pod that may still come; that of one that can't is removed."""
        name = self._state.node.name
        node = await self._kubernetes.node(name)
        lock = locks.read_lock(annotations_of(node).get(HAMI_LOCK.annotation))
        if lock is None or not lock.names_pod:
            return None
        pod = await locks.pod_of(self._kubernetes, lock)
        if pod is not None and not _is_over(pod):
            return lock
        _log.warning("the lock of pod %s/%s was left behind", lock.namespace, lock.name)
        with anyio.move_on_after(CLEANUP_SECONDS):
            await locks.release(self._kubernetes, name, [HAMI_LOCK], lock.namespace, lock.name)
        return None


def _is_over(pod: Object) -> bool:
    ended = pod.get("status", {}).get("phase") in ("Failed", "Succeeded")
    decided = annotations_of(pod).get(BIND_PHASE) in (BindPhase.SUCCESS, BindPhase.FAILED)
    return ended or decided
