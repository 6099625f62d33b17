"""The sockets: bytes to an agent that runs, and answers of a kubelet and an API server to it."""

import json
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import wait
from contextlib import ExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from hami_mock.agent import Agent
from hami_mock.cluster import kubernetes as kubernetes_module
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import ClusterError, DeviceError, KubeletError
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import Backoff
from hami_mock.kubelet import wire
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.vendors.labelling import LabelSet
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.deviceplugin.lifecycle import register
from hami_mock.views.deviceplugin.server import serve
from hami_mock.views.deviceplugin.service import DevicePluginService
from hami_mock.views.hami.allocator import Allocator
from hami_mock.views.hami.registrar import Registrar
from hami_mock.views.labels.labeller import Labeller, Registrations, Wanted
from tests.fuzz import frames, seeds
from tests.fuzz.raw_server import RawServer, exchange
from tests.fuzz.target import Broken, Target

_CHECK_EVERY = 100
_METHODS = [
    f"/v1beta1.DevicePlugin/{name}"
    for name in (
        *("Allocate", "ListAndWatch", "GetDevicePluginOptions", "GetPreferredAllocation"),
        *("PreStartContainer", "Nothing"),
    )
]
_LIST, _OPTIONS = 1, 2

_open = ExitStack()
"""All that runs beside the inputs."""


def close() -> None:
    """Stop all that was started for the inputs."""
    _open.close()
    for each in (_folder, _portal, _agent, _plugin, _kubelet, _api):
        each.cache_clear()


@cache
def _folder() -> Path:
    return Path(_open.enter_context(tempfile.TemporaryDirectory(prefix="hm-fuzz-")))


@cache
def _portal() -> BlockingPortal:
    return _open.enter_context(start_blocking_portal())


