"""Keeps the state's holders current: the one place where the kubelet is asked who holds what.

There is no event for the end of a pod. So the kubelet is asked at the start, after devices were
given, after pods have changed (where the API server tells), and again and again, more often while
somebody holds something; and by whoever must know: `ctl status`, a change of the configuration, the
release of retired devices.
"""

import math

import anyio
from anyio.abc import TaskStatus

from hami_mock.kit.concurrency import first_of
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.state import NodeState

_SETTLE_SECONDS = 1.0
"""What the kubelet gets to note its pod's devices, and to ask for those of other resources."""
_AGAIN_SECONDS = 10.0
"""After so long, a pod may have ended, or has a name, or the kubelet is there again."""
_RARELY_SECONDS = 30.0
"""Where nobody holds anything, nothing can end, and we know when something begins; but a kubelet
that has just begun may not know its pods yet."""
_RECENT_SECONDS = 0.5
_SHARE = 0.05
"""The part of the time that may go into asking: with a quarter of a million devices held, an answer
has 8 MB, and a second goes by."""


class HolderReader:
    """Asks the kubelet who holds what, and writes it into the state."""

    def __init__(self, state: NodeState, pod_resources: PodResources) -> None:
        self._state = state
        self._holders = state.holders
        self._pod_resources = pod_resources
        self._took = 0.0
        self._asked = -math.inf

    @property
    def notice(self) -> str:
        """Why nobody knows who holds what; "" if it is known."""
        problem = self._pod_resources.problem
        return problem and f"it isn't known who holds what: {problem}"

    async def refresh(self) -> None:
        self._asked = anyio.current_time()
        self._holders.name(await self._pod_resources.holders())
        self._took = anyio.current_time() - self._asked

    async def refresh_if_old(self) -> None:
        """Ask unless somebody has just done so: many may look at once, and again and again."""
        if anyio.current_time() - self._asked > max(_RECENT_SECONDS, self._took / _SHARE):
            await self.refresh()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            given, pods = self._holders.given.next(), self._state.pod_changes.next()
            await self.refresh()
            # Without plugins of ours, another one gives our cards away, and doesn't tell.
            is_quiet = self._holders.all == () and bool(self._state.resources)
            with anyio.move_on_after(_RARELY_SECONDS if is_quiet else _AGAIN_SECONDS):
                await first_of(given.wait, pods.wait)
            await anyio.sleep(max(_SETTLE_SECONDS, self._took / _SHARE))
