"""The pods of a node, followed through all that an API server can do."""

import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from hami_mock.cluster import kubernetes as module
from hami_mock.cluster import requests
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.kit.concurrency import Backoff
from hami_mock.node.state import NodeState
from hami_mock.sources.pods import PodReader
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.unit.builders import NODE, laid_out

Script = Callable[[FakeApiServer, NodeState, PodReader], Awaitable[None]]
NAMES = "hami-mock.io/n"


def pod(name: str, node: str = NODE, value: str = "1") -> dict[str, Any]:
    metadata = {"namespace": "default", "name": name, "annotations": {NAMES: value}}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"name": "main"}]}}


def names(state: NodeState) -> set[str]:
    return {name for _, name in state.pods}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Backoff", lambda: Backoff(first=0.01, longest=0.1))


def run(
    folder: Path, script: Script, refuse: Callable[[str], int | None] = lambda _: None
) -> FakeApiServer:
    async def main() -> FakeApiServer:
        with anyio.fail_after(60):
            async with api_server(folder) as server, Kubernetes() as kubernetes:
                server.put("pods", pod("a"))
                server.put("pods", pod("b", node="another"))
                server.refuse = refuse
                state = NodeState(laid_out(None))
                reader = PodReader(state, kubernetes.watch_pods)
                async with anyio.create_task_group() as tasks:
                    await tasks.start(reader.run)
                    await script(server, state, reader)
                    tasks.cancel_scope.cancel()
                return server

    return anyio.run(main)


async def see(state: NodeState, *expected: str) -> None:
    await state.pod_changes.wait_until(lambda: names(state) == set(expected))


async def watching(server: FakeApiServer, times: int = 1) -> None:
    await server.wait_until(lambda: server.requests.count("watch pods") >= times)


def test_pods_of_this_node_come_change_and_go(tmp_path: Path) -> None:
    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        await see(state, "a")
        assert reader.notice == ""
        await watching(server)
        server.put("pods", pod("c"))
        server.put("pods", pod("d", node="another"))
        await see(state, "a", "c")
        server.put("pods", pod("c", value="2"))
        changed = state.pods["default", "c"]
        await state.pod_changes.wait_until(lambda: state.pods["default", "c"] != changed)
        server.remove("pods", "a", "default")
        await see(state, "c")

    assert run(tmp_path, script).requests == ["list pods", "watch pods"]


@pytest.mark.parametrize("abrupt", [False, True])
def test_a_watch_that_ends_loses_nothing(tmp_path: Path, abrupt: bool) -> None:
    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        await see(state, "a")
        await watching(server)
        server.hold_events = True
        server.remove("pods", "a", "default")
        server.put("pods", pod("c"))
        server.end_watches(abrupt=abrupt)
        server.hold_events = False
        await see(state, "c")

    asked = run(tmp_path, script).requests
    assert asked.count("list pods") == (2 if abrupt else 1), "in order, it goes on where it was"


