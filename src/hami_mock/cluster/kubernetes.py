"""Nodes, pods and other objects at the API server, as plain JSON."""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import uniform
from typing import TYPE_CHECKING, Self

import anyio

from hami_mock.cluster import objects
from hami_mock.cluster.objects import (
    Change,
    Event,
    Object,
    Page,
    annotations_of,
    labels_of,
    revision,
)
from hami_mock.cluster.requests import Body, Request
from hami_mock.cluster.resources import EVENTS, NODES, PODS, SERVER_VERSION, Resource
from hami_mock.errors import ClusterError, Outdated
from hami_mock.kit.concurrency import Backoff
from hami_mock.kubelet.limits import Version

if TYPE_CHECKING:
    from hami_mock.cluster.connection import Connection

__all__ = [
    "Change",
    "Kubernetes",
    "Object",
    "annotations_of",
    "is_configured",
    "labels_of",
    "revision",
]

WATCH_SECONDS = 50
"""How long the server should keep a watch open, at the most."""
GRACE_SECONDS = 8.0
"""After that and so much silence, nobody is there: a connection may die without a word."""
PAGE = 250
"""How many objects a page has where there may be thousands: 250 nodes are a few megabytes."""
_STEADY_SECONDS = 10.0
"""A watch that lasted this long was no failure, whatever ended it."""
Metadata = Mapping[str, Mapping[str, str | None]]
"""Annotations and labels to set, or to remove where they are None."""

_log = logging.getLogger(__name__)


def is_configured() -> bool:
    """Tell whether there is an API server to ask: this is a pod, or $KUBECONFIG names one."""
    return "KUBERNETES_SERVICE_HOST" in os.environ or bool(os.environ.get("KUBECONFIG"))


Tell = Callable[[str], None]
"""Hears why things can't be watched, and "" when they can."""


def _nobody(_: str) -> None:
    """Hear it, and do nothing: the log says it anyhow."""


_ReadAll = Callable[[], AsyncGenerator[Page, None]]
"""Reads what is to be watched, page by page, with the version to watch it from."""


