"""What an examination finds."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from hami_mock.kit.text import cut

_LONGEST = 2000


class Severity(StrEnum):
    """How bad it is: pods don't run, may not run as meant, good to know, nothing is wrong."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    OK = "ok"


@dataclass(frozen=True)
class Finding:
    """One thing that was found: where, what it is, and what to do about it.

    Each is one line of bounded length, whatever the object has in it.
    """

    severity: Severity
    where: str
    what: str
    advice: str = ""

    def __post_init__(self) -> None:
        for name in ("where", "what", "advice"):
            object.__setattr__(self, name, cut(getattr(self, name), _LONGEST))


error = partial(Finding, Severity.ERROR)
warning = partial(Finding, Severity.WARNING)
note = partial(Finding, Severity.NOTE)


def has_errors(findings: Iterable[Finding]) -> bool:
    return any(finding.severity is Severity.ERROR for finding in findings)
