"""The page of a running agent, and its events: what is told, to how many, and to whom not."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hami_mock.node.event_kinds import Kind
from hami_mock.node.state import NodeState
from hami_mock.views.http import server
from hami_mock.views.page import feed
from tests.integration.agents import AgentThread, agent_thread, get
from tests.integration.viewers import Viewer
from tests.invented import invent

MOST = 50


class Shown:
    """An agent with a page, and where it is."""

    def __init__(self, agent: AgentThread) -> None:
        self.agent = agent
        self.state = agent.agent.state
        views = {view.name: view for view in agent.agent.views}
        self.feed = views["page"]
        address = views["http"].status()["address"]
        host, _, port = address.rpartition(":")
        self.address = host, int(port)
        self.url = f"http://{address}"

    @property
    def viewers(self) -> int:
        return int(self.agent.call(self.feed.status)["viewers"])

    def wait_for_viewers(self, number: int) -> None:
        for _ in range(500):
            if self.viewers == number:
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"{self.viewers} viewers, not {number}")

    def event(self, message: str) -> None:
        self.agent.call(self.state.events.add, Kind.XID, "nvidia/0", message)


@contextmanager
def shown_node(folder: Path, **flags: str) -> Iterator[Shown]:
    with agent_thread(folder, http_listen="127.0.0.1:0", **flags) as agent:
        yield Shown(agent)


@pytest.fixture
def shown(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    async def nobody_asked() -> None:
        """Leave it at what was invented: there is no kubelet that knows."""

    with shown_node(socket_folder) as found:
        monkeypatch.setattr(found.feed, "_refresh", nobody_asked)
        yield found


def test_the_page_is_one_file_that_may_load_nothing_else(shown: Shown) -> None:
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


def test_a_viewer_gets_all_at_first_and_then_what_changes(shown: Shown) -> None:
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
    shown: Shown, monkeypatch: pytest.MonkeyPatch
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


def test_other_cards_are_told_as_a_whole(shown: Shown) -> None:
    with Viewer(shown.address) as viewer:
        _, before = viewer.next()
        values = {"nvidia-cards": "3"}
        shown.agent.call(partial(shown.agent.agent.set_options, values, reset=False))
        node = next(data for name, data in viewer.messages() if name == "snapshot")
        assert [*node["cards"]][:3] == ["nvidia/0", "nvidia/1", "nvidia/2"]
        assert len(node["cards"]) == len(before["cards"]) + 1


def test_who_comes_later_sees_what_the_others_see(shown: Shown) -> None:
    with Viewer(shown.address) as first:
        first.next()
        shown.event("one")
        first.wait_for("events")
        with Viewer(shown.address) as second:
            _, node = second.next()
            assert [event["message"] for event in node["events"].values()] == ["one"]
            shown.event("two")
            assert first.wait_for("events") == second.wait_for("events")


def test_while_nobody_looks_nothing_is_made(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    real = feed.snapshot

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


def test_a_message_is_rendered_once_for_all(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []
    real = feed._message

    def counted(event: str, data: Any) -> bytes:
        if "told once" in str(data):
            rendered.append(event)
        return real(event, data)

    with ExitStack() as stack:
        viewers = [stack.enter_context(Viewer(shown.address)) for _ in range(10)]
        for viewer in viewers:
            viewer.next()
        monkeypatch.setattr(feed, "_message", counted)
        shown.event("told once")
        for viewer in viewers:
            viewer.wait_for("events")
    assert rendered == ["change"]


def test_a_quiet_node_is_said_to_be_quiet(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_BEAT_SECONDS", 0.0)
    with Viewer(shown.address) as viewer:
        changes = [data for _, (_, data) in zip(range(4), viewer.messages(), strict=False)]
    assert changes[-1].keys() == {"time"}


def test_60_viewers_get_50_seats_and_the_probes_are_answered(shown: Shown) -> None:
    with ExitStack() as stack:
        viewers = [stack.enter_context(Viewer(shown.address)) for _ in range(60)]
        heads = [viewer.head()[0] for viewer in viewers]
        assert heads.count("HTTP/1.1 200 OK") == MOST
        assert heads[MOST:] == ["HTTP/1.1 503 Service Unavailable"] * 10
        assert shown.viewers == MOST
        for path in ("/healthz", "/readyz", "/metrics", "/"):
            assert get(f"{shown.url}{path}", timeout=5)[0] in (200, 503)
        shown.event("for all")
        for viewer in viewers[:MOST]:
            assert viewer.wait_for("events")
        # Who leaves frees a seat.
        for viewer in viewers[:20]:
            viewer.close()
        shown.wait_for_viewers(MOST - 20)
        assert stack.enter_context(Viewer(shown.address)).head()[0] == "HTTP/1.1 200 OK"


def test_a_crowd_does_not_take_the_seats_of_viewers(shown: Shown) -> None:
    with ExitStack() as stack:
        viewers = [stack.enter_context(Viewer(shown.address)) for _ in range(MOST)]
        for viewer in viewers:
            viewer.next()
        strangers = [
            stack.enter_context(server.socket.create_connection(shown.address, timeout=10))
            for _ in range(200)
        ]
        assert get(f"{shown.url}/healthz", timeout=5) == (200, "ok\n")
        with suppress(ConnectionError):
            assert strangers[0].recv(1) == b""
        assert shown.viewers == MOST
        shown.event("still here")
        assert viewers[0].wait_for("events")


def large(state: NodeState, number: int) -> None:
    """Let what there is be some 500 kB, all of it new."""
    text = f"{number:03}{'x' * 297}"
    invent(
        state, work={("ns", f"{pod:03}{text}", text): {"nvidia/0": (0, 1)} for pod in range(400)}
    )


def test_who_does_not_read_is_closed_and_holds_up_nobody(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Viewer(shown.address, buffer=4096) as slow, Viewer(shown.address) as quick:
        quick.next()
        shown.wait_for_viewers(2)
        monkeypatch.setattr(server, "_ANSWER_SECONDS", 0.5)
        for number in range(40):
            shown.agent.call(large, shown.state, number)
            shown.event(str(number))
            assert quick.wait_for("events")
            if shown.viewers == 1:
                break
        assert shown.viewers == 1
        # It has got a part of what there was, and then the end.
        with suppress(ConnectionError):
            while slow.socket.recv(65536):
                pass


def test_a_viewer_that_says_more_is_closed(shown: Shown) -> None:
    with Viewer(shown.address) as viewer:
        viewer.next()
        viewer.socket.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        shown.wait_for_viewers(0)


def test_viewers_are_let_go_when_the_agent_ends(socket_folder: Path) -> None:
    with ExitStack() as stack:
        with shown_node(socket_folder) as shown:
            viewer = stack.enter_context(Viewer(shown.address))
            viewer.next()
        with suppress(ConnectionError):
            assert [*viewer.messages()][3:] == []


def test_head_opens_no_stream(shown: Shown) -> None:
    with server.socket.create_connection(shown.address, timeout=10) as asking:
        asking.sendall(b"HEAD /events HTTP/1.1\r\n\r\n")
        received = b""
        while piece := asking.recv(4096):
            received += piece
    assert received.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
    assert received.endswith(b"\r\n\r\n")
    assert shown.viewers == 0


def test_the_status_tells_how_many_look(shown: Shown) -> None:
    with Viewer(shown.address) as viewer:
        viewer.next()
        status = shown.agent.call(shown.agent.agent.status)
        assert status["views"]["page"] == {"viewers": 1}