class _Agent:
    """An agent without a kubelet, with HTTP and a control socket."""

    def __init__(self) -> None:
        self.control = str(_folder() / "control.sock")
        flags = {"socket-dir": str(_folder()), "node-name": "n1", "http-listen": "127.0.0.1:0"}
        flags |= {"control-socket": self.control, "pod-resources-socket": ""}
        settings = load(flags)
        agent = _portal().call(Agent, settings, configured_node(settings, None), flags)
        self.future, _ = _portal().start_task(agent.run)
        _open.callback(self.future.cancel)
        view = next(view for view in agent.views if view.name == "http")
        host, _, port = view.status()["address"].rpartition(":")
        self.http = (host, int(port))
        self._inputs = 0

    def check(self, *, seconds: float = 0.0) -> None:
        """Raise what ended the agent, if it did, and start another one for the next input.

        Now and then, look whether it is still well, and undo what was done to it.
        """
        if seconds:
            wait([self.future], seconds)
        if self.future.done():
            _agent.cache_clear()
            self.future.result()
            raise Broken("the agent ended")
        self._inputs += 1
        if self._inputs % _CHECK_EVERY:
            return
        for command, arguments in (
            ("stop", {}),
            ("recover", {"targets": ["all"]}),
            ("set", {"values": {}, "reset": True}),
        ):
            self.ask(json.dumps({"command": command, "arguments": arguments}).encode())
        if not self.get(b"GET /healthz HTTP/1.1\r\n\r\n").endswith(b"ok\n"):
            raise Broken("the agent isn't healthy any more")

    def get(self, data: bytes) -> bytes:
        with socket.create_connection(self.http) as connection:
            return exchange(connection, data)

    def ask(self, line: bytes) -> bytes:
        """Send a request, and return the first line of what comes back."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.control)
            return exchange(connection, line + b"\n").partition(b"\n")[0]


@cache
def _agent() -> _Agent:
    return _Agent()


def _http(data: bytes) -> None:
    answer = _agent().get(data)
    if answer and not answer.startswith(b"HTTP/1.1 "):
        raise Broken("an answer that isn't HTTP")
    _agent().check()


def _control(data: bytes) -> None:
    line = data.partition(b"\n")[0]
    answer = _agent().ask(line)
    # Without an answer, it was a stream that had nothing to say, or the agent is about to end.
    _agent().check(seconds=0.0 if answer or not line else 0.5)
    if answer and not isinstance(json.loads(answer), dict):
        raise Broken("an answer that isn't an object")


@cache
def _plugin() -> str:
    """Serve a plugin's five calls, and return the socket's path."""
    path = _folder() / "plugin.sock"
    node = configured_node(load({"node-name": "n1", "nvidia-memory": "1024"}), None)

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        service = DevicePluginService(node.resources[0], NodeState(node), ResourceCounters())
        async with serve(service, path, service.end_streams):
            yield

    _open.enter_context(_portal().wrap_async_context_manager(serving()))
    return str(path)


def _grpc_bytes(data: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(_plugin())
        exchange(connection, data)
    if len(data) % 50 == 0:
        _grpc_message(bytes([_OPTIONS]))  # others are still served


def _grpc_message(data: bytes) -> None:
    """Make a proper call; the first byte says which."""
    number = data[0] % len(_METHODS) if data else 0
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(_plugin())
        call = frames.Call(connection, _METHODS[number], data[1:])
        call.run(first_only=number == _LIST)
    if number != _LIST and not call.status:
        raise Broken("a call without a status")


@cache
def _kubelet() -> tuple[RawServer, Path]:
    path = _folder() / "kubelet.sock.raw"
    server = RawServer(path)
    _open.callback(server.close)
    return server, path


def _registration(data: bytes) -> None:
    server, path = _kubelet()
    server.answer = lambda _: data
    _portal().call(register, path, "x.sock", "nvidia.com/gpu")


def _refusal(data: bytes) -> None:
    """Refuse a registration with these words."""
    _registration(frames.answer(None, 2, data[:40_000]))


def _holders(data: bytes) -> None:
    server, path = _kubelet()
    server.answer = lambda _: data
    _portal().call(PodResources(str(path)).holders)


def _holders_message(data: bytes) -> None:
    _holders(frames.answer(data[:60_000]))


class _Api:
    """A client of an API server that answers what it is told to."""

    def __init__(self) -> None:
        self.server = RawServer()
        _open.callback(self.server.close)
        path = _folder() / "kubeconfig"
        path.write_text(
            json.dumps(
                {
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                    "clusters": [
                        {
                            "name": "k",
                            "cluster": {"server": f"http://127.0.0.1:{self.server.port}"},
                        }
                    ],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                }
            )
        )
        os.environ["KUBECONFIG"] = str(path)
        _open.callback(os.environ.pop, "KUBECONFIG", None)
        # Nobody has the time to wait between two tries.
        names = vars(kubernetes_module)
        _open.callback(names.update, Backoff=names["Backoff"])
        names["Backoff"] = lambda: Backoff(0.001, 0.002)
        self.kubernetes = _open.enter_context(_portal().wrap_async_context_manager(Kubernetes()))
        settings = load({"node-name": "n1", "hami": "on"})
        self.state: NodeState = _portal().call(NodeState, configured_node(settings, None))


@cache
def _api() -> _Api:
    return _Api()


def _http_answer(body: bytes, status: int = 200) -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def _api_bytes(data: bytes) -> None:
    """Answer single requests with anything at all."""
    api = _api()
    api.server.answer = lambda _: data
    _portal().call(api.kubernetes.node, "n1")


def _api_objects(data: bytes) -> None:
    """Answer single requests with a status and this body."""
    api = _api()
    status = (200, 200, 200, 403, 404, 409, 500, 410)[len(data) % 8]
    api.server.answer = lambda _: _http_answer(data, status)
    for call in (api.kubernetes.node, api.kubernetes.pods_on):
        try:
            _portal().call(call, "n1")
        except ClusterError:
            continue


def _api_watch(data: bytes) -> None:
    """Let a watch say this, until the server has another node."""
    api = _api()
    answers = iter((_http_answer(seeds.NODES[0]), _http_answer(data)))
    last = _http_answer(json.dumps({"metadata": {"name": "n1", "resourceVersion": "end"}}).encode())
    api.server.answer = lambda _: next(answers, last)

    async def follow() -> None:
        with anyio.fail_after(60):
            async for node in api.kubernetes.watch_node("n1"):
                if node["metadata"]["resourceVersion"] == "end":
                    return

    _portal().call(follow)


def _api_registrar(data: bytes) -> None:
    """Let the node be this, for what keeps HAMi's annotations on it."""
    _api_view(data, lambda api: Registrar(api.state, api.kubernetes).run)


