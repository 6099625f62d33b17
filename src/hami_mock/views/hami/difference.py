"""What has to be written on a node, so that it shows what it should. Pure."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from hami_mock.hami.handshake import Handshake, HandshakeState, report_due
from hami_mock.hami.kinds import ReportStyle
from hami_mock.views.hami.registration import Registration


@dataclass(frozen=True)
class Difference:
    """Annotations to set, or to remove where they are None; and whether a report is among them."""

    annotations: dict[str, str | None]
    has_report: bool


def difference(
    wanted: Registration,
    shown: Mapping[str, str],
    ours: Set[str],
    now: datetime,
    since_report: timedelta | None,
) -> Difference:
    """Compare what a node should show with what it shows.

    `ours` are the annotations that were wanted before: those that aren't any more are removed.
    """
    cards: dict[str, str | None] = {
        key: value for key, value in wanted.annotations.items() if shown.get(key) != value
    }
    here = wanted.annotations.keys() | wanted.handshakes.keys()
    gone = dict.fromkeys(key for key in ours - here if key in shown)
    styles = {key: style for key, style in wanted.handshakes.items() if style}
    # All vendors report when one has to, so that it is one write and not many. The scheduler reads
    # changed cards only after a report, so a change is one.
    due = bool(cards) or any(
        key not in shown or report_due(Handshake.parse(shown[key]), since_report) for key in styles
    )
    reports = {key: style.write(now) for key, style in styles.items()} if due else {}
    # What vendors that don't report must say to a scheduler that has given them up.
    answers = {
        key: ReportStyle.GO.write(now)
        for key, style in wanted.handshakes.items()
        if style is None
        and (handshake := Handshake.parse(shown.get(key, "")))
        and handshake.state is HandshakeState.DELETED
    }
    return Difference({**cards, **gone, **reports, **answers}, bool(reports))
