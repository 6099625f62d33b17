"""Nodes and pods at the API server, as plain JSON.

The client library's models are passed by: they cost much to build, refuse objects that lack a field
they know, and lose those they don't.
"""

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from random import uniform
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import anyio

from hami_mock.cluster import objects
from hami_mock.cluster.objects import Event, Object, annotations_of, labels_of
from hami_mock.cluster.requests import Request, read, receive, sending
from hami_mock.errors import ClusterError, HamiMockError, StartError
from hami_mock.kit.concurrency import Backoff
from hami_mock.kit.text import cut
from hami_mock.kubelet.limits import Version, parse_version

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient

__all__ = [
    "Change",
    "Kubernetes",
    "Object",
    "annotations_of",
    "is_configured",
    "kubelet_version",
    "labels_of",
]

WATCH_SECONDS = 50
"""How long the server should keep a watch open, at the most."""
GRACE_SECONDS = 8.0
"""After that and so much silence, nobody is there: a connection may die without a word."""
_STEADY_SECONDS = 10.0
"""A watch that lasted this long was no failure, whatever ended it."""
Metadata = Mapping[str, Mapping[str, str | None]]
"""Annotations and labels to set, or to remove where they are None."""
_USER_CONFIG = Path("~/.kube/config")

_log = logging.getLogger(__name__)


def is_configured() -> bool:
    """Tell whether there is an API server to ask: this is a pod, or $KUBECONFIG names one."""
    return "KUBERNETES_SERVICE_HOST" in os.environ or "KUBECONFIG" in os.environ


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


class Change(NamedTuple):
    """What a watch yields: all things that there are now, or one that has changed or is gone."""

    things: list[Object]
    is_all: bool = False
    is_gone: bool = False


_ReadAll = Callable[[], Awaitable[tuple[str, list[Object]]]]
"""Reads what is to be watched, and the version to watch it from."""


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
            raise StartError(f"the API server can't be used: {cut(reason)}") from error
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
        return await self.patch_node(name, {"annotations": annotations}, resource_version)

    async def patch_node(
        self, name: str, metadata: Metadata, resource_version: str | None = None
    ) -> Object:
        """Do the same with its labels, or with both at once."""
        return await self._patch(Request("patch", "nodes", name), metadata, resource_version)

    async def patch_pod_annotations(
        self,
        namespace: str,
        name: str,
        annotations: Mapping[str, str | None],
        resource_version: str | None = None,
    ) -> Object:
        """Do the same with a pod."""
        request = Request("patch", "pods", name, namespace)
        return await self._patch(request, {"annotations": annotations}, resource_version)

    async def create_event(self, namespace: str, event: Object) -> None:
        self.writes += 1
        request = Request("create", "events", namespace=namespace)
        async with sending(self._client, request, event):
            pass  # whatever the answer, it is made

    async def watch_node(self, name: str) -> AsyncGenerator[Object, None]:
        """Yield a node now and after each change, for ever; close it with `aclosing`."""

        async def single() -> tuple[str, list[Object]]:
            node = await self.node(name)
            return node["metadata"]["resourceVersion"], [node]

        query = {"fieldSelector": f"metadata.name={name}"}
        request = Request("watch", "nodes", name, query=query)
        async with aclosing(self._watch(request, f"node {name}", single)) as changes:
            async for change in changes:
                yield change.things[0]

    async def watch_pods(self, node_name: str) -> AsyncGenerator[Change, None]:
        """Yield the pods that are bound to a node, and each change of one, in the same way."""
        query = {"fieldSelector": f"spec.nodeName={node_name}"}

        async def listed() -> tuple[str, list[Object]]:
            request = Request("list", "pods", query=query)
            async with sending(self._client, request) as response:
                return objects.listed(request, await read(request, response))

        request = Request("watch", "pods", query=query)
        async with aclosing(self._watch(request, f"pods of node {node_name}", listed)) as changes:
            async for change in changes:
                yield change

    async def _watch(
        self, request: Request, what: str, read_all: _ReadAll
    ) -> AsyncGenerator[Change, None]:
        """Yield what is read now, and each change, for ever.

        A watch that the server ends in order goes on where it was. Whatever else ends it (410, when
        the server has forgotten where we were), all is read again and watched from there. Changes
        in between become one.
        """
        backoff = Backoff()
        version = yielded = reason = ""
        while True:
            since, least = anyio.current_time(), 0.0
            try:
                if not version:
                    version, things = await read_all()
                    reason = ""
                    if version != yielded:
                        yielded = version
                        yield Change(things, is_all=True)
                async with aclosing(self._events(request, version)) as events:
                    async for event in events:
                        version = event.version
                        if event.thing is not None:
                            yielded = version
                            yield Change([event.thing], is_gone=event.is_gone)
            except ClusterError as error:
                version, least = "", error.retry_after
                if str(error) != reason:
                    # Once per reason, not once per try: an API server may be away for hours.
                    _log.warning("can't watch %s: %s", what, error)
                    reason = str(error)
            if anyio.current_time() - since > _STEADY_SECONDS:
                backoff.reset()
            await anyio.sleep(backoff.next(least))

    async def _events(self, request: Request, version: str) -> AsyncGenerator[Event, None]:
        """Yield the events since a version, until the server ends the watch."""
        # Not all agents of a cluster at the same moment.
        seconds = round(WATCH_SECONDS * uniform(0.8, 1.0))
        query = {
            **request.query,
            "watch": "1",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
            "allowWatchBookmarks": "true",
        }
        request = replace(request, query=query)
        async with sending(self._client, request, silence=seconds + GRACE_SECONDS) as response:
            async for line in receive(request, response):
                event = objects.event(request, line)
                if event.is_gone and request.name:
                    raise request.refusal(404, "it was deleted")
                yield event

    async def _patch(self, request: Request, metadata: Metadata, version: str | None) -> Object:
        patch: dict[str, Any] = {kind: dict(values) for kind, values in metadata.items()}
        if version is not None:
            patch["resourceVersion"] = version
        self.writes += 1
        return await self._send(request, {"metadata": patch})

    async def _list(self, request: Request) -> list[Object]:
        async with sending(self._client, request) as response:
            return objects.several(request, await read(request, response))

    async def _send(self, request: Request, body: Object | None = None) -> Object:
        async with sending(self._client, request, body) as response:
            return objects.single(request, await read(request, response))


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
