from datetime import UTC, datetime, timedelta

import pytest

from hami_mock.hami.kinds import ReportStyle
from hami_mock.views.hami.registration import Difference, Registration, difference

NOW = datetime(2026, 11, 15, 23, 25, 11, tzinfo=UTC)
WANTED = Registration({"cards": "1"}, {"shake": ReportStyle.DOTTED, "quiet": None})
SHOWN = {"cards": "1", "shake": "Requesting_2026-11-15 23:25:00", "x": "y"}
REPORT = "Reported_2026.11.15 23:25:11"
OURS = frozenset({"cards", "shake"})


def found(
    shown: dict[str, str], since: float | None = 1, wanted: Registration = WANTED
) -> Difference:
    ago = None if since is None else timedelta(seconds=since)
    return difference(wanted, shown, OURS, NOW, ago)


def test_nothing_is_written_when_nothing_changed() -> None:
    assert found(SHOWN) == Difference({}, has_report=False)


def test_changed_cards_come_with_a_report() -> None:
    assert found({**SHOWN, "cards": "0"}) == Difference({"cards": "1", "shake": REPORT}, True)


@pytest.mark.parametrize(
    ("shown", "since"),
    [
        pytest.param(SHOWN, None, id="never yet"),
        pytest.param(SHOWN, 30, id="half a minute ago"),
        pytest.param({"cards": "1"}, 1, id="vanished"),
        pytest.param({**SHOWN, "shake": "Deleted_2026.11.15 23:25:00"}, 1, id="deleted"),
    ],
)
def test_a_report_alone(shown: dict[str, str], since: float | None) -> None:
    assert found(shown, since) == Difference({"shake": REPORT}, has_report=True)


def test_a_vendor_that_does_not_report_answers_only_one_that_gave_it_up() -> None:
    assert not found({**SHOWN, "quiet": "Requesting_2026-11-15 20:00:00"}).annotations
    answer = found({**SHOWN, "quiet": "Deleted_2026.11.15 23:25:00"})
    assert answer.annotations["quiet"] == "Reported 2026-11-15 23:25:11.000000 +0000 UTC"
    assert not answer.has_report


def test_what_is_not_wanted_any_more_is_removed_and_nothing_else() -> None:
    assert found(SHOWN, wanted=Registration()) == Difference({"cards": None, "shake": None}, False)
    assert found({"x": "y"}, wanted=Registration()) == Difference({}, False)
