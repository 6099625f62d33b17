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
    reports = _reports(wanted, shown, now, since_report, cards_changed=bool(cards))
    answers = _answers(wanted, shown, now)
    return Difference({**cards, **gone, **reports, **answers}, bool(reports))


def _reports(
    wanted: Registration,
    shown: Mapping[str, str],
    now: datetime,
    since_report: timedelta | None,
    *,
    cards_changed: bool,
) -> dict[str, str]:
    """Return the reports of all vendors if one is due, so that it is one write and not many.

    The scheduler reads changed cards only after a report, so a change is one.
    """
    styles = {key: style for key, style in wanted.handshakes.items() if style}
    due = cards_changed or any(
        key not in shown or report_due(Handshake.parse(shown[key]), since_report) for key in styles
    )
    return {key: style.write(now) for key, style in styles.items()} if due else {}


def _answers(wanted: Registration, shown: Mapping[str, str], now: datetime) -> dict[str, str]:
    """Return what vendors that don't report must say to a scheduler that has given them up."""
    return {
        key: ReportStyle.GO.write(now)
        for key, style in wanted.handshakes.items()
        if style is None
        and (handshake := Handshake.parse(shown.get(key, "")))
        and handshake.state is HandshakeState.DELETED
    }
