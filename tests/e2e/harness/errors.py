"""What can go wrong in the harness.

HarnessError
├── CommandFailed        a program that the harness ran failed: its output is in the message
├── DaemonDied           a daemon of the cluster ended by itself: see its log in the message
├── NotReachedInTime     a bounded wait ran out: the last state seen is in the message
└── RequirementsMissing  the machine lacks something: each sentence says how to get it
"""

from __future__ import annotations

from collections.abc import Sequence


class HarnessError(Exception):
    """Base of every error that the harness raises on purpose."""


class CommandFailed(HarnessError):
    def __init__(self, argv: Sequence[str], code: int, output: str) -> None:
        self.argv = tuple(argv)
        self.code = code
        self.output = output
        super().__init__(f"{' '.join(argv)} ended with {code}:\n{last_lines(output)}")


class DaemonDied(HarnessError):
    def __init__(self, name: str, code: int, log: str) -> None:
        super().__init__(f"{name} ended by itself with {code}; the end of its log:\n{log}")


class NotReachedInTime(HarnessError):
    def __init__(self, what: str, seconds: float, last_state: str) -> None:
        super().__init__(f"{what}: not reached in {seconds:.0f} s; last seen: {last_state}")


class RequirementsMissing(HarnessError):
    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = tuple(sentences)
        super().__init__("; ".join(sentences))


def last_lines(text: str, count: int = 30) -> str:
    return "\n".join(text.rstrip().splitlines()[-count:])
