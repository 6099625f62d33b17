"""The node as server-sent events: a snapshot at first, then what has changed, once for everybody.

While nobody looks, nothing is done.
"""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.kit.concurrency import first_of
from hami_mock.views.http.audience import Audience
from hami_mock.views.http.messages import Stream
from hami_mock.views.page.merge_patch import difference
from hami_mock.views.page.snapshot import Shown, snapshot

_LOOK_SECONDS = 1.0
"""How often it is looked whether something has changed that nobody tells of."""
_REST_SECONDS = 0.2
"""Many changes at once are told as one; who comes within it sees what was seen last."""
_BEAT_SECONDS = 5.0
"""After so long without a change it is told that there is none."""
RETRY_MILLISECONDS = 3000
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Feed:
    """Makes a message of each change, as long as there is somebody to tell."""

    name = "page"

    def __init__(self, shown: Shown, refresh: Callable[[], Awaitable[None]]) -> None:
        self._shown = shown
        self._refresh = refresh
        """Asks the kubelet who holds what, unless it was asked a moment ago."""
        self._audience = Audience()
        self._seen: dict[str, Any] = {}
        self._seen_at = self._told_at = 0.0
        self._whole = b""
        """What was seen, as the message for who is new; made when there is one."""

    def status(self) -> dict[str, Any]:
        return {"viewers": len(self._audience)}

    def stream(self) -> Stream:
        return Stream(self._audience, self._first, headers=HEADERS)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        state = self._shown.state
        task_status.started()
        while True:
            await self._audience.wait_for_viewers()
            await self._refresh()
            # Taken before it is looked: a change in between is seen at once or next time.
            changes = (state.changes, state.load_changes, state.holders.changes)
            waits = [broadcast.next().wait for broadcast in changes]
            another_event = partial(state.events.wait_after, state.events.counts.total())
            self._tell_changes()
            await anyio.sleep(_REST_SECONDS)
            with anyio.move_on_after(_LOOK_SECONDS - _REST_SECONDS):
                await first_of(another_event, *waits)

    def _first(self) -> bytes:
        """Return what somebody new is told: what all the others have been told."""
        if not self._audience and time.monotonic() - self._seen_at >= _REST_SECONDS:
            self._see(snapshot(self._shown))
        self._whole = self._whole or message("snapshot", self._seen)
        return b"retry: %d\n%b" % (RETRY_MILLISECONDS, self._whole)

    def _see(self, seen: dict[str, Any]) -> None:
        self._seen, self._seen_at, self._whole = seen, time.monotonic(), b""

    def _tell_changes(self) -> None:
        before, now = self._seen, snapshot(self._shown)
        patch = difference(before, {**now, "time": before.get("time")})
        if not patch and time.monotonic() - self._told_at < _BEAT_SECONDS:
            return
        self._see(now)
        self._told_at = self._seen_at
        if _order(before) == _order(now):
            self._audience.send(message("change", {**patch, "time": now["time"]}))
        else:
            self._whole = message("snapshot", now)
            self._audience.send(self._whole)


def _order(seen: Mapping[str, Any]) -> list[list[str]]:
    """Return what a patch can't change: which cards and resources there are, in which order."""
    return [[*seen.get(part, ())] for part in ("cards", "resources")]


def message(event: str, data: Mapping[str, Any]) -> bytes:
    """Return a server-sent event."""
    # In ASCII there is no line break but the one at the end.
    text = json.dumps(data, separators=(",", ":"))
    return f"event: {event}\ndata: {text}\n\n".encode()
