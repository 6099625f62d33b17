"""Retired devices leave the list when no pod holds them any more."""

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


async def release_retired(
    state: NodeState,
    holders: HolderReader,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Release retired devices until cancelled. Where nobody knows who holds them, they stay."""
    task_status.started()
    while True:
        await state.wait_until(lambda: state.node.retired > 0)
        asked_for = state.node
        await anyio.sleep(_SETTLE_SECONDS)
        await holders.refresh()
        if state.node is not asked_for:
            # What was retired in the meantime has its own time to settle.
            continue
        before = state.node.retired
        if (held := state.holders.ids) is not None:
            node = release(state.node, held)
            if node.retired < before:
                told = f"{before - node.retired} retired devices, {node.retired} are still held"
                state.events.add(Kind.DEVICES_RELEASED, "", told)
                state.change(node)
        if state.node.retired:
            await anyio.sleep(_AGAIN_SECONDS)
