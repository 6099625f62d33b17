import logging

import anyio
import pytest

from hami_mock.node import events
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import Event, EventLog


def test_an_event_is_numbered_timed_counted_and_kept() -> None:
    clock = iter([10.0, 20.0])
    log = EventLog(lambda: next(clock))
    log.add(Kind.XID, "nvidia/0", "Xid 13")
    log.add(Kind.CARD_FAILED, "nvidia/0", "unhealthy")
    assert log.after(0) == [
        Event(1, 10.0, Kind.XID, "nvidia/0", "Xid 13"),
        Event(2, 20.0, Kind.CARD_FAILED, "nvidia/0", "unhealthy"),
    ]
    assert log.after(1) == log.after(0)[1:]
    assert log.after(2) == []
    assert log.counts == {Kind.XID: 1, Kind.CARD_FAILED: 1}


def test_the_oldest_are_forgotten_but_still_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_KEPT", 3)
    log = EventLog()
    for number in range(5):
        log.add(Kind.XID, "nvidia/0", str(number))
    assert [(event.number, event.message) for event in log.after(0)] == [
        (3, "2"),
        (4, "3"),
        (5, "4"),
    ]
    assert log.counts.total() == 5


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        (Kind.CARD_FAILED, "WARNING"),
        (Kind.CARD_RECOVERED, "INFO"),
        (Kind.CARD_LOST, "WARNING"),
        (Kind.CARD_RETURNED, "INFO"),
        (Kind.FAULT_BEGAN, "WARNING"),
        (Kind.FAULT_ENDED, "INFO"),
        (Kind.CONFIGURATION_REJECTED, "WARNING"),
        (Kind.CONFIGURATION_CHANGED, "INFO"),
        (Kind.STREAMS_DROPPED, "WARNING"),
        (Kind.DEVICES_RELEASED, "INFO"),
    ],
)
def test_what_gets_worse_is_a_warning(
    caplog: pytest.LogCaptureFixture, kind: Kind, level: str
) -> None:
    log = EventLog()
    with caplog.at_level(logging.INFO):
        log.add(kind, "nvidia/0", "so it is")
        log.add(kind, "", "so it is")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (level, f"{kind}: nvidia/0: so it is"),
        (level, f"{kind}: so it is"),
    ]
    assert log.after(0)[0].is_warning is (level == "WARNING")


@pytest.mark.parametrize("kind", list(Kind))
def test_kinds_are_reasons_that_kubernetes_takes(kind: Kind) -> None:
    assert kind.isalpha()
    assert kind[0].isupper()


def test_who_waits_gets_what_comes_and_what_is_there() -> None:
    async def scenario() -> None:
        log = EventLog()
        got: list[list[str]] = []

        async def follow() -> None:
            seen = 0
            while seen < 3:
                found = await log.wait_after(seen)
                got.append([event.message for event in found])
                seen = found[-1].number

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            log.add(Kind.XID, "", "first")
            await anyio.wait_all_tasks_blocked()
            log.add(Kind.XID, "", "second")
            log.add(Kind.XID, "", "third")
        assert got == [["first"], ["second", "third"]]

    anyio.run(scenario)
