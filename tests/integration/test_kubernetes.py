"""Kubernetes, against an API server that does all that a real one does."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from hami_mock.cluster import kubernetes as module
from hami_mock.cluster.kubernetes import Kubernetes, annotations_of
from hami_mock.errors import Away, ClusterError, Conflict, NotAllowed, NotThere, StartError
from hami_mock.kit.concurrency import Backoff
from tests.integration.fake_api_server import FakeApiServer, api_server

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


def pod(name: str, node: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": name}, "spec": {"nodeName": node}}


def test_objects_are_read_as_they_are(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.put("pods", pod("p1", "n1"))
        server.put("pods", pod("p2", "n2"))
        assert annotations_of(await kubernetes.node("n1")) == {"a": "1"}
        assert annotations_of(await kubernetes.pod("default", "p1")) == {}
        assert [each["metadata"]["name"] for each in await kubernetes.pods_on("n2")] == ["p2"]
        assert await kubernetes.pods_on("n3") == []
        assert kubernetes.writes == 0

    run(tmp_path, scenario)


def test_a_patch_sets_and_removes_and_leaves_the_rest(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.annotate("nodes", "n1", {"b": "2"})
        node = await kubernetes.patch_node_annotations("n1", {"a": None, "c": "3"})
        assert annotations_of(node) == {"b": "2", "c": "3"} == server.annotations("nodes", "n1")
        server.put("pods", pod("p1", "n1"))
        await kubernetes.patch_pod_annotations("default", "p1", {"x": "y"})
        assert server.annotations("pods", "p1", "default") == {"x": "y"}
        assert kubernetes.writes == len(server.writes) == 2

    run(tmp_path, scenario)


def test_a_patch_of_what_somebody_changed_is_a_conflict(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        version = (await kubernetes.node("n1"))["metadata"]["resourceVersion"]
        node = await kubernetes.patch_node_annotations("n1", {"a": "2"}, version)
        with pytest.raises(Conflict, match="patch nodes n1"):
            await kubernetes.patch_node_annotations("n1", {"a": "3"}, version)
        await kubernetes.patch_node_annotations(
            "n1", {"a": "4"}, node["metadata"]["resourceVersion"]
        )
        assert server.annotations("nodes", "n1")["a"] == "4"

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (401, NotAllowed, "the token isn't accepted: it has expired, or is for another cluster$"),
        (403, NotAllowed, "the role needs the verb get for nodes"),
        (404, NotThere, "get nodes n1: no get nodes n1 today"),
        (409, Conflict, "get nodes n1"),
        (410, Away, "410"),
        (429, Away, "429"),
        (500, Away, "500"),
        (503, Away, "no get nodes n1 today"),
    ],
)
def test_every_refusal_says_what_it_is(
    tmp_path: Path, status: int, error: type[ClusterError], text: str
) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.refuse = lambda _: status
        with pytest.raises(error, match=text):
            await kubernetes.node("n1")

    run(tmp_path, scenario)


@pytest.mark.parametrize("text", ["", "<html>", "[1]", '{"kind": "Node"'])
def test_an_answer_that_is_no_object_is_a_server_that_is_not_well(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def babble(_: FakeApiServer, __: web.Request) -> web.Response:
        return web.Response(text=text)

    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        with pytest.raises(Away, match="the answer is no"):
            await kubernetes.node("n1")

    monkeypatch.setattr(FakeApiServer, "handle", babble)
    run(tmp_path, scenario)


def test_nobody_listening_and_silence_are_both_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hami_mock.cluster.requests.REQUEST_SECONDS", 0.2)

    async def hang(_: FakeApiServer, __: web.Request) -> web.Response:
        await anyio.sleep_forever()
        raise AssertionError

    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        with pytest.raises(Away):
            await kubernetes.node("n1")

    async def alone() -> None:
        async with api_server(tmp_path):
            kubernetes = Kubernetes()
            await kubernetes.__aenter__()
        with pytest.raises(Away, match="get nodes n1"):
            await kubernetes.node("n1")
        await kubernetes.__aexit__()

    anyio.run(alone)
    monkeypatch.setattr(FakeApiServer, "handle", hang)
    run(tmp_path, scenario)


def test_without_a_usable_kubeconfig_nothing_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no"))

    async def connect() -> None:
        async with Kubernetes():
            pass

    with pytest.raises(StartError, match="the API server can't be used"):
        anyio.run(connect)


Nodes = AsyncGenerator[dict[str, Any], None]


async def next_a(nodes: Nodes) -> str | None:
    """The annotation a of the node that comes next."""
    return annotations_of(await anext(nodes)).get("a")


async def watching(server: FakeApiServer, count: int = 1) -> None:
    await server.wait_until(lambda: server.requests.count("watch nodes") >= count)


def test_a_watch_yields_the_node_and_each_change(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.put("nodes", {"metadata": {"name": "n2"}})
        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert await next_a(nodes) == "1"
            server.annotate("nodes", "n2", {"a": "of another node"})
            server.send_bookmark("n1")
            for value in ("2", "3"):
                server.annotate("nodes", "n1", {"a": value})
            assert [await next_a(nodes), await next_a(nodes)] == ["2", "3"]
        assert server.requests == ["get nodes n1", "watch nodes"]

    run(tmp_path, scenario)


def test_lines_may_be_longer_than_any_buffer(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert await next_a(nodes) == "1"
            large = "x" * (5 * 2**20)
            server.annotate("nodes", "n1", {"a": large})
            server.annotate("nodes", "n1", {"a": "small"})
            assert await next_a(nodes) == large
            assert await next_a(nodes) == "small"

    run(tmp_path, scenario)


@pytest.mark.parametrize("abrupt", [False, True])
def test_a_watch_that_ends_goes_on_without_a_change_lost_or_told_twice(
    tmp_path: Path, abrupt: bool
) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        async def change() -> None:
            await watching(server)
            server.end_watches(abrupt=abrupt)
            await watching(server, 2)
            server.annotate("nodes", "n1", {"a": "2"})

        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert await next_a(nodes) == "1"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(change)
                assert await next_a(nodes) == "2"

    run(tmp_path, scenario)


def test_a_server_that_has_forgotten_is_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        async def change() -> None:
            await watching(server, 4)
            server.annotate("nodes", "n1", {"a": "2"})

        server.forget_history = True
        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert await next_a(nodes) == "1"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(change)
                assert await next_a(nodes) == "2"

    with caplog.at_level(logging.WARNING, "hami_mock"):
        run(tmp_path, scenario)
    assert "too old resource version (410)" in caplog.text


def test_an_outage_is_survived_with_backoff_and_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        async def outage() -> None:
            await watching(server)
            server.refuse = lambda _: 503
            server.end_watches(abrupt=True)
            await server.wait_until(lambda: server.requests.count("get nodes n1") >= 5)
            server.annotate("nodes", "n1", {"a": "2"})
            server.refuse = lambda _: None

        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert await next_a(nodes) == "1"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outage)
                assert await next_a(nodes) == "2"

    with caplog.at_level(logging.WARNING, "hami_mock"):
        run(tmp_path, scenario)
    assert caplog.text.count("no get nodes n1 today (503)") == 1


def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_hot_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []

    class Noted(Backoff):
        def next(self, least: float = 0.0) -> float:
            delays.append(self._last)
            super().next(least)
            return 0.0

    monkeypatch.setattr(module, "Backoff", Noted)

    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        async def end_all() -> None:
            for count in range(1, 6):
                await watching(server, count)
                server.end_watches()
            server.annotate("nodes", "n1", {"a": "2"})

        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert await next_a(nodes) == "1"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(end_all)
                assert await next_a(nodes) == "2"

    run(tmp_path, scenario)
    assert delays[:4] == [0, 0.1, 0.2, 0.4]


def test_a_node_that_is_gone_and_comes_back_is_yielded(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        async def replace() -> None:
            await watching(server)
            server.remove("nodes", "n1")
            server.end_watches()
            await server.wait_until(lambda: server.requests.count("get nodes n1") >= 3)
            server.put("nodes", {"metadata": {"name": "n1"}})

        async with aclosing(kubernetes.watch_node("n1")) as nodes:
            assert await next_a(nodes) == "1"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(replace)
                assert await next_a(nodes) is None

    run(tmp_path, scenario)
