"""The page of a running agent, and its events: what is told, and when."""

import socket
import threading
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from hami_mock.views.page import feed
from hami_mock.views.page.snapshot import snapshot
from tests.integration.agents import get
from tests.integration.viewers import ShownNode, Viewer
from tests.invented import invent


def test_the_page_is_one_file_that_may_load_nothing_else(shown: ShownNode) -> None:
    status, text = get(shown.url)
    assert status == 200
    assert text.startswith("<!doctype html>")
    with Viewer(shown.address) as viewer:
        assert viewer.head() == [
            "HTTP/1.1 200 OK",
            "Content-Type: text/event-stream",
            "Cache-Control: no-store",
            "X-Accel-Buffering: no",
            "Connection: close",
        ]


def test_a_viewer_gets_all_at_first_and_then_what_changes(shown: ShownNode) -> None:
    shown.agent.call(invent, shown.state)
    with Viewer(shown.address) as viewer:
        name, node = viewer.next()
        assert name == "snapshot"
        assert node["cards"]["nvidia/0"]["temperature"] > 30
        shown.agent.act("fail", "nvidia/0", xid=79)
        card = viewer.wait_for("cards", "nvidia/0")
        assert card["health"] == "unhealthy"
        # No more than what is new.
        assert "model" not in card
        shown.agent.act("recover", "nvidia/0")
        assert viewer.wait_for("cards", "nvidia/0") == {"health": "healthy", "reasons": []}


def test_new_readings_and_events_are_told_at_once(
    shown: ShownNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing comes of a look that isn't for a reason.
    monkeypatch.setattr(feed, "_LOOK_SECONDS", 60.0)
    with Viewer(shown.address) as viewer:
        viewer.next()
        shown.event("something")
        (event,) = viewer.wait_for("events").values()
        assert (event["message"], event["warning"]) == ("something", True)
        shown.agent.call(invent, shown.state, 1.0)
        assert viewer.wait_for("cards", "nvidia/1")["busy"] > 0


def test_other_cards_are_told_as_a_whole(shown: ShownNode) -> None:
    with Viewer(shown.address) as viewer:
        _, before = viewer.next()
        values = {"nvidia-cards": "3"}
        shown.agent.call(partial(shown.agent.agent.set_options, values, reset=False))
        node = next(data for name, data in viewer.messages() if name == "snapshot")
        assert [*node["cards"]][:3] == ["nvidia/0", "nvidia/1", "nvidia/2"]
        assert len(node["cards"]) == len(before["cards"]) + 1


def test_who_comes_later_sees_what_the_others_see(shown: ShownNode) -> None:
    with Viewer(shown.address) as first:
        first.next()
        shown.event("one")
        first.wait_for("events")
        with Viewer(shown.address) as second:
            _, node = second.next()
            assert [event["message"] for event in node["events"].values()] == ["one"]
            shown.event("two")
            assert first.wait_for("events") == second.wait_for("events")


def test_while_nobody_looks_nothing_is_made(
    shown: ShownNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    real = snapshot

    def counted(of: Any) -> dict[str, Any]:
        made.append(of)
        return real(of)

    monkeypatch.setattr(feed, "snapshot", counted)
    for moment in range(5):
        shown.agent.call(invent, shown.state, float(moment))
        shown.event("nobody sees it")
    assert made == []
    with Viewer(shown.address) as viewer:
        viewer.next()
    shown.wait_for_viewers(0)
    # What was under way when the viewer left is done by then.
    threading.Event().wait(1.5)
    count = len(made)
    assert count > 0
    for moment in range(5):
        shown.agent.call(invent, shown.state, float(moment))
    threading.Event().wait(1.5)
    assert len(made) == count


def test_a_message_is_rendered_once_for_all(
    shown: ShownNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[str] = []
    real = feed.message

    def counted(event: str, data: Any) -> bytes:
        if "told once" in str(data):
            rendered.append(event)
        return real(event, data)

    with ExitStack() as stack:
        viewers = [stack.enter_context(Viewer(shown.address)) for _ in range(10)]
        for viewer in viewers:
            viewer.next()
        monkeypatch.setattr(feed, "message", counted)
        shown.event("told once")
        for viewer in viewers:
            viewer.wait_for("events")
    assert rendered == ["change"]


def test_a_quiet_node_is_said_to_be_quiet(
    shown: ShownNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_BEAT_SECONDS", 0.0)
    with Viewer(shown.address) as viewer:
        changes = [data for _, (_, data) in zip(range(4), viewer.messages(), strict=False)]
    assert changes[-1].keys() == {"time"}


def test_head_opens_no_stream(shown: ShownNode) -> None:
    with socket.create_connection(shown.address, timeout=10) as asking:
        asking.sendall(b"HEAD /events HTTP/1.1\r\n\r\n")
        received = b""
        while piece := asking.recv(4096):
            received += piece
    assert received.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
    assert received.endswith(b"\r\n\r\n")
    assert shown.viewers == 0


def test_the_status_tells_how_many_look(shown: ShownNode) -> None:
    with Viewer(shown.address) as viewer:
        viewer.next()
        status = shown.agent.call(shown.agent.agent.status)
        assert status["views"]["page"] == {"viewers": 1}
