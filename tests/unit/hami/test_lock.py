from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.hami.errors import Malformed
from hami_mock.hami.lock import NodeLock
from tests.makers import CAMBRICON

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
NAMES = st.from_regex("[a-z0-9]([-.a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(datetime(1970, 1, 2), datetime(2999, 1, 1), timezones=zones).map(
    lambda time: time.replace(microsecond=0)
)


@given(times, NAMES, NAMES)
def test_what_is_written_is_read_the_same(time: datetime, namespace: str, name: str) -> None:
    lock = NodeLock(time, namespace, name)
    assert NodeLock.parse(lock.encode()) == lock
    assert NodeLock.parse(NodeLock(time).encode()) == NodeLock(time)


def test_the_lock_of_the_real_scheduler() -> None:
    text = "2026-11-15T12:00:00Z,default,p1"
    assert NodeLock.parse(text) == NodeLock(NOON, "default", "p1")
    assert NodeLock(NOON, "default", "p1").encode() == text


@pytest.mark.parametrize(
    "text",
    ["2026-11-15T12:00:00Z", "2026-11-15T20:00:00+08:00", "2026-11-15T12:00:00.000000001Z"],
)
def test_an_old_lock_is_a_time(text: str) -> None:
    lock = NodeLock.parse(text)
    assert lock.time == NOON
    assert not lock.names_pod
    assert lock.encode() == "2026-11-15T12:00:00Z"


def test_another_zone_stays_in_what_is_written() -> None:
    local = NOON.astimezone(timezone(timedelta(hours=8)))
    assert NodeLock(local, "a", "b").encode() == "2026-11-15T20:00:00+08:00,a,b"


def test_a_lock_expires_after_five_minutes() -> None:
    lock = NodeLock(NOON, "default", "p1")
    assert not lock.expired(NOON + timedelta(minutes=5))
    assert lock.expired(NOON + timedelta(minutes=5, seconds=1))


def test_cambricons_lock_expires_after_two() -> None:
    kind = CAMBRICON.hami.lock
    assert kind is not None
    assert kind.annotation == "cambricon.com/dsmlu.lock"
    lock = NodeLock(NOON)
    assert not lock.expired(NOON + timedelta(minutes=2), kind.lifetime)
    assert lock.expired(NOON + timedelta(minutes=2, seconds=1), kind.lifetime)


def test_a_lock_is_of_its_pod_or_of_anybody() -> None:
    lock = NodeLock(NOON, "default", "p1")
    assert lock.is_of("default", "p1")
    assert not lock.is_of("other", "p1")
    assert not lock.is_of("default", "p2")
    assert NodeLock(NOON).is_of("default", "p2")


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15T12:00:00Z,default",
        "2026-11-15T12:00:00Z,default,p1,more",
        "",
        "now,default,p1",
        "2026-11-15",
        "2026-11-15T12:00:00",
        "2026-11-15 12:00:00Z",
        "20261115T120000Z",
        "2026-02-30T12:00:00Z",
        "0001-01-01T00:00:00+08:00",  # before the first time that Python knows
        "٢٠٢٦-11-15T12:00:00Z",
    ],
)
def test_a_malformed_lock_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match=r"must be (like 2026-11-15T23:25:11Z|a time, or a time)"):
        NodeLock.parse(text)