class Kubernetes:
    """A connection to the API server. Every request is bounded in time, and raises ClusterError."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        """Make one for the cluster of a kubeconfig; without any, for that of the environment."""
        self._kubeconfig = kubeconfig
        self._connection: Connection
        self.writes = 0
        """How many changes were sent."""

    async def __aenter__(self) -> Self:
        """Connect. Raises StartError if nothing says where to, or as whom."""
        # Here: few commands need it, and it takes time to load.
        from hami_mock.cluster.connection import connect

        self._connection = await connect(self._kubeconfig)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    async def node(self, name: str) -> Object:
        return await self.get(NODES, name)

    async def pod(self, namespace: str, name: str) -> Object:
        return await self.get(PODS, name, namespace)

    async def nodes(self) -> list[Object]:
        return await self.list_all(NODES)

    async def pods_on(self, node_name: str = "") -> list[Object]:
        """Return the pods that are bound to a node; without one, all pods."""
        return await self.list_all(PODS, f"spec.nodeName={node_name}" if node_name else "")

    async def server_version(self) -> Version:
        """Return the version of the API server; everybody may ask for it."""
        request = Request("get", SERVER_VERSION)
        return objects.git_version(request, await self._ask(request))

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
        return await self.patch(NODES, name, _metadata(metadata, resource_version))

    async def patch_node_status(self, name: str, patch: Object | Sequence[Object]) -> Object:
        """Patch a node's status, and the metadata along with it; return the node."""
        return await self.patch(NODES, name, patch, subresource="status")

    async def check_node_status(self, name: str) -> None:
        """See whether a node's status may be patched. Raises ClusterError if not."""
        query = {"dryRun": "All"}
        await self._ask(Request("patch", NODES, name, query=query, subresource="status"), {})

    async def patch_pod_annotations(
        self,
        namespace: str,
        name: str,
        annotations: Mapping[str, str | None],
        resource_version: str | None = None,
    ) -> Object:
        """Do the same as with a node."""
        patch = _metadata({"annotations": annotations}, resource_version)
        return await self.patch(PODS, name, patch, namespace)

    async def create_event(self, namespace: str, event: Object) -> None:
        await self._tell(Request("create", EVENTS, namespace=namespace), event)

    async def watch_node(self, name: str) -> AsyncGenerator[Object, None]:
        """Yield a node now and after each change, for ever; close it with `aclosing`."""

        async def single() -> AsyncGenerator[Page, None]:
            node = await self.node(name)
            yield Page(node["metadata"]["resourceVersion"], [node])

        query = {"fieldSelector": f"metadata.name={name}"}
        request = Request("watch", NODES, name, query=query)
        async with aclosing(self._watch(request, f"node {name}", single)) as changes:
            async for change in changes:
                yield change.things[0]

    def watch_pods(self, node_name: str, tell: Tell = _nobody) -> AsyncGenerator[Change, None]:
        """Yield the pods that are bound to a node, and each change of one, in the same way.

        `tell` hears why that can't be done now, and "" as soon as it can.
        """
        request = Request("watch", PODS, query=_selecting(f"spec.nodeName={node_name}"))
        what = f"pods of node {node_name}"
        return self._watch(request, what, self._reading(request, 0), tell=tell)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        request = Request("get", resource, name, namespace)
        return objects.single(request, await self._ask(request))

    async def list_all(
        self, resource: Resource, fields: str = "", namespace: str = ""
    ) -> list[Object]:
        """Return the objects of a kind; `fields` selects some ("spec.driver=a,spec.nodeName=b")."""
        request = Request("list", resource, "", namespace, _selecting(fields))
        return objects.several(request, await self._ask(request))

    async def pages(
        self, resource: Resource, fields: str = "", labels: str = "", limit: int = PAGE
    ) -> AsyncGenerator[list[Object], None]:
        """Yield the objects of a kind page by page; `labels` selects some too ("a=b,c")."""
        request = Request("list", resource, query=_selecting(fields, labels))
        async with aclosing(self._pages(request, limit)) as pages:
            async for page in pages:
                yield page.things

    def watch(
        self,
        resource: Resource,
        fields: str = "",
        namespace: str = "",
        *,
        what: str = "",
        tell: Tell = _nobody,
    ) -> AsyncGenerator[Change, None]:
        """Yield these objects, and each change of one, for ever; close it with `aclosing`.

        `what` is what the log calls them, if it can't watch them; `tell` as in `watch_pods`.
        """
        request = Request("watch", resource, "", namespace, _selecting(fields))
        return self._watch(request, what or str(resource), self._reading(request, 0), tell=tell)

    def watch_pages(
        self, resource: Resource, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Change, None]:
        """Do the same where there are thousands: all of them come in pages.

        And they are read again only if it must be: a watch that broke off goes on where it was.
        """
        request = Request("watch", resource, query=_selecting(fields, labels))
        return self._watch(request, str(resource), self._reading(request, PAGE), resumes=True)

    async def create(self, resource: Resource, thing: Object) -> Object:
        """Make an object, in the namespace that its metadata has; return it as it is now.

        Raises Conflict if there is one of that name.
        """
        return await self._changed(_about("create", resource, thing), thing)

    async def update(self, resource: Resource, thing: Object, subresource: str = "") -> Object:
        """Put an object in the place of the one of that name; return it as it is now.

        Raises Conflict if its resource version isn't that of the one there.
        """
        return await self._changed(_about("update", resource, thing, subresource), thing)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Object | Sequence[Object],
        namespace: str = "",
        subresource: str = "",
    ) -> Object:
        """Patch an object (a mapping: merge patch; a list: JSON patch); return it as it is now."""
        request = Request("patch", resource, name, namespace, subresource=subresource)
        return await self._changed(request, patch)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, grace: int | None = None
    ) -> None:
        """Delete an object; a pod may have so many seconds of grace. Raises NotThere if none is."""
        query = {} if grace is None else {"gracePeriodSeconds": str(grace)}
        await self._tell(Request("delete", resource, name, namespace, query))

    def _reading(self, request: Request, limit: int) -> _ReadAll:
        return partial(self._pages, replace(request, verb="list"), limit)

    async def _pages(self, request: Request, limit: int) -> AsyncGenerator[Page, None]:
        """Yield what a request lists; a limit of 0 means one page, whatever it has."""
        limited = {**request.query, "limit": str(limit)} if limit else request.query
        page: Page | None = None
        while page is None or page.more:
            more = {"continue": page.more} if page else {}
            request = replace(request, query={**limited, **more})
            listed = objects.listed(request, await self._ask(request))
            page = listed._replace(is_first=page is None)
            yield page

    async def _watch(
        self,
        request: Request,
        what: str,
        read_all: _ReadAll,
        *,
        resumes: bool = False,
        tell: Tell = _nobody,
    ) -> AsyncGenerator[Change, None]:
        """Yield what is read now, and each change, for ever.

        A watch that the server ends in order goes on where it was. Whatever else ends it (410, when
        the server has forgotten where we were), all is read again and watched from there. Changes
        in between become one. One that `resumes` goes on also where it broke off, if it had got
        anywhere.
        """
        backoff = Backoff()
        version = yielded = reason = begun = ""
        while True:
            since, least = anyio.current_time(), 0.0
            try:
                if not version:
                    async with aclosing(read_all()) as pages:
                        async for page in pages:
                            newest = page.version
                            tell("")
                            if newest != yielded:
                                yield page.change
                    version, yielded, reason = newest, newest, ""
                begun = version
                async with aclosing(self._events(request, version)) as events:
                    async for event in events:
                        version = event.version
                        tell("")
                        if event.thing is not None:
                            yielded = version
                            yield Change([event.thing], is_gone=event.is_gone)
            except ClusterError as error:
                is_lost = isinstance(error, Outdated) or version == begun
                version = version if resumes and not is_lost else ""
                least = error.retry_after
                reason = _told(what, error, reason)
                tell(reason)
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
        async with aclosing(self._connection.lines(request, seconds + GRACE_SECONDS)) as lines:
            async for line in lines:
                event = objects.event(request, line)
                if event.is_gone and request.name:
                    raise request.refusal(404, "it was deleted")
                yield event

    async def _tell(self, request: Request, body: Body = None) -> None:
        self.writes += 1
        await self._ask(request, body)

    async def _changed(self, request: Request, body: Body) -> Object:
        self.writes += 1
        return objects.single(request, await self._ask(request, body))

    async def _ask(self, request: Request, body: Body = None) -> bytes:
        return await self._connection.ask(request, body)


def _told(what: str, error: ClusterError, told: str) -> str:
    """Log why something can't be watched: once per reason, for it may be so for hours."""
    if str(error) != told:
        _log.warning("can't watch %s: %s", what, error)
    return str(error)


def _about(verb: str, resource: Resource, thing: Object, subresource: str = "") -> Request:
    # A new object may leave its name to the server.
    name, space = (thing["metadata"].get(key, "") for key in ("name", "namespace"))
    return Request(verb, resource, name, space, subresource=subresource)


def _metadata(metadata: Metadata, version: str | None) -> Object:
    """Return a merge patch of an object's metadata."""
    patch: Object = {kind: dict(values) for kind, values in metadata.items()}
    if version is not None:
        patch["resourceVersion"] = version
    return {"metadata": patch}


def _selecting(fields: str, labels: str = "") -> Mapping[str, str]:
    query = {"fieldSelector": fields, "labelSelector": labels}
    return {key: value for key, value in query.items() if value}
