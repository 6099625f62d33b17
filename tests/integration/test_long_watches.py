"""Watches over hours: they end, die without a word, and the server may want to be left alone."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from hami_mock.cluster import kubernetes as module
from hami_mock.cluster.kubernetes import Kubernetes, annotations_of
from hami_mock.errors import Away, ClusterError
from hami_mock.hami.kinds import HAMI_LOCK
from hami_mock.kit.concurrency import Backoff
from hami_mock.views.hami import locks
from hami_mock.views.hami.registrar import Registrar
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.unit.builders import NODE as NODE_NAME
from tests.unit.views.hami.rig import count_resource, state_with

Scenario = Callable[[FakeApiServer, Kubernetes], Awaitable[None]]
NODE = {"metadata": {"name": "n1", "annotations": {"a": "1"}}}


def run(folder: Path, scenario: Scenario) -> None:
    async def with_server() -> None:
        with anyio.fail_after(60):
            async with api_server(folder) as server, Kubernetes() as kubernetes:
                server.put("nodes", NODE)
                await scenario(server, kubernetes)

    anyio.run(with_server)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Backoff", lambda: Backoff(first=0.01, longest=0.1))


def test_a_dead_connection_is_noticed_within_a_minute() -> None:
    assert 30 <= module.WATCH_SECONDS < module.WATCH_SECONDS + module.GRACE_SECONDS < 60


def test_a_watch_without_a_word_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0)
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.3)

    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        async def die_and_revive() -> None:
            await server.wait_until(lambda: "watch nodes" in server.requests)
            server.hold_events = True
            server.annotate("nodes", "n1", {"a": "2"})

        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert annotations_of(await anext(nodes)) == {"a": "1"}
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(die_and_revive)
                assert annotations_of(await anext(nodes)) == {"a": "2"}
        assert server.requests == ["get nodes n1", "watch nodes", "get nodes n1"]

    run(tmp_path, scenario)
    assert "can't watch node n1" in caplog.text


def test_a_watch_that_ends_in_order_costs_no_further_read(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        async def end_and_change() -> None:
            for count in range(1, 4):
                await server.wait_until(lambda: server.requests.count("watch nodes") == count)  # noqa: B023
                server.send_bookmark("n1")
                if count == 2:
                    # Between two watches: the next one tells.
                    server.hold_events = True
                    server.annotate("nodes", "n1", {"a": "2"})
                    server.end_watches()
                    server.hold_events = False
                server.end_watches()

        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert annotations_of(await anext(nodes)) == {"a": "1"}
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(end_and_change)
                assert annotations_of(await anext(nodes)) == {"a": "2"}
        assert server.requests.count("get nodes n1") == 1
        assert server.requests.count("watch nodes") >= 3
        assert server.writes == []

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *[("7", 7), ("0", 0), ("3600", 60), ("9" * 5000, 60)],
        *[("", 0), ("-1", 0), ("1.5", 0), ("soon", 0), ("٣", 0), ("Wed, 21 Oct 2026", 0)],
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_carries_the_time_to_wait(
    tmp_path: Path, status: int, header: str, seconds: float
) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.refuse, server.retry_after = lambda _: status, header
        with pytest.raises(Away) as caught:
            await kubernetes.node("n1")
        assert caught.value.retry_after == seconds
        assert ClusterError("").retry_after == 0

    run(tmp_path, scenario)


def test_the_watch_waits_as_long_as_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def nap(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    sleep = anyio.sleep
    monkeypatch.setattr("hami_mock.cluster.kubernetes.anyio.sleep", nap)

    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.refuse, server.retry_after = lambda _: 429 if len(waits) < 3 else None, "20"
        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert annotations_of(await anext(nodes)) == {"a": "1"}

    run(tmp_path, scenario)
    assert [20 <= wait <= 25 for wait in waits] == [True] * 3


@pytest.mark.parametrize("who", ["node_keeper", "hami.locks"])
def test_the_views_of_hami_wait_as_long_as_they_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    asked_for: list[float] = []

    class Noted(Backoff):
        def next(self, least: float = 0.0) -> float:
            asked_for.append(least)
            return 0.0

    monkeypatch.setattr(f"hami_mock.views.{who}.Backoff", Noted)

    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        state = state_with(count_resource())
        server.put("nodes", {"metadata": {"name": NODE_NAME, "annotations": {}}})
        refused = f"patch nodes {NODE_NAME}" if who == "node_keeper" else f"get nodes {NODE_NAME}"
        server.refuse = lambda line: 429 if line == refused and len(asked_for) < 3 else None
        server.retry_after = "20"
        async with anyio.create_task_group() as tasks:
            if who == "node_keeper":
                tasks.start_soon(Registrar(state, kubernetes).run)
                await server.wait_until(lambda: len(server.writes) > 0)
            else:
                await locks.release(kubernetes, NODE_NAME, [HAMI_LOCK], "default", "p1")
            tasks.cancel_scope.cancel()

    run(tmp_path, scenario)
    assert asked_for == [20.0] * 3
