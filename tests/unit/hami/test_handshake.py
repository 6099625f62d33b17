from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.hami.handshake import Handshake, HandshakeState, report_due
from hami_mock.hami.kinds import ReportStyle

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
NAIVE_NOON = NOON.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("text", "state", "time"),
    [
        ("Requesting_2026-11-15 12:00:00", HandshakeState.REQUESTING, NAIVE_NOON),
        ("Requesting_2026.11.15 12:00:00", HandshakeState.REQUESTING, NAIVE_NOON),
        ("Reported_2026.11.15 12:00:00", HandshakeState.REPORTED, NAIVE_NOON),
        (
            "Reported 2026-11-15 12:00:00.434037031 +0000 UTC m=+1104711.777756895",
            HandshakeState.REPORTED,
            NOON,
        ),
        ("Reported 2026-11-15 20:00:00 +0800 CST", HandshakeState.REPORTED, NOON),
        ("Deleted_2026-11-15 12:00:00", HandshakeState.DELETED, NAIVE_NOON),
        ("Deleted", HandshakeState.DELETED, None),
        ("Requesting_", HandshakeState.REQUESTING, None),
        ("Requesting_2026-02-30 12:00:00", HandshakeState.REQUESTING, None),
        ("Requesting_2026-11-15", HandshakeState.REQUESTING, None),
    ],
)
def test_the_forms_in_use(text: str, state: HandshakeState, time: datetime | None) -> None:
    assert Handshake.parse(text) == Handshake(state, time)


@pytest.mark.parametrize("text", ["", "requesting_2026-11-15 12:00:00", "hello"])
def test_anything_else_means_nothing(text: str) -> None:
    assert Handshake.parse(text) is None


def test_a_report_is_written_as_the_vendors_plugin_writes_it() -> None:
    assert ReportStyle.DOTTED.write(NOON) == "Reported_2026.11.15 12:00:00"
    assert ReportStyle.GO.write(NOON) == "Reported 2026-11-15 12:00:00.000000 +0000 UTC"


@given(st.sampled_from(ReportStyle), st.datetimes(datetime(1970, 1, 1), datetime(2999, 1, 1)))
def test_a_report_is_read_to_the_second(style: ReportStyle, time: datetime) -> None:
    now = time.replace(tzinfo=UTC)
    handshake = Handshake.parse(style.write(now))
    assert handshake is not None
    assert handshake.state is HandshakeState.REPORTED
    assert handshake.age(now) == timedelta(microseconds=now.microsecond)


def test_a_time_without_a_zone_is_in_that_of_the_reader() -> None:
    shanghai = timezone(timedelta(hours=8))
    handshake = Handshake(HandshakeState.REQUESTING, NAIVE_NOON)
    assert handshake.age(datetime(2026, 11, 15, 12, 1, tzinfo=shanghai)) == timedelta(minutes=1)
    assert Handshake(HandshakeState.REQUESTING).age(NOON) is None


@pytest.mark.parametrize(
    ("text", "seconds", "allocatable", "dropped"),
    [
        ("Requesting_2026-11-15 12:00:00", 60, 0, True),
        ("Requesting_2026-11-15 12:00:00", 59, 0, False),
        ("Requesting_2026-11-15 12:00:00", 999, 1, False),
        ("Reported_2026.11.15 12:00:00", 999, 0, False),
        ("Requesting_", 999, 0, False),  # the scheduler can't tell how old that is
    ],
)
def test_a_request_without_answer_drops_the_node(
    text: str, seconds: int, allocatable: int, dropped: bool
) -> None:
    handshake = Handshake.parse(text)
    assert handshake is not None
    assert handshake.drops_node(NOON + timedelta(seconds=seconds), allocatable) is dropped


@pytest.mark.parametrize(
    ("text", "since_last", "due"),
    [
        ("Requesting_2026-11-15 12:00:00", None, True),
        ("Requesting_2026-11-15 12:00:00", 29, False),
        ("Requesting_2026-11-15 12:00:00", 30, True),
        ("Reported_2026.11.15 12:00:00", 29, False),
        ("Reported_2026.11.15 12:00:00", 30, True),
        ("Deleted_2026-11-15 12:00:00", 1, True),
        ("", 1, False),
        ("", None, True),
    ],
)
def test_reports_are_due_every_half_minute(text: str, since_last: int | None, due: bool) -> None:
    since = None if since_last is None else timedelta(seconds=since_last)
    assert report_due(Handshake.parse(text), since) is due
