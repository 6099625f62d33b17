"""What an examination finds."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is: pods don't run, may not run as meant, good to know, nothing is wrong."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    OK = "ok"


@dataclass(frozen=True)
class Finding:
    """One thing that was found: where, what it is, and what to do about it."""

    severity: Severity
    where: str
    what: str
    advice: str = ""


def error(where: str, what: str, advice: str) -> Finding:
    """Return a finding that keeps pods from running."""
    return Finding(Severity.ERROR, where, what, advice)


def warning(where: str, what: str, advice: str) -> Finding:
    """Return a finding that may keep pods from running, or that will one day."""
    return Finding(Severity.WARNING, where, what, advice)


def note(where: str, what: str, advice: str) -> Finding:
    """Return a finding that harms nobody, but that people wonder about."""
    return Finding(Severity.NOTE, where, what, advice)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Tell whether any finding keeps pods from running."""
    return any(finding.severity is Severity.ERROR for finding in findings)
