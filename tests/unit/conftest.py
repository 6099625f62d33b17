"""What the unit tests share."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The same examples in every run: a red build says something about the change, not about luck.
settings.register_profile("unit", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("unit")


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    """Take away the handlers that `logs.set_up` leaves: their stderr ends with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
    root.setLevel(level)
