"""Coverage as a guide: an input that reaches a line of ours by a new way is worth keeping.

Tracing makes Python several times slower, so only one input of a few is traced.
"""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

_T = TypeVar("_T")


class Guide:
    """The ways between lines that the inputs of one target have taken so far."""

    def __init__(self) -> None:
        self._seen: set[tuple[CodeType, int, int]] = set()

    @property
    def ways(self) -> int:
        return len(self._seen)

    def follow(self, call: Callable[[], _T]) -> tuple[_T, bool]:
        """Make a call; return what it returned, and whether it took a new way."""
        before = len(self._seen)
        sys.settrace(self._enter)
        try:
            result = call()
        finally:
            sys.settrace(None)
        return result, len(self._seen) > before

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if "/hami_mock/" not in code.co_filename:
            return None
        last, seen = 0, self._seen

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "line":
                seen.add((code, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line
