"""An API server, or whoever answers in its place, whose answers have not the shape they should."""

import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from hami_mock.cluster import kubernetes as module
from hami_mock.cluster import requests
from hami_mock.cluster.kubernetes import Kubernetes, annotations_of
from hami_mock.errors import Away
from hami_mock.kit.concurrency import Backoff
from tests.integration.fake_api_server import FakeApiServer, api_server

Scenario = Callable[[FakeApiServer, Kubernetes], Awaitable[None]]

NODE = {"metadata": {"name": "n1", "annotations": {"a": "1"}}}
MANY = 10**5
"""So deep that no reader follows, and so long that no log should repeat it."""


def node(**metadata: object) -> dict[str, Any]:
    return {"metadata": {"name": "n1", "resourceVersion": "7", "namespace": "x", **metadata}}


def without(key: str) -> dict[str, Any]:
    return {"metadata": {name: v for name, v in node()["metadata"].items() if name != key}}


ODD = {
    "empty": {},
    "a text": "n1",
    "a number": 7,
    "null": None,
    "a list": [node()],
    "metadata null": {"metadata": None},
    "metadata a list": {"metadata": ["name"]},
    "no name": without("name"),
    "an empty name": node(name=""),
    "a long name": node(name="x" * MANY),
    "another name": node(name="n2"),
    "no version": without("resourceVersion"),
    "a version that is a number": node(resourceVersion=7),
    "annotations a list": node(annotations=["a"]),
    "annotations a text": node(annotations="a"),
    "an annotation a number": node(annotations={"a": 1}),
    "an annotation null": node(annotations={"a": None}),
    "an annotation nested": node(annotations={"a": {"b": "c"}}),
    "uid a list": node(uid=[]),
    "spec a text": {**node(), "spec": "x"},
    "status a list": {**node(), "status": []},
}
BYTES = {
    **{name: json.dumps(thing).encode() for name, thing in ODD.items()},
    "deep": b'{"metadata":' * MANY,
    "deep lists": b"[" * MANY + b"]" * MANY,
    "a number that is long": b"1" * MANY,
    "no JSON": b"<html>" * MANY,
    "no UTF-8": b'{"metadata": "\xff\xfe"}',
}

odd = pytest.mark.parametrize("body", BYTES.values(), ids=BYTES)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Backoff", lambda: Backoff(first=0.01, longest=0.1))


def run(folder: Path, scenario: Scenario) -> None:
    async def with_server() -> None:
        with anyio.fail_after(60):
            async with api_server(folder) as server, Kubernetes() as kubernetes:
                server.put("nodes", NODE)
                await scenario(server, kubernetes)

    anyio.run(with_server)


@odd
def test_an_object_is_as_it_should_be_or_the_server_is_away(tmp_path: Path, body: bytes) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.answer = lambda _: body
        asks: list[Callable[[], Awaitable[object]]] = [
            lambda: kubernetes.node("n1"),
            lambda: kubernetes.pod("x", "n1"),
            lambda: kubernetes.patch_node_annotations("n1", {}),
            lambda: kubernetes.patch_pod_annotations("x", "n1", {}),
        ]
        for ask in asks:
            with pytest.raises(Away) as caught:
                await ask()
            assert len(str(caught.value)) < 500

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "items", ['"n1"', "7", '{"a": 1}', '["n1"]', "[{}]", '[{"metadata": {"name": "p"}}]', "true"]
)
def test_a_list_holds_objects_or_the_server_is_away(tmp_path: Path, items: str) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.answer = lambda _: f'{{"items": {items}}}'.encode()
        with pytest.raises(Away):
            await kubernetes.pods_on("n1")
        with pytest.raises(Away):
            await kubernetes.nodes()

    run(tmp_path, scenario)


@pytest.mark.parametrize("items", ['{"items": null}', "{}", '{"items": []}'])
def test_a_list_may_be_empty(tmp_path: Path, items: str) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.answer = lambda _: items.encode()
        assert await kubernetes.pods_on("n1") == []

    run(tmp_path, scenario)


