"""The handshake annotation: how the scheduler asks whether a node's plugin lives.

The scheduler writes "Requesting" and the time, the plugin "Reported" every half minute. A value
that isn't a request makes the scheduler read the register annotation anew, and ask again. A request
without an answer for a minute drops the vendor from the node, if no device is allocatable either.

"Deleted" comes from schedulers before 2.10, which then wait for a report; newer ones remove the
annotation instead.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

REPORT_INTERVAL = timedelta(seconds=30)
REQUEST_LIFETIME = timedelta(seconds=60)

# 2026-11-15 23:25:11, with dots in the date from some, and Go's fraction and zone from others.
_TIME = re.compile(
    r"[_ ](\d{4})[-.](\d\d)[-.](\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)?(?: ([+-]\d\d)(\d\d) .*)?", re.ASCII
)


class HandshakeState(StrEnum):
    """Who wrote last, and what; the value begins with it."""

    REQUESTING = "Requesting"
    REPORTED = "Reported"
    DELETED = "Deleted"


@dataclass(frozen=True)
class Handshake:
    """A value of the annotation. A time without a zone is in that of whoever wrote it."""

    state: HandshakeState
    time: datetime | None = None

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a value; None for one that means nothing to anybody."""
        for state in HandshakeState:
            if state in text:
                return cls(state, _read_time(text.partition(state)[2]))
        return None

    def age(self, now: datetime) -> timedelta | None:
        """Return how old the value is; a time without a zone is taken for one in now's."""
        if self.time is None:
            return None
        time = self.time if self.time.tzinfo else self.time.replace(tzinfo=now.tzinfo)
        return now - time

    def drops_node(self, now: datetime, allocatable: int) -> bool:
        """Tell whether the scheduler takes the vendor's cards off the node for this."""
        age = self.age(now) if self.state is HandshakeState.REQUESTING else None
        return age is not None and age >= REQUEST_LIFETIME and allocatable <= 0


def report_due(handshake: Handshake | None, since_last: timedelta | None) -> bool:
    """Tell whether the node side should report now, so long after its last report (None: never).

    By its own clock, not the request's: the scheduler's may be another. "Deleted" is answered at
    once, for until then an old scheduler doesn't look at the node.
    """
    if since_last is None or since_last >= REPORT_INTERVAL:
        return True
    return handshake is not None and handshake.state is HandshakeState.DELETED


def _read_time(text: str) -> datetime | None:
    match = _TIME.fullmatch(text)
    if not match:
        return None
    year, month, day, clock, hours, minutes = match.groups()
    zone = f"{hours}:{minutes}" if hours else ""
    try:
        return datetime.fromisoformat(f"{year}-{month}-{day}T{clock}{zone}")
    except ValueError:
        return None  # the scheduler, too, takes it for no time
