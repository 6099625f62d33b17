"""Keeps the node's annotations as HAMi's scheduler should see them."""

import math
from datetime import datetime, timedelta
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes, annotations_of
from hami_mock.hami import handshake
from hami_mock.hami.errors import Malformed
from hami_mock.kit.concurrency import first_of
from hami_mock.node.state import NodeState
from hami_mock.views.hami.registration import (
    Difference,
    Registration,
    difference,
    registration,
)
from hami_mock.views.node_keeper import NodeKeeper


class Registrar:
    """Writes the cards of the node, and the reports that its plugins live.

    It writes only what differs from what the node shows, in one patch. Between two reports of an
    idle node it writes nothing.
    """

    name = "hami"

    def __init__(self, state: NodeState, kubernetes: Kubernetes, *, keep: bool = False) -> None:
        self._state = state
        self._keeper = NodeKeeper(kubernetes, state.node.name, "HAMi's annotations")
        self._keep = keep
        self._ours: set[str] = set()
        self._written: Registration | None = None
        self._reported: float | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the annotations until cancelled; then remove them, unless they should be kept."""
        task_status.started()
        try:
            await self._keeper.run(self._keep_up)
        finally:
            if self._keeper.node is not None and self._ours and not self._keep:
                # All of them, whatever the node showed last: the end may have come amid a write.
                await self._keeper.withdraw({"annotations": dict.fromkeys(self._ours)})

    def status(self) -> dict[str, Any]:
        """Return the annotations that are ours, and why they aren't as they should be."""
        return {"annotations": sorted(self._ours), "error": self._keeper.error}

    @property
    def not_ready(self) -> str:
        """Why HAMi's scheduler doesn't see the node as it is, and for how long; "" if it does."""
        return self._keeper.not_ready

    async def _keep_up(self) -> None:
        state_changed = self._state.changes.next()
        try:
            wanted = registration(self._state)
        except Malformed as error:
            self._keeper.fail(error)
            await state_changed.wait()
            return
        self._ours |= wanted.annotations.keys()
        self._ours |= {key for key, style in wanted.handshakes.items() if style}
        node_changed = self._keeper.changes.next()
        if self._keeper.node is not None:
            now, shown = datetime.now().astimezone(), annotations_of(self._keeper.node)
            found = difference(wanted, shown, self._ours, now, self._since_report())
            if found.annotations:
                with anyio.move_on_after(await self._write(found, wanted)):
                    await state_changed.wait()
                return
            self._keeper.is_right()
        with anyio.move_on_after(self._until_report(wanted)):
            await first_of(node_changed.wait, state_changed.wait)

    async def _write(self, found: Difference, wanted: Registration) -> float:
        """Patch the node; return for how long it shouldn't be patched again."""
        is_correction = wanted == self._written and self._until_report(wanted) > 0
        corrected = found.annotations if is_correction else ()
        is_done, pause = await self._keeper.patch({"annotations": found.annotations}, corrected)
        if is_done:
            self._written = wanted
            # Once removed they are the scheduler's: it writes handshakes without cards too.
            self._ours -= {key for key, value in found.annotations.items() if value is None}
            if found.has_report:
                self._reported = anyio.current_time()
        return pause

    def _since_report(self) -> timedelta | None:
        if self._reported is None:
            return None
        return timedelta(seconds=anyio.current_time() - self._reported)

    def _until_report(self, wanted: Registration) -> float:
        """Return the seconds until the next report; there may never be one."""
        if not any(wanted.handshakes.values()):
            return math.inf
        since = self._since_report()
        return (handshake.REPORT_INTERVAL - since).total_seconds() if since is not None else 0.0
