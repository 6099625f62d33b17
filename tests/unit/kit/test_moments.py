import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from hami_mock.kit import moments

NOW = datetime.fromisoformat("2026-11-16T12:00:00+01:00").timestamp()


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2m", "2026-11-16T11:58:00+01:00"),
        ("1h30m", "2026-11-16T10:30:00+01:00"),
        ("10:00", "2026-11-16T10:00:00+01:00"),
        ("10:00:30", "2026-11-16T10:00:30+01:00"),
        ("23:50", "2026-11-15T23:50:00+01:00"),
        ("10:00Z", "2026-11-16T11:00:00+01:00"),
        ("2026-11-16", "2026-11-16T00:00:00+01:00"),
        ("2026-07-16 10:00", "2026-07-16T10:00:00+02:00"),
        ("2026-11-16T10:00:00Z", "2026-11-16T11:00:00+01:00"),
        ("2026-11-16T10:00:00.500+01:00", "2026-11-16T10:00:00.500+01:00"),
    ],
)
def test_times_are_read_as_people_write_them(text: str, meant: str) -> None:
    assert moments.parse(text, NOW) == datetime.fromisoformat(meant).timestamp()


@pytest.mark.parametrize("text", ["", "soon", "25:00", "2026-13-01", "2x", "10:"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        moments.parse(text, NOW)


def test_what_is_shown_can_be_read() -> None:
    assert moments.show(NOW + 0.9) == "2026-11-16 12:00:00"
    assert moments.parse(moments.show(NOW), NOW) == NOW
