"""The kubelet's Allocate, answered with what HAMi's scheduler assigned.

What becomes of a pod if the agent dies on the way (the kubelet doesn't ask twice: the pod fails its
admission, and its controller makes another):

- before the pod's patch: nothing is written, and the node's lock stands.
- between the pod's patch and the lock's removal: the pod says "success", and the lock stands.
- after both, before the kubelet has the answer: the pod says "success" and fails all the same; the
  scheduler counts it no more as soon as it has failed.

A lock that stands stops all pods for the node until it expires, or until its pod is deleted. So the
next agent looks at once whether the lock's pod can still come (`left_behind`).

A kubelet that restarts between an answer and the admission asks again for devices that are taken
from the annotation already; that pod fails too, as with HAMi's own plugins.
"""

import logging
from collections.abc import Collection, Sequence, Sized

import anyio

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import ClusterError, HamiMockError, NotAssigned
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.text import cut
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.views.allotted import Allotted
from hami_mock.views.hami.attempt import Attempt
from hami_mock.views.hami.handover import CLEANUP_SECONDS, explain
from hami_mock.views.hami.waiting import takes_part

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
        self._told: set[str] = set()
        self.troubles = Broadcast()
        """Told after an Allocate that may have left the node locked."""

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
                    if attempt.leaves_lock:
                        self.troubles.send()
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
        self.troubles.send()
        raise NotAssigned(reason)

    async def cards_for(self, resource: Resource, sizes: Sequence[int]) -> list[Collection[str]]:
        """Return the UUIDs of the cards that the pod that is being bound should have slots of.

        The kubelet asks before it allocates; without an answer its slots may be on any card. If the
        API server doesn't say in time which pod it is, it is the one that has been seen to wait.
        """
        attempt = self._attempt(resource, [*map(range, sizes)])
        found: list[Collection[str]] = []
        try:
            with anyio.move_on_after(_PREFERENCE_SECONDS) as asking:
                try:
                    await attempt.find()
                except ClusterError as error:
                    # The Allocate that follows says it louder, if it is still so.
                    _log.debug("%s: can't ask for the pod: %s", resource.name, explain(error))
                    attempt.recall()
            if asking.cancelled_caught:
                attempt.recall()
            found = attempt.cards()
        except Exception as error:
            _log.debug("%s: any slots will do: %s", resource.name, explain(error))
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
                    _log.warning("can't find the pod to mark as failed: %s", explain(error))
            await attempt.give_up(cut(reason))
        self.troubles.send()

    def _attempt(self, resource: Resource, requests: Sequence[Sized]) -> Attempt:
        assert resource.hami is not None, "the caller asks `handles` first"
        sizes = [len(device_ids) for device_ids in requests if len(device_ids)]
        return Attempt(self._state, self._kubernetes, resource, resource.hami, sizes, self._told)
