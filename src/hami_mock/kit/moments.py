"""Points in time as people write them: 10:00, 2026-11-16 10:00, or 2m for two minutes ago. Pure.

What has no time zone is in the one of this machine. `moment` is always in seconds since 1970.
"""

from contextlib import suppress
from datetime import date, datetime, time

from hami_mock.kit import durations

FORM = "a time such as 2m (ago), 10:00, 2026-11-16 10:00 or 2026-11-16T10:00:00Z"
"""What `parse` takes, in words."""


def parse(text: str, now: float) -> float:
    """Return the moment that a text means. Raises ValueError for what is none."""
    with suppress(ValueError):
        return now - durations.parse(text)
    try:
        if ":" not in text[:3]:
            return datetime.fromisoformat(text).astimezone().timestamp()
        today = date.fromtimestamp(now)
        moment = datetime.combine(today, time.fromisoformat(text)).astimezone().timestamp()
    except OverflowError as error:  # in the year 1 or 9999, in some time zone
        raise ValueError("out of range") from error
    # At one in the morning, 23:50 was yesterday.
    return moment if moment <= now else moment - 24 * 3600


def show(moment: float) -> str:
    """Return a moment as people write it, to the second: 2026-11-16 10:00:05."""
    return datetime.fromtimestamp(moment).isoformat(" ", "seconds")