def test_a_server_that_has_forgotten_is_asked_for_all(tmp_path: Path) -> None:
    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        server.forget_history = True
        await watching(server, 3)
        server.remove("pods", "a", "default")
        await see(state)

    run(tmp_path, script)


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_a_refusal_is_told_once_and_tried_again(
    tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        await see(state, "a")
        await watching(server)
        server.refuse = lambda _: status
        server.end_watches(abrupt=True)
        await server.wait_until(lambda: server.requests.count("list pods") >= 4)
        assert names(state) == {"a"}, "what was known stays"
        server.put("pods", pod("c"))
        server.refuse = lambda _: None
        await see(state, "a", "c")

    with caplog.at_level(logging.WARNING, "hami_mock"):
        run(tmp_path, script)
    refused = [text for text in caplog.messages if f"({status})" in text]
    assert len(refused) == 1
    assert refused[0].startswith(f"can't watch pods of node {NODE}: can't list pods: ")


def test_a_role_without_the_verb_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        server.refuse = lambda line: 403 if line.startswith("watch") else None
        await watching(server, 3)
        assert names(state) == {"a"}

    with caplog.at_level(logging.WARNING, "hami_mock"):
        run(tmp_path, script)
    assert "the role needs the verb watch for pods" in caplog.text


def test_it_waits_as_long_as_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[float] = []

    class Noted(Backoff):
        def next(self, least: float = 0.0) -> float:
            asked_for.append(least)
            return 0.0

    monkeypatch.setattr(module, "Backoff", Noted)

    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        server.refuse, server.retry_after = lambda _: 429 if len(asked_for) < 3 else None, "20"
        await see(state, "a")

    run(tmp_path, script)
    assert asked_for[:3] == [20.0] * 3


def test_a_bookmark_is_no_change(tmp_path: Path) -> None:
    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        await see(state, "a")
        await watching(server)
        change = state.pod_changes.next()
        server.send_bookmark("", "pods")
        server.end_watches()
        await watching(server, 2)
        assert not change.is_set()

    assert run(tmp_path, script).requests.count("list pods") == 1


GOOD = {"metadata": {"resourceVersion": "7"}}
ODD_LISTS = {
    "empty": {},
    "no version": {"items": []},
    "a version that is a number": {"metadata": {"resourceVersion": 7}, "items": []},
    "metadata a text": {"metadata": "7"},
    "items a text": {**GOOD, "items": "a"},
    "items numbers": {**GOOD, "items": [7]},
    "a pod without a namespace": {
        **GOOD,
        "items": [{"metadata": {"name": "x", "resourceVersion": "1"}}],
    },
    "an annotation a number": {
        **GOOD,
        "items": [
            {
                "metadata": {
                    "name": "x",
                    "namespace": "y",
                    "resourceVersion": "1",
                    "annotations": {"a": 1},
                }
            }
        ],
    },
}


@pytest.mark.parametrize("body", ODD_LISTS.values(), ids=ODD_LISTS)
def test_an_odd_list_is_asked_for_again(
    tmp_path: Path, body: object, caplog: pytest.LogCaptureFixture
) -> None:
    odd = json.dumps(body).encode()

    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        server.answer = lambda line: odd if line == "list pods" else None
        await server.wait_until(lambda: server.requests.count("list pods") >= 3)
        server.answer = lambda _: None
        server.put("pods", pod("c"))
        await see(state, "a", "c")

    with caplog.at_level(logging.WARNING, "hami_mock"):
        run(tmp_path, script)
    assert len([text for text in caplog.messages if "can't list pods" in text]) <= 1
    assert all(len(text) < 500 for text in caplog.messages)


@pytest.mark.parametrize(
    "event",
    [
        b"<html>",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": {"metadata": {"name": "x"}}}',
        b'{"type": "DELETED", "object": {}}',
        b'{"type": "BOOKMARK", "object": {}}',
        b'{"type": "ERROR", "object": {"code": 410, "message": "too old"}}',
        b'{"type": "NEWS", "object": {}}',
        b"[" * 10**5,
    ],
)
def test_after_an_odd_event_all_is_read_again(tmp_path: Path, event: bytes) -> None:
    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        server.odd_event = event + b"\n"
        await watching(server, 2)
        server.put("pods", pod("c"))
        await see(state, "a", "c")

    assert run(tmp_path, script).requests.count("list pods") == 2


def test_a_list_that_is_too_long_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(requests, "MOST_OF_A_LIST", 1000)

    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        for i in range(20):
            server.put("pods", pod(f"p{i}"))
        server.end_watches(abrupt=True)
        await server.wait_until(lambda: server.requests.count("list pods") >= 3)

    with caplog.at_level(logging.WARNING, "hami_mock"):
        run(tmp_path, script)
    assert "longer than 1000 bytes" in caplog.text


LIST = "can't list pods: no list pods today (403); the role needs the verb list for pods"
WATCH = "can't watch pods: no watch pods today (403); the role needs the verb watch for pods"


def test_who_may_not_read_pods_says_which_rule_it_lacks(tmp_path: Path) -> None:
    async def script(server: FakeApiServer, state: NodeState, reader: PodReader) -> None:
        async def says(text: str) -> None:
            while not reader.notice.startswith(text):
                await anyio.lowlevel.checkpoint()

        await says(f"the pods of this node have not been read yet: {LIST} ")
        server.refuse = lambda line: 403 if line == "watch pods" else None
        await says(f"the pods of this node can't be followed: {WATCH} ")
        assert names(state) == {"a"}
        server.refuse = lambda _: None
        server.put("pods", pod("c"))
        await see(state, "a", "c")
        assert reader.notice == ""

    run(tmp_path, script, refuse=lambda line: 403 if line.endswith(" pods") else None)


def test_it_can_be_closed(tmp_path: Path) -> None:
    async def main() -> None:
        async with api_server(tmp_path) as server, Kubernetes() as kubernetes:
            server.put("pods", pod("a"))
            async with aclosing(kubernetes.watch_pods(NODE)) as changes:
                change = await anext(changes)
                assert (change.is_all, len(change.things)) == (True, 1)

    anyio.run(main)
