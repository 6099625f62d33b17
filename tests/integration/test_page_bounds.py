"""Viewers of the page: how many there may be, and what becomes of those who don't keep up."""

import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from hami_mock.node.state import NodeState
from hami_mock.views.http import server
from tests.integration.agents import get
from tests.integration.viewers import ShownNode, Viewer, nobody_asked, shown_node
from tests.invented import invent

MOST = 50


def test_60_viewers_get_50_seats_and_the_probes_are_answered(shown: ShownNode) -> None:
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


def test_a_crowd_does_not_take_the_seats_of_viewers(shown: ShownNode) -> None:
    with ExitStack() as stack:
        viewers = [stack.enter_context(Viewer(shown.address)) for _ in range(MOST)]
        for viewer in viewers:
            viewer.next()
        strangers = [
            stack.enter_context(socket.create_connection(shown.address, timeout=10))
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


@pytest.mark.parametrize(
    ("bound", "value"), [("_ANSWER_SECONDS", 0.5), ("_MOST_WAITING", 3)], ids=["time", "messages"]
)
def test_who_does_not_read_is_closed_and_holds_up_nobody(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    # Each bound is enough by itself, and the kernel's own isn't needed: it keeps what it is told.
    monkeypatch.setattr(server, "_ANSWER_SECONDS", 60.0)
    monkeypatch.setattr(server, "_MOST_WAITING", 1000)
    with (
        shown_node(socket_folder) as shown,
        Viewer(shown.address, buffer=4096) as slow,
        Viewer(shown.address) as quick,
    ):
        monkeypatch.setattr(shown.feed, "_refresh", nobody_asked)
        monkeypatch.setattr(server, bound, value)
        quick.next()
        shown.wait_for_viewers(2)
        for number in range(25):
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


def test_a_viewer_that_says_more_is_closed(shown: ShownNode) -> None:
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
