"""Nodes and pods at the API server, as plain JSON.

The client library's models are passed by: they cost much to build, refuse objects that lack a field
they know, and lose those they don't.
"""

import json
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio

from hami_mock.cluster.requests import Request, receive, refusal, sending
from hami_mock.errors import Away, ClusterError, HamiMockError, StartError
from hami_mock.kit.concurrency import Backoff
from hami_mock.kubelet.limits import Version, parse_version

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient

Object = dict[str, Any]
"""A node or a pod."""

WATCH_SECONDS = 300
"""How long the server should keep a watch open; then the object is read again."""
_SILENCE_SECONDS = WATCH_SECONDS + 30.0
_STEADY_SECONDS = 10.0
"""A watch that lasted this long was no failure, whatever ended it."""
_USER_CONFIG = Path("~/.kube/config")

_log = logging.getLogger(__name__)


def is_configured() -> bool:
    """Tell whether there is an API server to ask: this is a pod, or $KUBECONFIG names one."""
    return "KUBERNETES_SERVICE_HOST" in os.environ or "KUBECONFIG" in os.environ


def annotations_of(thing: Object) -> dict[str, str]:
    return thing["metadata"].get("annotations") or {}


async def kubelet_version(node_name: str) -> Version | None:
    """Return the version of a node's kubelet; None if it can't be had, and the log says why."""
    try:
        async with Kubernetes() as cluster:
            node = await cluster.node(node_name)
        info = node.get("status", {}).get("nodeInfo", {})
        return parse_version(str(info.get("kubeletVersion", "")))
    except (HamiMockError, ValueError, AttributeError) as error:
        _log.warning("can't find out the kubelet's version on node %s: %s", node_name, error)
        return None


class Kubernetes:
    """A connection to the API server. Every request is bounded in time, and raises ClusterError."""

    def __init__(self) -> None:
        self.writes = 0
        """How many patches and new objects were sent."""

    async def __aenter__(self) -> Self:
        """Connect. Raises StartError if nothing says where to, or as whom."""
        try:
            self._client = await _client()
        except StartError:
            raise
        except Exception as error:
            # Whatever it is (the library raises its own, YAML's, OS errors): no agent without it.
            reason = getattr(error, "reason", None) or f"{type(error).__name__}: {error}"
            raise StartError(f"the API server can't be used: {reason}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def node(self, name: str) -> Object:
        return await self._send(Request("get", "nodes", name))

    async def pod(self, namespace: str, name: str) -> Object:
        return await self._send(Request("get", "pods", name, namespace))

    async def nodes(self) -> list[Object]:
        return await self._list(Request("list", "nodes"))

    async def pods_on(self, node_name: str = "") -> list[Object]:
        """Return the pods that are bound to a node; without one, all pods."""
        query = {"fieldSelector": f"spec.nodeName={node_name}"} if node_name else {}
        return await self._list(Request("list", "pods", query=query))

    async def patch_node_annotations(
        self, name: str, annotations: Mapping[str, str | None], resource_version: str | None = None
    ) -> Object:
        """Set annotations of a node, or remove those that are None; return the node.

        With a resource version, raises Conflict if the node isn't that one any more.
        """
        return await self._patch(Request("patch", "nodes", name), annotations, resource_version)

    async def patch_pod_annotations(
        self,
        namespace: str,
        name: str,
        annotations: Mapping[str, str | None],
        resource_version: str | None = None,
    ) -> Object:
        """Do the same with a pod."""
        request = Request("patch", "pods", name, namespace)
        return await self._patch(request, annotations, resource_version)

    async def create_event(self, namespace: str, event: Object) -> None:
        self.writes += 1
        await self._send(Request("create", "events", namespace=namespace), event)

    async def watch_node(self, name: str) -> AsyncGenerator[Object, None]:
        """Yield a node now and after each change, for ever; close it with `aclosing`.

        Whatever ends a watch (the server does so now and then; 410, when it has forgotten where we
        were), the node is read again and watched from there. Changes in between become one.
        """
        backoff = Backoff()
        last_version = reason = ""
        while True:
            since = anyio.current_time()
            try:
                node = await self.node(name)
                version = node["metadata"]["resourceVersion"]
                if version != last_version:
                    last_version = version
                    yield node
                reason = ""
                async with aclosing(self._changes(name, version)) as changes:
                    async for node in changes:
                        last_version = node["metadata"]["resourceVersion"]
                        yield node
            except ClusterError as error:
                if str(error) != reason:
                    # Once per reason, not once per try: an API server may be away for hours.
                    _log.warning("can't watch node %s: %s", name, error)
                    reason = str(error)
            if anyio.current_time() - since > _STEADY_SECONDS:
                backoff.reset()
            await anyio.sleep(backoff.next())

    async def _changes(self, name: str, version: str) -> AsyncGenerator[Object, None]:
        """Yield a node after each change from that version on, until the server ends the watch."""
        query = {
            "watch": "1",
            "fieldSelector": f"metadata.name={name}",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
            "allowWatchBookmarks": "true",
        }
        request = Request("watch", "nodes", name, query=query)
        async with sending(self._client, request, silence=_SILENCE_SECONDS) as response:
            async for line in receive(request, response):
                event = _read(request, line)
                kind, thing = event.get("type"), event.get("object") or {}
                if kind == "ERROR":
                    raise refusal(request, thing.get("code") or 0, thing.get("message", ""))
                if kind in ("ADDED", "MODIFIED"):
                    yield thing

    async def _patch(
        self, request: Request, annotations: Mapping[str, str | None], version: str | None
    ) -> Object:
        metadata: dict[str, Any] = {"annotations": dict(annotations)}
        if version is not None:
            metadata["resourceVersion"] = version
        self.writes += 1
        return await self._send(request, {"metadata": metadata})

    async def _list(self, request: Request) -> list[Object]:
        return list((await self._send(request)).get("items") or ())

    async def _send(self, request: Request, body: Object | None = None) -> Object:
        async with sending(self._client, request, body) as response:
            text = b"\n".join([line async for line in receive(request, response)])
        return _read(request, text)


async def _client() -> "ApiClient":
    """Connect as a pod does, or as $KUBECONFIG says."""
    # Here: it takes longer to load, and more memory, than all the rest of the agent.
    from kubernetes_asyncio import client, config

    if "KUBERNETES_SERVICE_HOST" in os.environ:
        config.load_incluster_config()  # type: ignore[no-untyped-call]
    elif "KUBECONFIG" not in os.environ and not _USER_CONFIG.expanduser().exists():
        raise StartError(
            f"no cluster found: this is not a pod, KUBECONFIG is not set, and there is "
            f"no {_USER_CONFIG}"
        )
    else:
        # By name: the library remembers the variable as it was when it was imported.
        await config.load_kube_config(config_file=os.environ.get("KUBECONFIG"))
    return client.ApiClient()


def _read(request: Request, text: bytes) -> Object:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Away(f"can't {request}: the answer is not JSON, or is cut off") from error
    if not isinstance(found, dict):
        raise Away(f"can't {request}: the answer is not an object")
    return found
