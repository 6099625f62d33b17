"""A small API server: objects over HTTP, with all that can go wrong on command."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from typing import Any, Self

import anyio
import pytest
from aiohttp import web

from hami_mock.kit.concurrency import first_of
from tests.integration.fake_api_objects import (
    RefusedError,
    changed,
    is_labelled,
    is_selected,
    labels_of,
    merge,
)

Object = dict[str, Any]
Key = tuple[str, str, str]
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

Hook = Callable[[web.Request], Awaitable[None]]


@dataclass(frozen=True)
class Write:
    """A patch that was taken: of annotations, labels and the status, or of a JSON patch's kind."""

    resource: str
    """With the subresource: "nodes/status"."""
    name: str
    annotations: dict[str, str | None] = field(default_factory=dict)
    labels: dict[str, str | None] = field(default_factory=dict)
    operations: tuple[Object, ...] = ()
    status: Object = field(default_factory=dict)

    @classmethod
    def of(cls, resource: str, name: str, patch: Object | list[Object]) -> Self:
        if isinstance(patch, list):
            return cls(resource, name, operations=tuple(patch))
        metadata, status = patch.get("metadata", {}), patch.get("status", {})
        annotations, labels = metadata.get("annotations", {}), metadata.get("labels", {})
        return cls(resource, name, annotations, labels, status=status)


