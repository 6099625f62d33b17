"""Findings for people and for scripts."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hami_mock.doctor.finding import Finding, Severity
from hami_mock.kit.terminal import Style, paint, prose_width, wrap

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
    return [
        {"subject": one.subject, **asdict(finding)} | {"severity": str(finding.severity)}
        for one in examined
        for finding in one.findings
    ]


def lines(examined: Sequence[Examined]) -> Iterator[str]:
    for one in examined:
        yield paint(one.subject, Style.BOLD)
        for finding in one.findings:
            yield from _finding(finding)
        yield ""
    yield _sum([finding.severity for one in examined for finding in one.findings])


def _finding(finding: Finding) -> Iterator[str]:
    word = paint(f"{finding.severity:<9}", _STYLES[finding.severity], Style.BOLD)
    if finding.severity is Severity.OK:
        yield f"{word}{finding.where}: {finding.what}"
        return
    yield f"{word}{finding.where}"
    columns = prose_width() - 11
    for text, mark in ((finding.what, ""), (finding.advice, "→ ")):
        first, *others = wrap(text, columns)
        yield f"{_INDENT}{mark}{first}"
        yield from (f"{_INDENT}{' ' * len(mark)}{line}" for line in others)


def _sum(severities: Sequence[Severity]) -> str:
    told = [
        f"{many} {word}{'s' * (many > 1)}"
        for word in (Severity.ERROR, Severity.WARNING)
        if (many := severities.count(word))
    ]
    if not told:
        return paint("No problems found.", Style.GREEN, Style.BOLD)
    style = Style.RED if Severity.ERROR in severities else Style.YELLOW
    return paint(" and ".join(told) + " found.", style, Style.BOLD)
