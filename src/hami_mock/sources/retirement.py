"""Retired devices leave the list when no pod holds them any more."""

from collections.abc import Set

import anyio
from anyio.abc import TaskStatus

from hami_mock.node.event_kinds import Kind
from hami_mock.node.sizing import release
from hami_mock.node.state import NodeState
from hami_mock.sources.holders import HolderReader

_SETTLE_SECONDS = 2.0
"""What the kubelet gets to read that devices are unhealthy, before it is asked who holds them: a
pod that it was just giving one to must be seen."""
_AGAIN_SECONDS = 10.0
"""There is no event for the end of a pod; while devices are retired, the kubelet is asked so
often."""


class Retirement:
    """Releases retired devices. Where nobody knows who holds them, they stay."""

    def __init__(self, state: NodeState, holders: HolderReader) -> None:
        self._state = state
        self._holders = holders

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Release them until cancelled."""
        task_status.started()
        state = self._state
        while True:
            await state.wait_until(lambda: state.node.retired > 0)
            asked_for = state.node
            await anyio.sleep(_SETTLE_SECONDS)
            await self._holders.refresh()
            if state.node is not asked_for:
                # What was retired in the meantime has its own time to settle.
                continue
            if (held := state.holders.ids) is not None:
                self._release(held)
            if state.node.retired:
                await anyio.sleep(_AGAIN_SECONDS)

    def _release(self, held: Set[str]) -> None:
        before, node = self._state.node.retired, release(self._state.node, held)
        if node.retired < before:
            told = f"{before - node.retired} retired devices, {node.retired} are still held"
            self._state.events.add(Kind.DEVICES_RELEASED, "", told)
            self._state.change(node)
