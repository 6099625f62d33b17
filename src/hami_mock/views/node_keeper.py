"""The node at the API server: what it shows, and patches that don't end in a quarrel."""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import NamedTuple

import anyio

from hami_mock.cluster.kubernetes import Kubernetes, Metadata, Object, revision
from hami_mock.errors import ClusterError, Conflict, HamiMockError
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import Backoff
from hami_mock.kit.text import cut

_WITHDRAWAL_SECONDS = 2.0
_QUIET_SECONDS = 60.0
"""When nobody else has changed what is ours for so long, the dispute is over."""

_log = logging.getLogger(__name__)


class Patched(NamedTuple):
    """Whether a patch was taken, and for how long there should be no other."""

    is_done: bool
    pause: float = 0.0


class NodeKeeper:
    """Follows a node, and patches it for a view that keeps a part of it as it should be.

    `part` is what messages call that part: "HAMi's annotations".
    """

    def __init__(self, kubernetes: Kubernetes, name: str, part: str) -> None:
        self._kubernetes = kubernetes
        self._name = name
        self._part = part
        self.node: Object | None = None
        """What it showed last; None before it was read."""
        self.changes = Broadcast()
        self.error: str | None = "the node hasn't been read from the API server yet"
        self._failing_since = time.monotonic()
        self._corrected = -math.inf
        self._after_failure = Backoff(first=0.5)
        self._after_conflict = Backoff()
        self._after_correction = Backoff(first=0.5)

    async def run(self, keep_up: Callable[[], Awaitable[None]]) -> None:
        """Follow the node, and call what compares it with the state again and again."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            while True:
                await keep_up()

    async def _follow(self) -> None:
        async with aclosing(self._kubernetes.watch_node(self._name)) as nodes:
            async for node in nodes:
                self._look_at(node)

    @property
    def not_ready(self) -> str:
        """Why the part isn't as it should be, and for how long; "" if it is."""
        if self.error is None:
            return ""
        seconds = time.monotonic() - self._failing_since
        return f"{self._part} have been out of date for {seconds:.0f} s: {self.error}"

    def fail(self, error: HamiMockError) -> None:
        if self.error is None:
            self._failing_since = time.monotonic()
        self.error = cut(str(error))
        _log.warning("%s are out of date: %s", self._part, self.error)

    def is_right(self) -> None:
        """Note that the node shows what it should."""
        self.error = None

    async def patch(
        self, metadata: Metadata, corrected: Iterable[str] = (), *, as_seen: bool = False
    ) -> Patched:
        """Patch the node; a failure is told, and noted as the error.

        `corrected` are annotations or labels that somebody else had changed. With `as_seen` the
        node must still be the one that was seen: a conflict is no failure, but worth another look.
        """
        seen = self.node["metadata"]["resourceVersion"] if self.node and as_seen else None
        return await self._send(self._kubernetes.patch_node(self._name, metadata, seen), corrected)

    async def patch_status(self, patch: Object, corrected: Iterable[str] = ()) -> Patched:
        """Do the same with the node's status."""
        return await self._send(self._kubernetes.patch_node_status(self._name, patch), corrected)

    async def _send(self, patching: Awaitable[Object], corrected: Iterable[str]) -> Patched:
        try:
            node = await patching
        except Conflict as error:
            return Patched(False, self._after_conflict.next(error.retry_after))
        except ClusterError as error:
            self.fail(error)
            return Patched(False, self._after_failure.next(error.retry_after))
        self._after_failure.reset()
        self._after_conflict.reset()
        self.is_right()
        self._look_at(node)
        names = ", ".join(corrected)
        return Patched(True, self._pause_in_dispute(names) if names else 0.0)

    async def withdraw(self, metadata: Metadata) -> None:
        """Patch the node a last time, if that can be done soon: nobody waits for it longer."""
        await self._withdraw(lambda: self._kubernetes.patch_node(self._name, metadata))

    async def withdraw_status(self, patch: Object) -> bool:
        """Do the same with the node's status; return whether it was done."""
        return await self._withdraw(lambda: self._kubernetes.patch_node_status(self._name, patch))

    async def _withdraw(self, patching: Callable[[], Awaitable[Object]]) -> bool:
        with anyio.move_on_after(_WITHDRAWAL_SECONDS, shield=True):
            try:
                await patching()
            except ClusterError as error:
                _log.warning("%s stay on the node: %s", self._part, cut(str(error)))
                return False
            return True
        _log.warning("%s stay on the node: no answer from the API server", self._part)
        return False

    def _look_at(self, node: Object) -> None:
        """Take over what a node shows, unless something newer of it was seen.

        What the watch tells may be older than the answer to our own patch.
        """
        if self.node is None or revision(node) >= revision(self.node):
            self.node = node
            self.changes.send()

    def _pause_in_dispute(self, names: str) -> float:
        """Return how long to leave it at that: who changes what is ours may do it again."""
        now = anyio.current_time()
        if now - self._corrected > _QUIET_SECONDS:
            self._after_correction.reset()
        self._corrected = now
        _log.warning("somebody else changed or removed %s: %s", self._part, names)
        return self._after_correction.next()
