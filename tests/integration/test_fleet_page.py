"""The feed of a fleet's page over real sockets: what viewers are told, and how much of it."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.page import feed
from hami_mock.fleet.snapshot import Change, Mark
from hami_mock.node.event_kinds import Kind
from hami_mock.views.http import server
from hami_mock.views.page.feed import message
from tests.integration.fleet_viewers import ShownFleet, shown_fleet
from tests.integration.viewers import Viewer
from tests.invented_fleet import assigned_pod, invented_fleet, place

FINE = int(Mark.THERE | Mark.READY)
A100_0, T4_0 = 0, 24
"""Their numbers among all nodes."""


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[ShownFleet]:
    with shown_fleet(invented_fleet(tmp_path)) as found:
        yield found


def wait_for_viewers(shown: ShownFleet, number: int) -> None:
    for _ in range(500):
        if shown.viewers == number:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{shown.viewers} viewers, not {number}")


def test_first_all_nodes_and_then_only_what_has_changed(shown: ShownFleet) -> None:
    with Viewer(shown.address) as viewer:
        told = viewer.messages()
        name, data = next(told)
        assert name == "snapshot"
        assert data["rows"] == [0, 0, 0, FINE] * 30
        assert [pool["name"] for pool in data["pools"]] == ["a100", "t4"]
        shown.call(place, shown.fleet, "t4-0", assigned_pod("p", ("GPU-1", 15360, 50)))
        name, data = next(told)
        assert name == "change"
        assert data["rows"] == [T4_0, 50, 5, 25, FINE]
        assert data["pools"].keys() == {"1"}
        assert data["pools"]["1"]["memory"] == [15360, 6 * 2 * 15360]
        shown.act("fail", "a100-0:0", xid=79)
        name, data = next(told)
        assert data["rows"] == [A100_0, 0, 0, 0, FINE | Mark.BROKEN]
        assert data["pools"]["0"]["ill"] == 1
        (event,) = data["events"]
        assert event["kind"] == "FaultBegan"


def test_who_comes_later_is_told_what_the_others_know(shown: ShownFleet) -> None:
    with Viewer(shown.address) as first, Viewer(shown.address) as second:
        first.next()
        second.next()
        shown.act("fail", "t4-0")
        assert first.next()[1]["rows"][0] == T4_0
        with Viewer(shown.address) as third:
            name, data = third.next()
            assert name == "snapshot"
            assert data["rows"][4 * T4_0 + 3] == FINE | Mark.BROKEN
            assert [event["kind"] for event in data["events"]] == ["FaultBegan"]


def test_other_nodes_are_told_as_a_new_snapshot(shown: ShownFleet) -> None:
    with Viewer(shown.address) as viewer:
        told = viewer.messages()
        next(told)
        shown.call(shown.fleet.scale, "t4", 9)
        name, data = next(told)
        assert name == "snapshot"
        assert len(data["rows"]) == 4 * 33


def test_many_changes_are_one_message(shown: ShownFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = message
    with ExitStack() as stack:
        viewers = [stack.enter_context(Viewer(shown.address)) for _ in range(3)]
        for viewer in viewers:
            viewer.next()

        def counted(event: str, data: object) -> bytes:
            made.append(event)
            return real(event, data)  # type: ignore[arg-type]

        monkeypatch.setattr(feed, "message", counted)

        def all_at_once() -> None:
            for number in range(24):
                place(shown.fleet, f"a100-{number}", assigned_pod("p", ("GPU-1", 80000, 50)))

        shown.call(all_at_once)
        for viewer in viewers:
            assert len(viewer.next()[1]["rows"]) == 24 * 5
    assert made == ["change"]


def test_nothing_is_looked_at_while_nobody_looks(
    shown: ShownFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Viewer(shown.address) as viewer:
        viewer.next()
    wait_for_viewers(shown, 0)
    looks = 0

    def counted(_most: int) -> Change:
        nonlocal looks
        looks += 1
        return Change(is_other=False, rows=[])

    monkeypatch.setattr(shown.feed._snapshot, "look", counted)
    monkeypatch.setattr(feed, "_REST_SECONDS", 0.0)
    for _ in range(5):
        shown.act("fail", "t4-0")
        shown.act("recover", "t4-0")
        threading.Event().wait(0.2)
    # One look may have been on its way.
    assert looks <= 1


def test_changes_soon_after_each_other_are_told_together(
    shown: ShownFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_REST_SECONDS", 3.0)
    with Viewer(shown.address) as viewer:
        told = viewer.messages()
        next(told)
        for number in range(24):
            shown.call(place, shown.fleet, f"a100-{number}", assigned_pod("p", ("G", 80000, 50)))
        messages, rows = 0, 0
        while rows < 24:
            messages += 1
            rows += len(next(told)[1].get("rows", ())) // 5
    assert messages <= 8


def test_a_quiet_fleet_is_said_to_be_quiet(
    shown: ShownFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_BEAT_SECONDS", 0.5)
    with Viewer(shown.address) as viewer:
        told = viewer.messages()
        next(told)
        name, data = next(told)
        assert (name, data.keys()) == ("change", {"time"})


def large(fleet: Fleet, number: int) -> None:
    for count in range(60):
        fleet.events.add(Kind.XID, "t4-0", f"{number} {count} {'x' * 900}")


@pytest.mark.parametrize(
    ("bound", "value"), [("_ANSWER_SECONDS", 0.5), ("_MOST_WAITING", 3)], ids=["time", "messages"]
)
def test_who_does_not_read_is_closed_and_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    monkeypatch.setattr(server, "_ANSWER_SECONDS", 60.0)
    monkeypatch.setattr(server, "_MOST_WAITING", 1000)
    with (
        shown_fleet(invented_fleet(tmp_path)) as shown,
        Viewer(shown.address, buffer=4096) as slow,
        Viewer(shown.address) as quick,
    ):
        monkeypatch.setattr(server, bound, value)
        told = quick.messages()
        next(told)
        wait_for_viewers(shown, 2)
        for number in range(40):
            shown.call(large, shown.fleet, number)
            # Whatever the slow one does, the quick one is told at once.
            name, data = next(told)
            assert (name, data["events"][-1]["message"][: len(str(number))]) == (
                "change",
                str(number),
            )
            if shown.viewers == 1:
                break
        assert shown.viewers == 1
        with suppress(ConnectionError):
            while slow.socket.recv(65536):
                pass