def _api_labeller(data: bytes) -> None:
    """Let the node be this, for what keeps its labels."""
    always = Registrations(lambda: True, Broadcast())
    wanted = Wanted([*LabelSet], "580.95.05", remove=True)
    _api_view(data, lambda api: Labeller(api.state, api.kubernetes, wanted, always).run)


def _api_view(
    data: bytes, view: Callable[[_Api], Callable[..., Coroutine[Any, Any, None]]]
) -> None:
    api = _api()
    api.server.answer = lambda _: _http_answer(data)
    before = api.server.answered

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(view(api))
            await anyio.to_thread.run_sync(lambda: api.server.wait_for(before + 3, 0.1))
            tasks.cancel_scope.cancel()

    _portal().call(run)


def _api_allocator(data: bytes) -> None:
    """Let the pod that waits for devices be this."""
    api = _api()
    listed = b'{"items": [' + data + b"]}"

    def answer(request: bytes) -> bytes:
        path = request.split(b" ", 2)[1] if request.count(b" ") > 1 else b""
        if b"/nodes/" in path:
            return _http_answer(seeds.NODES[0])
        return _http_answer(listed if b"fieldSelector" in path else data)

    api.server.answer = answer
    resource = next(each for each in api.state.node.resources if each.hami and each.has_slots)
    allocator = Allocator(api.state, api.kubernetes, seconds=0.2)
    try:
        _portal().call(allocator.assign, resource, [["x"]])
    except DeviceError:
        return


_CALLS = [frames.request(method, b"") for method in _METHODS] + [
    frames.request(_METHODS[0], wire.allocate_request([["GPU-1-0"]]))
]
_MESSAGES = [
    bytes([number]) + payload
    for number in range(len(_METHODS))
    for payload in (b"", wire.allocate_request([["a", "b"], ["c"]]))
]
_WATCH: list[Any] = [
    {"type": kind, "object": seeds.node()} for kind in ("ADDED", "MODIFIED", "BOOKMARK")
]
_WATCH.append({"type": "ERROR", "object": {"code": 410, "message": "too old"}})
_WATCHES = [b"\n".join(json.dumps(each).encode() for each in _WATCH)]
_WATCHES += [json.dumps(each).encode() for each in _WATCH]
_GETS = [
    b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
    b"HEAD /readyz?verbose=1 HTTP/1.0\r\n\r\n",
    b"POST /healthz HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
]
_ANSWERS = [frames.answer(b""), frames.answer(None, 2, b"no"), frames.answer(b"\x0a\x00")]

TARGETS = (
    Target("http-bytes", _http, (), _GETS, [b"\r\n", b"\r\n\r\n", b" HTTP/1.1"], is_guided=False),
    Target("control-bytes", _control, (), [r.encode() for r in seeds.REQUESTS], is_guided=False),
    Target("grpc-bytes", _grpc_bytes, (), _CALLS, is_guided=False),
    Target("grpc-messages", _grpc_message, (), _MESSAGES, is_guided=False),
    Target("kubelet-bytes", _registration, (KubeletError,), _ANSWERS, is_guided=False),
    Target("kubelet-words", _refusal, (KubeletError,), [b"no", b"a" * 300], is_guided=False),
    Target("holders-bytes", _holders, (), _ANSWERS, is_guided=False),
    Target(
        "holders-messages",
        _holders_message,
        (),
        [wire.pod_resources({"p1": {"a/b": ["1", "2"]}})],
        is_guided=False,
    ),
    Target(
        "api-bytes",
        _api_bytes,
        (ClusterError,),
        [_http_answer(seeds.NODES[0]), _http_answer(b'{"message": "no"}', 403)],
        [b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"HTTP/1.1 100 "],
        is_guided=False,
    ),
    Target("api-objects", _api_objects, (), seeds.OBJECTS, is_guided=False),
    Target("api-watch", _api_watch, (), _WATCHES, [b'{"type":"MODIFIED"}\n'], is_guided=False),
    Target("api-node", _api_registrar, (), seeds.NODES, is_guided=False),
    Target("api-labels", _api_labeller, (), seeds.LABELLED_NODES, is_guided=False),
    Target("api-pod", _api_allocator, (), seeds.PODS, is_guided=False),
)
