"""A small API server: nodes and pods over HTTP, with all that can go wrong on command."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from hami_mock.kit.concurrency import first_of

Object = dict[str, Any]
Key = tuple[str, str, str]
MOST_ANNOTATION_BYTES = 2**18
"""All keys and values together, as with the real one."""

Hook = Callable[[web.Request], Awaitable[None]]


@dataclass(frozen=True)
class Write:
    """A patch that was taken."""

    resource: str
    name: str
    annotations: dict[str, str | None]
    labels: dict[str, str | None] = field(default_factory=dict)


@dataclass
class FakeApiServer:
    """Objects by resource, namespace and name, and what was asked for."""

    objects: dict[Key, Object] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    created: list[Object] = field(default_factory=list)
    """What was made with POST."""
    requests: list[str] = field(default_factory=list)
    """Each as "get nodes n1"."""
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
        _merge(thing, {"metadata": {"annotations": annotations}})
        self.put(resource, thing)

    def annotations(self, resource: str, name: str, namespace: str = "") -> dict[str, str]:
        """The annotations of an object."""
        found: dict[str, str] = self.objects[resource, namespace, name]["metadata"].get(
            "annotations", {}
        )
        return found

    def label(self, name: str, labels: dict[str, str | None]) -> None:
        """Change labels of a node, as somebody else would."""
        thing = deepcopy(self.objects["nodes", "", name])
        _merge(thing, {"metadata": {"labels": labels}})
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

    async def handle(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.removeprefix("/api/v1/").split("/")
        namespace = parts[1] if parts[0] == "namespaces" else ""
        resource, *name = parts[2:] if namespace else parts
        verb = "patch" if request.method == "PATCH" else "get" if name else "list"
        verb = "watch" if "watch" in request.query else verb
        verb = "create" if request.method == "POST" else verb
        line = " ".join((verb, resource, *name))
        self.requests.append(line)
        self._stir()
        if status := self.refuse(line):
            refusal = _status(status, f"no {line} today")
            if self.retry_after:
                refusal.headers["Retry-After"] = self.retry_after
            return refusal
        if (body := self.answer(line)) is not None:
            return web.Response(body=body, content_type="application/json")
        if verb == "watch":
            response = web.StreamResponse()
            with suppress(ConnectionResetError):  # who watched may have gone
                await self._watch(resource, request, response)
            return response
        if verb == "create":
            self.created.append(await request.json())
            self._stir()
            return web.json_response(self.created[-1], status=201)
        if verb == "list":
            return self._list(resource, request.query.get("fieldSelector", ""))
        return await self._single(request, (resource, namespace, name[0]))

    def _list(self, resource: str, selector: str) -> web.StreamResponse:
        items = [
            thing
            for (kind, *_), thing in self.objects.items()
            if kind == resource and _is_selected(thing, selector)
        ]
        version = {"resourceVersion": str(self._version)}
        return web.json_response({"metadata": version, "items": items})

    async def _single(self, request: web.Request, key: Key) -> web.StreamResponse:
        if request.method == "PATCH" and self.before_patch:
            hook, self.before_patch = self.before_patch, None
            await hook(request)
        thing = self.objects.get(key)
        if thing is None:
            return _status(404, f"{key[0]} {key[2]!r} not found")
        if request.method == "GET":
            return web.json_response(thing)
        assert request.headers["Content-Type"] == "application/merge-patch+json"
        patch = await request.json()
        version = patch["metadata"].pop("resourceVersion", None)
        if version not in (None, thing["metadata"]["resourceVersion"]):
            return _status(409, "the object has been modified")
        thing = deepcopy(thing)
        _merge(thing, patch)
        if _annotation_bytes(thing) > MOST_ANNOTATION_BYTES:
            return _status(422, "metadata.annotations: Too long: may not be more than 262144 bytes")
        if odd := [pair for pair in labels_of(thing).items() if not _is_label(*pair)]:
            return _status(422, f"metadata.labels: Invalid value: {odd}")
        parts = (patch["metadata"].get(part, {}) for part in ("annotations", "labels"))
        self.writes.append(Write(key[0], key[2], *parts))
        thing = self.put(key[0], thing)
        if self.lose_answers:
            self.lose_answers -= 1
            assert request.transport is not None
            request.transport.close()
        return web.json_response(thing)

    async def _watch(
        self, resource: str, request: web.Request, response: web.StreamResponse
    ) -> None:
        selector = request.query["fieldSelector"]
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
                is_meant = kind == "BOOKMARK" or _is_selected(thing, selector)
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
async def api_server(folder: Path) -> AsyncIterator[FakeApiServer]:
    """Serve, and let $KUBECONFIG say where."""
    from kubernetes_asyncio.config import kube_config

    server = FakeApiServer()
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    path = folder / "kubeconfig"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(path))
        # kubernetes_asyncio reads the variable once, when it is imported.
        patch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            path.write_text(_kubeconfig(f"http://{host}:{port}"))
            yield server
        finally:
            server.end_watches()
            await runner.cleanup()


def _is_selected(thing: Object, selector: str) -> bool:
    key, _, value = selector.partition("=")
    match key:
        case "":
            return True
        case "metadata.name":
            return bool(thing["metadata"]["name"] == value)
        case "spec.nodeName":
            return bool(thing.get("spec", {}).get("nodeName") == value)
    raise AssertionError(selector)


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


def _merge(thing: Object, patch: Object) -> None:
    for key, value in patch.items():
        if value is None:
            thing.pop(key, None)
        elif isinstance(value, dict):
            _merge(thing.setdefault(key, {}), value)
        else:
            thing[key] = value


def labels_of(thing: Object) -> dict[str, str]:
    labels: dict[str, str] = thing["metadata"].get("labels") or {}
    return labels


def _is_label(key: str, value: str) -> bool:
    domain, _, name = key.rpartition("/")
    word = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
    subdomain = r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?"
    patterns = ((word, name), (f"({word})?", value), (subdomain, domain))
    return all(re.fullmatch(pattern, text) for pattern, text in patterns)


def _annotation_bytes(thing: Object) -> int:
    annotations: dict[str, str] = thing["metadata"].get("annotations") or {}
    return sum(
        len(f"{key}{value}".encode(errors="surrogatepass")) for key, value in annotations.items()
    )


def _status(status: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "message": message, "code": status}, status=status)


def _line(kind: str, thing: Object) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"
