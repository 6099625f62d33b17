"""Keeps the node's annotations as HAMi's scheduler should see them."""

import logging
import math
import time
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes, Object, annotations_of
from hami_mock.errors import ClusterError, HamiMockError
from hami_mock.hami import handshake
from hami_mock.hami.errors import Malformed
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import Backoff, first_of
from hami_mock.kit.text import cut
from hami_mock.node.state import NodeState
from hami_mock.views.hami.registration import (
    Difference,
    Registration,
    difference,
    registration,
)

_WITHDRAWAL_SECONDS = 2.0
_QUIET_SECONDS = 60.0
"""When nobody else has changed our annotations for so long, the dispute is over."""

_log = logging.getLogger(__name__)


class Registrar:
    """Writes the cards of the node, and the reports that its plugins live.

    It writes only what differs from what the node shows, in one patch. Between two reports of an
    idle node it writes nothing.
    """

    name = "hami"

    def __init__(self, state: NodeState, kubernetes: Kubernetes, *, keep: bool = False) -> None:
        self._state = state
        self._kubernetes = kubernetes
        self._keep = keep
        self._node: Object | None = None
        self._node_changes = Broadcast()
        self._ours: set[str] = set()
        self._error: str | None = "the node hasn't been read from the API server yet"
        self._failing_since = time.monotonic()
        self._written: Registration | None = None
        self._reported: float | None = None
        self._corrected = -math.inf
        self._after_failure = Backoff(first=0.5)
        self._after_correction = Backoff(first=0.5)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the annotations until cancelled; then remove them, unless they should be kept."""
        task_status.started()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow_node)
                while True:
                    await self._keep_up()
        finally:
            if not self._keep:
                await self._withdraw()

    def status(self) -> dict[str, Any]:
        """Return the annotations that are ours, and why they aren't as they should be."""
        return {"annotations": sorted(self._ours), "error": self._error}

    @property
    def not_ready(self) -> str:
        """Why HAMi's scheduler doesn't see the node as it is, and for how long; "" if it does."""
        if self._error is None:
            return ""
        seconds = time.monotonic() - self._failing_since
        return f"HAMi's annotations can't be written for {seconds:.0f} s: {self._error}"

    async def _follow_node(self) -> None:
        async with aclosing(self._kubernetes.watch_node(self._state.node.name)) as nodes:
            async for node in nodes:
                self._look_at(node)

    def _look_at(self, node: Object) -> None:
        """Take over what a node shows, unless something newer of it was seen.

        What the watch tells may be older than the answer to our own patch.
        """
        if self._node is None or _version(node) >= _version(self._node):
            self._node = node
            self._node_changes.send()

    async def _keep_up(self) -> None:
        state_changed = self._state.changes.next()
        try:
            wanted = registration(self._state)
        except Malformed as error:
            self._fail(error)
            await state_changed.wait()
            return
        self._ours |= wanted.annotations.keys()
        self._ours |= {key for key, style in wanted.handshakes.items() if style}
        if self._node is not None:
            now, shown = datetime.now().astimezone(), annotations_of(self._node)
            found = difference(wanted, shown, self._ours, now, self._since_report())
            if found.annotations:
                with anyio.move_on_after(await self._write(found, wanted)):
                    await state_changed.wait()
                return
            self._error = None
        node_changed = self._node_changes.next()
        with anyio.move_on_after(self._until_report(wanted)):
            await first_of(node_changed.wait, state_changed.wait)

    async def _write(self, found: Difference, wanted: Registration) -> float:
        """Patch the node; return for how long it shouldn't be patched again."""
        is_correction = wanted == self._written and self._until_report(wanted) > 0
        try:
            node = await self._kubernetes.patch_node_annotations(
                self._state.node.name, found.annotations
            )
        except ClusterError as error:
            self._fail(error)
            return self._after_failure.next(error.retry_after)
        self._after_failure.reset()
        self._written, self._error = wanted, None
        # Once removed they are the scheduler's: it writes handshakes on nodes without cards too.
        self._ours -= {key for key, value in found.annotations.items() if value is None}
        if found.has_report:
            self._reported = anyio.current_time()
        self._look_at(node)
        return self._pause_in_dispute(found) if is_correction else 0.0

    def _fail(self, error: HamiMockError) -> None:
        if self._error is None:
            self._failing_since = time.monotonic()
        self._error = cut(str(error))
        _log.warning("HAMi's view of the node is out of date: %s", self._error)

    def _pause_in_dispute(self, found: Difference) -> float:
        """Return how long to leave it at that: who changes our annotations may do it again."""
        now = anyio.current_time()
        if now - self._corrected > _QUIET_SECONDS:
            self._after_correction.reset()
        self._corrected = now
        names = ", ".join(found.annotations)
        _log.warning("somebody else changed or removed annotations of this node: %s", names)
        return self._after_correction.next()

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

    async def _withdraw(self) -> None:
        """Remove what is ours, if that can be done soon: nobody waits for it longer."""
        if self._node is None or not self._ours:
            return
        # All of them, whatever the node showed last: the end may have come amid a write.
        going = dict.fromkeys(self._ours)
        with anyio.move_on_after(_WITHDRAWAL_SECONDS, shield=True) as scope:
            try:
                await self._kubernetes.patch_node_annotations(self._state.node.name, going)
            except ClusterError as error:
                _log.warning("HAMi's annotations stay on the node: %s", cut(str(error)))
        if scope.cancelled_caught:
            _log.warning("HAMi's annotations stay on the node: no answer from the API server")


def _version(node: Object) -> int:
    """Return an object's version as a number; the API server's are, and grow."""
    text = node["metadata"]["resourceVersion"]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 40 else 0
