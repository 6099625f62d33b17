"""Bounded waiting for a state that only polling can show."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from .errors import CommandFailed, NotReachedInTime

State = TypeVar("State")

INTERVAL_S = 0.2
SHOWN_CHARACTERS = 3000


def wait_for(
    what: str,
    look: Callable[[], State],
    good: Callable[[State], bool],
    *,
    timeout: float,
    interval: float = INTERVAL_S,
    show: Callable[[State], object] | None = None,
) -> State:
    """Look until `good` holds and return what was seen then.

    A look that fails (CommandFailed, OSError) is a state like any other: the API server may be
    on its way up. Raises NotReachedInTime with the last state, as `show` tells it.
    """
    deadline = time.monotonic() + timeout
    while True:
        last: object
        try:
            state = look()
        except (CommandFailed, OSError) as error:
            last = error
        else:
            if good(state):
                return state
            last = show(state) if show else state
        if time.monotonic() >= deadline:
            raise NotReachedInTime(what, timeout, str(last)[-SHOWN_CHARACTERS:])
        time.sleep(interval)