@dataclass
class FakeApiServer:
    """Objects by resource, namespace and name, and what was asked for."""

    objects: dict[Key, Object] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    created: list[Object] = field(default_factory=list)
    """What was made with POST."""
    version: str = "v1.37.1"
    requests: list[str] = field(default_factory=list)
    """Each as "get nodes n1" or "patch nodes/status n1"."""
    refuse: Callable[[str], int | None] = lambda _: None
    """Gives a status for a request that should be refused."""
    retry_after: str = ""
    """What a refusal says of the time to wait."""
    answer: Callable[[str], bytes | None] = lambda _: None
    """Gives the body of an answer that no API server should give."""
    odd_event: bytes = b""
    """A line that the next watch gets first, and once."""
    before_patch: Hook | None = None
    """Called once, before the next patch is looked at."""
    lose_answers: int = 0
    """So many patches are taken without an answer."""
    hold_events: bool = False
    """Watches stay open, but nothing arrives."""
    forget_history: bool = False
    """Every watch gets 410: the server doesn't know any more what came since."""

    def __post_init__(self) -> None:
        self._version = 100
        self._events: list[tuple[int, str, str, Object]] = []
        """The version, the resource, what has happened, and to what."""
        self._changed = anyio.Event()
        self._end_watches = anyio.Event()
        self._abrupt = False

    # What a test does.

    def put(self, resource: str, thing: Object) -> Object:
        """Make or replace an object."""
        thing = deepcopy(thing)
        metadata = thing["metadata"]
        key = (resource, metadata.get("namespace", ""), metadata["name"])
        kind = "MODIFIED" if key in self.objects else "ADDED"
        self._version += 1
        metadata["resourceVersion"] = str(self._version)
        self.objects[key] = thing
        self._tell(resource, kind, thing)
        return thing

    def remove(self, resource: str, name: str, namespace: str = "") -> None:
        """Delete an object."""
        thing = self.objects.pop((resource, namespace, name))
        self._version += 1
        thing["metadata"]["resourceVersion"] = str(self._version)
        self._tell(resource, "DELETED", thing)

    def annotate(
        self, resource: str, name: str, annotations: dict[str, str | None], namespace: str = ""
    ) -> None:
        """Change annotations, as somebody else would."""
        thing = deepcopy(self.objects[resource, namespace, name])
        merge(thing, {"metadata": {"annotations": annotations}})
        self.put(resource, thing)

    def annotations(self, resource: str, name: str, namespace: str = "") -> dict[str, str]:
        """The annotations of an object."""
        found: dict[str, str] = self.objects[resource, namespace, name]["metadata"].get(
            "annotations", {}
        )
        return found

    def set_status(self, name: str, **parts: Mapping[str, str | None]) -> None:
        """Change a node's capacity or allocatable, as its kubelet or somebody else would."""
        thing = deepcopy(self.objects["nodes", "", name])
        merge(thing, {"status": parts})
        self.put("nodes", thing)

    def label(self, name: str, labels: dict[str, str | None]) -> None:
        """Change labels of a node, as somebody else would."""
        thing = deepcopy(self.objects["nodes", "", name])
        merge(thing, {"metadata": {"labels": labels}})
        self.put("nodes", thing)

    def labels(self, name: str) -> dict[str, str]:
        """The labels of a node."""
        return labels_of(self.objects["nodes", "", name])

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on the objects or the requests holds."""
        with anyio.fail_after(20):
            while not condition():
                await self._changed.wait()

    def end_watches(self, *, abrupt: bool = False) -> None:
        """End all watches that are open: in order, or in the middle of a line."""
        self._abrupt = abrupt
        self._end_watches.set()
        self._end_watches = anyio.Event()

    def release_events(self) -> None:
        """Let what was held arrive."""
        self.hold_events = False
        self._stir()

    def send_bookmark(self, name: str, resource: str = "nodes") -> None:
        """Send what tells watchers a version and nothing else."""
        self._version += 1
        version = str(self._version)
        self._tell(resource, "BOOKMARK", {"metadata": {"name": name, "resourceVersion": version}})

    # What the agent sees.

    async def tell_version(self, _: web.Request) -> web.Response:
        return web.json_response({"gitVersion": self.version})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.split("/")[3 if request.path.startswith("/api/") else 4 :]
        namespace = parts[1] if parts[0] == "namespaces" and len(parts) > 2 else ""
        resource, name, sub, *_ = (*(parts[2:] if namespace else parts), "", "")
        verb = VERBS.get(request.method) or ("get" if name else "list")
        verb = "watch" if "watch" in request.query else verb
        whole = f"{resource}/{sub}" if sub else resource
        line = f"{verb} {whole} {name}".rstrip()
        self.requests.append(line)
        self._stir()
        if status := self.refuse(line):
            return _status(status, f"no {line} today", self.retry_after)
        if (body := self.answer(line)) is not None:
            return web.Response(body=body, content_type="application/json")
        try:
            match verb:
                case "watch":
                    done = self._watch(resource, request)
                case "create":
                    done = self._create(resource, namespace, request)
                case "list":
                    done = self._list(resource, request)
                case _:
                    done = self._single(request, (resource, namespace, name), sub)
            return await done
        except RefusedError as error:
            return _status(*error.args)

    async def _watch(self, resource: str, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        with suppress(ConnectionResetError):  # who watched may have gone
            await self._send_events(resource, request, response)
        return response

    async def _create(
        self, resource: str, namespace: str, request: web.Request
    ) -> web.StreamResponse:
        thing = await request.json()
        self.created.append(deepcopy(thing))
        metadata = thing["metadata"]
        if prefix := metadata.pop("generateName", ""):
            metadata["name"] = f"{prefix}{self._version:05x}"
        if (resource, namespace, metadata["name"]) in self.objects:
            raise RefusedError(409, f"{resource} {metadata['name']!r} already exists")
        return web.json_response(self.put(resource, thing), status=201)

    async def _list(self, resource: str, request: web.Request) -> web.StreamResponse:
        selector, labels = (request.query.get(f"{key}Selector", "") for key in ("field", "label"))
        items = [
            thing
            for (kind, *_), thing in self.objects.items()
            if kind == resource and is_selected(thing, selector) and is_labelled(thing, labels)
        ]
        version, start, _ = (*request.query.get("continue", "").split("/"), "", "")[:3]
        first = int(start or 0)
        last = first + int(request.query.get("limit", 0)) or len(items)
        metadata = {"resourceVersion": version or str(self._version)}
        if last < len(items):
            # Of one list are all of its pages; who goes on with one names its version.
            metadata["continue"] = f"{metadata['resourceVersion']}/{last}"
        return web.json_response({"metadata": metadata, "items": items[first:last]})

    async def _single(self, request: web.Request, key: Key, sub: str) -> web.StreamResponse:
        if request.method == "PATCH" and self.before_patch:
            hook, self.before_patch = self.before_patch, None
            await hook(request)
        # First: while a body arrives, another patch may be done, which this one must not undo.
        body: Any = await request.json() if request.can_read_body else None
        thing = self.objects.get(key)
        if thing is None:
            raise RefusedError(404, f"{key[0]} {key[2]!r} not found")
        if request.method == "GET":
            return web.json_response(thing)
        if request.method == "DELETE":
            self.remove(key[0], key[2], key[1])
            return web.json_response({"kind": "Status", "status": "Success"})
        new = changed(thing, body, request.headers["Content-Type"], sub)
        if "dryRun" in request.query:
            return web.json_response(new)
        if request.method == "PATCH":
            whole = f"{key[0]}/{sub}" if sub else key[0]
            self.writes.append(Write.of(whole, key[2], body))
        thing = self.put(key[0], new)
        if self.lose_answers:
            self.lose_answers -= 1
            assert request.transport is not None
            request.transport.close()
        return web.json_response(thing)

    async def _send_events(
        self, resource: str, request: web.Request, response: web.StreamResponse
    ) -> None:
        selector, labels = (request.query.get(f"{key}Selector", "") for key in ("field", "label"))
        seen = int(request.query["resourceVersion"])
        assert request.query["timeoutSeconds"]
        await response.prepare(request)
        if self.forget_history:
            gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
            await response.write(_line("ERROR", gone))
            return
        if self.odd_event:
            event, self.odd_event = self.odd_event, b""
            await response.write(event)
        ending = self._end_watches
        while not ending.is_set():
            changed = self._changed
            for version, of, kind, thing in () if self.hold_events else tuple(self._events):
                is_meant = kind == "BOOKMARK" or (
                    is_selected(thing, selector) and is_labelled(thing, labels)
                )
                if version > seen and of == resource and is_meant:
                    seen = version
                    await response.write(_line(kind, thing))
            await first_of(changed.wait, ending.wait)
        if self._abrupt:
            await response.write(b'{"type":"MODIFIED","obj')
            assert request.transport is not None
            request.transport.close()

    def _tell(self, resource: str, kind: str, thing: Object) -> None:
        self._events.append((self._version, resource, kind, deepcopy(thing)))
        self._stir()

    def _stir(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@asynccontextmanager
async def serving(server: FakeApiServer, tls: SSLContext | None = None) -> AsyncIterator[str]:
    """Serve; yield the URL."""
    app = web.Application(client_max_size=2**24)
    app.router.add_get("/version", server.tell_version)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        host, port = runner.addresses[0][:2]
        yield f"http{'s' if tls else ''}://{host}:{port}"
    finally:
        server.end_watches()
        await runner.cleanup()


@asynccontextmanager
async def api_server(folder: Path) -> AsyncIterator[FakeApiServer]:
    """Serve, and let $KUBECONFIG say where."""
    server = FakeApiServer()
    path = folder / "kubeconfig"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(path))
        async with serving(server) as url:
            path.write_text(_kubeconfig(url))
            yield server


def _kubeconfig(url: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
    )


def _status(status: int, message: str, retry_after: str = "") -> web.Response:
    body = {"kind": "Status", "message": message, "code": status}
    headers = {"Retry-After": retry_after} if retry_after else {}
    return web.json_response(body, status=status, headers=headers)


def _line(kind: str, thing: Object) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"
