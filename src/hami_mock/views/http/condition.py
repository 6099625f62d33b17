"""What goes wrong many times a second is told twice: when it begins, and when it is over."""

import logging
import time

_QUIET_SECONDS = 60.0
_log = logging.getLogger(__name__)


class Condition:
    """Something that strangers can bring about as often as they like."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._times = 0
        self._last = 0.0

    def occurred(self, error: Exception | None = None) -> None:
        if not self._times:
            # What the machine lacks is said in a line; a mistake of ours is to be found.
            trace = error if error and not isinstance(error, OSError) else None
            _log.warning("HTTP: %s%s", self._what, f": {error!r}" if error else "", exc_info=trace)
        self._times += 1
        self._last = time.monotonic()

    def look_whether_over(self) -> None:
        """Say that it is over, if it hasn't occurred for a minute."""
        if self._times and time.monotonic() - self._last >= _QUIET_SECONDS:
            _log.info("HTTP: over: %s (%d times)", self._what, self._times)
            self._times = 0
