"""Events of the agent, as an API server gets them."""

from pathlib import Path

import anyio
import pytest

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.faults.actions import Action, perform
from hami_mock.kit.concurrency import Backoff
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import EventLog
from hami_mock.node.state import NodeState
from hami_mock.views import node_events
from hami_mock.views.node_events import NodeEvents
from tests.integration.fake_api_server import api_server
from tests.integration.waiting import until
from tests.unit.builders import NODE, laid_out


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_each_event_is_reported_once_and_in_order(tmp_path: Path) -> None:
    state = NodeState(laid_out(), EventLog(clock=lambda: 86400.0))
    perform(Action("fail", ("nvidia/0",), {"xid": 79}), state)
    async with (
        api_server(tmp_path) as server,
        Kubernetes() as kubernetes,
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(NodeEvents(kubernetes, state).run)
        await server.wait_until(lambda: len(server.created) == 2)
        perform(Action("recover", ("nvidia/0",)), state)
        await server.wait_until(lambda: len(server.created) == 3)
        tasks.cancel_scope.cancel()
    assert [(event["reason"], event["type"]) for event in server.created] == [
        ("Xid", "Warning"),
        ("CardFailed", "Warning"),
        ("CardRecovered", "Normal"),
    ]
    failed = server.created[1]
    assert failed["involvedObject"] == {"kind": "Node", "name": NODE, "uid": NODE}
    assert failed["message"] == "nvidia/0: unhealthy: Xid 79 (GPU has fallen off the bus)"
    assert failed["lastTimestamp"] == "1970-01-02T00:00:00Z"
    assert server.requests == ["create events"] * 3


@pytest.mark.anyio
async def test_what_could_not_be_reported_is_reported_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_events, "Backoff", lambda: Backoff(first=0.01, longest=0.02))
    state = NodeState(laid_out())
    async with (
        api_server(tmp_path) as server,
        Kubernetes() as kubernetes,
        anyio.create_task_group() as tasks,
    ):
        server.refuse = lambda line: 403
        view = NodeEvents(kubernetes, state)
        await tasks.start(view.run)
        state.events.add(Kind.CONFIGURATION_CHANGED, "", "first")
        state.events.add(Kind.CONFIGURATION_CHANGED, "", "second")
        await server.wait_until(lambda: len(server.requests) >= 2)
        assert server.created == []
        assert view.status()["reported"] == 0
        assert "create" in view.status()["error"]
        server.refuse = lambda line: None
        await server.wait_until(lambda: len(server.created) == 2)
        await until(lambda: view.status() == {"reported": 2, "error": None})
        tasks.cancel_scope.cancel()
    assert [event["message"] for event in server.created] == ["first", "second"]
    assert "can't report an event" in caplog.text
    assert "create" in caplog.text, "the rule that is missing is named"


@pytest.mark.anyio
async def test_an_api_server_that_wants_to_be_left_alone_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []

    class Noted(Backoff):
        def next(self, least: float = 0.0) -> float:
            waits.append(super().next(least))
            return 0.0

    monkeypatch.setattr(node_events, "Backoff", Noted)
    state = NodeState(laid_out())
    async with (
        api_server(tmp_path) as server,
        Kubernetes() as kubernetes,
        anyio.create_task_group() as tasks,
    ):
        server.refuse = lambda _: 429 if len(server.requests) < 5 else None
        server.retry_after = "20"
        await tasks.start(NodeEvents(kubernetes, state).run)
        state.events.add(Kind.CONFIGURATION_CHANGED, "", "a\nb" + "x" * 5000)
        await server.wait_until(lambda: len(server.created) == 1)
        tasks.cancel_scope.cancel()
    assert [20 <= wait <= 25 for wait in waits] == [True] * 4
    assert caplog.text.count("can't report an event") == 1
    message = server.created[0]["message"]
    assert message.startswith("a\\nbxxx")
    assert 1000 < len(message) <= 1025
