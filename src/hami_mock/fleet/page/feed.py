"""The fleet as server-sent events: all nodes at first, then what has changed, once for everybody.

While nobody looks, nothing is done.
"""

import time
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.snapshot import Snapshot, events_after, now
from hami_mock.kit.concurrency import first_of
from hami_mock.views.http.audience import Audience
from hami_mock.views.http.messages import Stream
from hami_mock.views.page.feed import HEADERS, RETRY_MILLISECONDS, message

_REST_SECONDS = 0.25
"""Many changes at once are told as one."""
_BEAT_SECONDS = 5.0
"""After so long without a change it is told that there is none."""
_AT_ONCE = 200
"""So many nodes are looked at before others get their turn."""


class Feed:
    """Makes a message of each change, as long as there is somebody to tell."""

    name = "page"

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._snapshot = Snapshot(fleet)
        """Its own: whoever else looks has seen other changes."""
        self._audience = Audience()
        self._event = 0
        """The newest event that was told of."""
        self._whole = b""
        """What was seen, as the message for who is new; made when there is one."""
        self._headlines: list[dict[str, Any]] = []
        self._told_at = 0.0

    def status(self) -> dict[str, Any]:
        return {"viewers": len(self._audience)}

    def stream(self) -> Stream:
        return Stream(self._audience, self._first, headers=HEADERS)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            await self._audience.wait_for_viewers()
            # Taken before it is looked: a change in between is seen at once or next time.
            changed = self._fleet.changes.next()
            await self._tell_changes()
            another_event = partial(self._fleet.events.wait_after, self._event)
            await anyio.sleep(_REST_SECONDS)
            with anyio.move_on_after(_BEAT_SECONDS - _REST_SECONDS):
                await first_of(another_event, changed.wait)

    def _first(self) -> bytes:
        """Return what somebody new is told: what all the others have been told."""
        if self._snapshot.pools:
            self._whole = self._whole or message("snapshot", self._snapshot.data())
        return b"retry: %d\n%b" % (RETRY_MILLISECONDS, self._whole)

    async def _tell_changes(self) -> None:
        is_other, rows = await self._look()
        events = events_after(self._fleet, self._event)
        before, after = self._headlines, [view.headline() for view in self._snapshot.pools]
        differing = {
            number: headline
            for number, headline in enumerate(after)
            if is_other or headline != before[number]
        }
        self._event, self._headlines = self._fleet.events.counts.total(), after
        news = {"rows": rows, "pools": differing, "events": events}
        found = {key: value for key, value in news.items() if value}
        is_due = time.monotonic() - self._told_at >= _BEAT_SECONDS
        if found or is_other:
            self._whole = b""
        elif not is_due:
            return
        self._told_at = time.monotonic()
        if is_other:
            self._whole = message("snapshot", self._snapshot.data())
            self._audience.send(self._whole)
        else:
            self._audience.send(message("change", {"time": now(), **found}))

    async def _look(self) -> tuple[bool, list[int]]:
        """Look at all nodes, some at once; return whether there are others, and changed rows."""
        is_other, rows = False, list[int]()
        for _ in range(len(self._fleet.members) // _AT_ONCE + 2):
            change = self._snapshot.look(_AT_ONCE)
            is_other |= change.is_other
            rows += change.rows
            if change.is_all:
                break
            await checkpoint()
        return is_other, rows
