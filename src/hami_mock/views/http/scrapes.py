"""Scrapes, and how many of them are worth the work."""

import time
from collections import deque
from collections.abc import Callable

from hami_mock.views.http.server import Answer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MOST_A_SECOND = 10


class Scrapes:
    """Makes the metrics anew for each scrape, but at most ten times a second.

    It takes milliseconds: a crowd that wants nothing else would leave no time for the kubelet.
    """

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._text = b""
        self._made: deque[float] = deque(maxlen=_MOST_A_SECOND)

    def answer(self) -> Answer:
        now = time.monotonic()
        if len(self._made) < _MOST_A_SECOND or now - self._made[0] >= 1:
            self._text = self._make()
            self._made.append(now)
        return Answer(self._text, content_type=CONTENT_TYPE)
