"""A word on stderr about what is being measured."""

import sys


def say(text: str) -> None:
    """Show progress: one line that changes in a terminal, a line each elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def clear() -> None:
    """Leave no half line behind."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
