"""Keeps the state's holders current: the one place where the kubelet is asked who holds what.

There is no event for the end of a pod. So the kubelet is asked after devices were given, and by
whoever needs to know: `ctl status`, a change of the configuration, the release of retired devices.
"""

import math

import anyio
from anyio.abc import TaskStatus

from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.state import NodeState

_SETTLE_SECONDS = 1.0
"""What the kubelet gets to note its pod's devices, and to ask for those of other resources."""
_AGAIN_SECONDS = 10.0
"""What it gets if a pod has no name then."""
_RECENT_SECONDS = 0.5
_SHARE = 0.05
"""The part of the time that may go into asking: with a quarter of a million devices held, an answer
has 8 MB, and a second goes by."""


class HolderReader:
    """Asks the kubelet who holds what, and writes it into the state."""

    def __init__(self, state: NodeState, pod_resources: PodResources) -> None:
        self._holders = state.holders
        self._pod_resources = pod_resources
        self._took = 0.0
        self._asked = -math.inf

    async def refresh(self) -> None:
        self._asked = anyio.current_time()
        self._holders.name(await self._pod_resources.holders())
        self._took = anyio.current_time() - self._asked

    async def refresh_if_old(self) -> None:
        """Ask unless somebody has just done so: many may look at once, and again and again."""
        if anyio.current_time() - self._asked > max(_RECENT_SECONDS, self._took / _SHARE):
            await self.refresh()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Ask after devices were given, until cancelled."""
        task_status.started()
        while True:
            await self._holders.changes.wait_until(lambda: self._holders.has_unnamed)
            await anyio.sleep(max(_SETTLE_SECONDS, self._took / _SHARE))
            await self.refresh()
            if self._holders.has_unnamed:
                await anyio.sleep(_AGAIN_SECONDS)
