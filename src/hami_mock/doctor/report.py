"""Findings for people."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hami_mock.doctor.finding import Finding, Severity
from hami_mock.kit.terminal import WIDEST, Style, paint, width, wrap

_INDENT = " " * 9
_STYLES = {
    Severity.ERROR: Style.RED,
    Severity.WARNING: Style.YELLOW,
    Severity.NOTE: Style.BOLD,
    Severity.OK: Style.GREEN,
}


@dataclass(frozen=True)
class Examined:
    """A node or a pod, and what was found."""

    subject: str
    findings: Sequence[Finding]


def rows(examined: Sequence[Examined]) -> list[dict[str, Any]]:
    """Return one row for each finding, for scripts."""
    return [
        {"subject": one.subject, **asdict(finding)} | {"severity": str(finding.severity)}
        for one in examined
        for finding in one.findings
    ]


def lines(examined: Sequence[Examined]) -> Iterator[str]:
    """Yield the lines of a report."""
    for one in examined:
        yield paint(one.subject, Style.BOLD)
        for finding in one.findings:
            yield from _finding(finding)
        yield ""
    yield _sum([finding for one in examined for finding in one.findings])


def _finding(finding: Finding) -> Iterator[str]:
    word = paint(f"{finding.severity:<9}", _STYLES[finding.severity], Style.BOLD)
    if finding.severity is Severity.OK:
        yield f"{word}{finding.where}: {finding.what}"
        return
    yield f"{word}{finding.where}"
    yield from _wrapped(finding.what, "")
    yield from _wrapped(finding.advice, "→ ")


def _wrapped(text: str, mark: str) -> Iterator[str]:
    columns = min(width() or WIDEST, WIDEST)
    for i, line in enumerate(wrap(text, columns - 11)):
        yield _INDENT + (mark if i == 0 else " " * len(mark)) + line


def _sum(findings: Sequence[Finding]) -> str:
    errors, warnings = (
        sum(finding.severity is severity for finding in findings)
        for severity in (Severity.ERROR, Severity.WARNING)
    )
    if not errors and not warnings:
        return paint("No problems found.", Style.GREEN, Style.BOLD)
    told = [
        f"{many} {word}{'s' * (many > 1)}"
        for many, word in ((errors, "error"), (warnings, "warning"))
        if many
    ]
    style = Style.RED if errors else Style.YELLOW
    return paint(" and ".join(told) + " found.", style, Style.BOLD)