def test_what_is_null_or_missing_is_empty(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        odd_pod = {**node(annotations=None), "spec": None}
        server.answer = lambda _: json.dumps(odd_pod).encode()
        pod = await kubernetes.pod("x", "n1")
        assert (annotations_of(pod), pod["spec"], pod["status"]) == ({}, {}, {})

    run(tmp_path, scenario)


def test_a_text_may_have_any_character(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.answer = lambda _: json.dumps(node(annotations={"a": "😀 ü \0"})).encode()
        assert annotations_of(await kubernetes.node("n1")) == {"a": "😀 ü \0"}

    run(tmp_path, scenario)


@pytest.mark.parametrize("half", [r"\ud800", r"\uDFFF"])
def test_half_a_surrogate_pair_becomes_another_character(tmp_path: Path, half: str) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        text = json.dumps(node(annotations={"a": "HALF", "b": "😀"}))
        server.answer = lambda _: text.replace("HALF", half).encode()
        assert annotations_of(await kubernetes.node("n1")) == {"a": "?", "b": "😀"}

    run(tmp_path, scenario)


def test_a_pod_without_a_namespace_is_none(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.answer = lambda _: json.dumps(without("namespace")).encode()
        with pytest.raises(Away, match=r"metadata\.namespace"):
            await kubernetes.pod("x", "n1")
        assert await kubernetes.node("n1")

    run(tmp_path, scenario)


ODD_EVENTS = {
    **{
        f"object {name}": json.dumps({"type": "MODIFIED", "object": thing}).encode()
        for name, thing in ODD.items()
    },
    **{f"event {name}": body for name, body in BYTES.items()},
    "an error of texts": b'{"type": "ERROR", "object": "no"}',
    "an error of lists": b'{"type": "ERROR", "object": {"code": [], "message": {"a": 1}}}',
    "a bookmark without a version": b'{"type": "BOOKMARK", "object": {}}',
    "a type that is a list": b'{"type": [], "object": {}}',
}


async def change_after_second_watch(server: FakeApiServer, kubernetes: Kubernetes) -> None:
    """Change the node when its watch has failed and is there again; the change must be told."""

    async def change() -> None:
        await server.wait_until(lambda: server.requests.count("watch nodes") >= 2)
        server.annotate("nodes", "n1", {"a": "2"})

    async with aclosing(kubernetes.watch_node("n1")) as nodes:
        assert annotations_of(await anext(nodes)) == {"a": "1"}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(change)
            assert annotations_of(await anext(nodes)) == {"a": "2"}


@pytest.mark.parametrize("event", ODD_EVENTS.values(), ids=ODD_EVENTS)
def test_a_watch_goes_on_after_an_odd_event(
    tmp_path: Path, event: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.odd_event = event + b"\n"
        await change_after_second_watch(server, kubernetes)

    with caplog.at_level(logging.WARNING, "hami_mock"):
        run(tmp_path, scenario)
    (record,) = caplog.records
    assert record.getMessage().startswith("can't watch node n1: can't watch nodes n1: ")
    assert len(record.getMessage()) < 500


def test_what_has_no_end_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MOST_OF_AN_OBJECT", 10_000)
    monkeypatch.setattr(requests, "MOST_OF_A_LIST", 30_000)

    def pods(count: int) -> bytes:
        large = [node(annotations={"a": "x" * 5_000}, name=f"p{i}") for i in range(count)]
        return json.dumps({"items": large}).encode()

    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.answer = lambda _: pods(5)
        assert len(await kubernetes.pods_on("n1")) == 5
        server.answer = lambda _: pods(6)
        with pytest.raises(Away, match="longer than 30000 bytes"):
            await kubernetes.pods_on("n1")
        with pytest.raises(Away, match="longer than 10000 bytes"):
            await kubernetes.node("n1")

    run(tmp_path, scenario)


def test_a_line_without_an_end_ends_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(requests, "MOST_OF_AN_OBJECT", 10_000)

    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.odd_event = b"x" * 20_000
        await change_after_second_watch(server, kubernetes)

    with caplog.at_level(logging.WARNING, "hami_mock"):
        run(tmp_path, scenario)
    assert "the answer is longer than 10000 bytes" in caplog.text


@pytest.mark.parametrize(
    "body",
    [b"no " * MANY, b"[" * MANY, b'{"message": [' * MANY, b'{"message": ["no"]}', b"", b"\xff"],
)
def test_a_refusal_may_say_anything(
    tmp_path: Path, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        with pytest.raises(Away) as caught:
            await kubernetes.node("n1")
        assert len(str(caught.value)) < 500

    async def refuse(_: FakeApiServer, __: web.Request) -> web.Response:
        return web.Response(body=body, status=500)

    monkeypatch.setattr(FakeApiServer, "handle", refuse)
    run(tmp_path, scenario)


def test_an_event_is_made_whatever_the_answer(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.answer = lambda _: b"<html>"
        await kubernetes.create_event("default", {})
        assert server.requests == ["create events"]

    run(tmp_path, scenario)
