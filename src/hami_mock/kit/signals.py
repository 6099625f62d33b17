"""Signals as an iterator, whose end leaves no gap for a second Ctrl-C."""

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import anyio


@contextmanager
def received(*numbers: signal.Signals) -> Iterator[AsyncIterator[signal.Signals]]:
    """Receive signals; afterwards they do what they did before.

    asyncio would leave SIGINT with Python's own handler, whose traceback a second Ctrl-C would show
    while the program ends. It is blocked until that is put right.
    """
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        with anyio.open_signal_receiver(*numbers) as signals:
            try:
                yield signals
            finally:
                signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
