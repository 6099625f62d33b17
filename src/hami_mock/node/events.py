"""What has happened: each change of state is an event, logged, counted and kept for a while."""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.text import cut
from hami_mock.node.event_kinds import WARNINGS, Kind

_log = logging.getLogger(__name__)

_KEPT = 1000
"""How many events are kept for `ctl events`; the counters count all of them."""
_LONGEST_MESSAGE = 1000


@dataclass(frozen=True)
class Event:
    """One thing that happened. `subject` is a card (nvidia/0), a resource, a file, or empty."""

    number: int
    time: float
    kind: Kind
    subject: str
    message: str

    @property
    def is_warning(self) -> bool:
        return self.kind in WARNINGS


class EventLog:
    """The latest events, and how many there were of each kind."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.counts: Counter[Kind] = Counter()
        self._clock = clock
        self._recent: deque[Event] = deque(maxlen=_KEPT)
        self.more = Broadcast()
        """Told after each event."""

    def add(self, kind: Kind, subject: str, message: str) -> None:
        """Log, count and keep an event; whatever its texts are, it is one printable line."""
        subject, message = cut(subject), cut(message, _LONGEST_MESSAGE)
        event = Event(self.counts.total() + 1, self._clock(), kind, subject, message)
        self.counts[kind] += 1
        self._recent.append(event)
        level = logging.WARNING if event.is_warning else logging.INFO
        _log.log(level, "%s: %s%s", kind, subject and f"{subject}: ", message)
        self.more.send()

    def after(self, number: int) -> list[Event]:
        return [event for event in self._recent if event.number > number]

    async def wait_after(self, number: int) -> list[Event]:
        """Return the same, but wait until there is one."""
        await self.more.wait_until(lambda: bool(self.after(number)))
        return self.after(number)
