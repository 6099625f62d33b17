"""Deletes what a fleet has made, whoever has: all that has its label."""

from contextlib import aclosing, suppress
from functools import partial

import anyio

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.resources import NODES, PODS, RESOURCE_SLICES, Resource
from hami_mock.errors import ClusterError, NotAllowed, NotThere
from hami_mock.fleet import names
from hami_mock.fleet.budget import Budget
from hami_mock.kit.concurrency import Backoff

_WRITERS = 16
_TRIES = 8


class Removal:
    """Deletes pods, if they should go, then slices, then nodes."""

    def __init__(
        self, kubernetes: Kubernetes, fleet: str, budget: Budget, *, with_pods: bool
    ) -> None:
        self._kubernetes = kubernetes
        self._label = f"{names.FLEET}={fleet}"
        self._budget = budget
        self._with_pods = with_pods
        self.gone = {"nodes": 0, "slices": 0, "pods": 0}
        self.found = 0
        """How many nodes there were."""
        self.others = 0
        """How many nodes are there afterwards: somebody makes them anew."""

    async def run(self) -> None:
        """Raises ClusterError if the API server doesn't do it."""
        nodes = [name for _, name in await self._names(NODES)]
        self.found = len(nodes)
        if self._with_pods:
            await self._delete_all("pods", PODS, await self._pods(frozenset(nodes)))
        await self._delete_all("slices", RESOURCE_SLICES, await self._slices())
        await self._delete_all("nodes", NODES, [("", name) for name in nodes])
        self.others = len(await self._names(NODES))

    async def _slices(self) -> list[tuple[str, str]]:
        try:
            return await self._names(RESOURCE_SLICES)
        except (NotThere, NotAllowed):
            return []  # a cluster without DRA, or one where we never could write any

    async def _names(self, resource: Resource) -> list[tuple[str, str]]:
        found = []
        async with aclosing(self._kubernetes.pages(resource, labels=self._label)) as pages:
            async for page in pages:
                found += [("", thing["metadata"]["name"]) for thing in page]
        return found

    async def _pods(self, nodes: frozenset[str]) -> list[tuple[str, str]]:
        found = []
        async with aclosing(self._kubernetes.pages(PODS, "spec.nodeName!=")) as pages:
            async for page in pages:
                found += [
                    (pod["metadata"]["namespace"], pod["metadata"]["name"])
                    for pod in page
                    if pod["spec"].get("nodeName") in nodes
                ]
        return found

    async def _delete_all(
        self, what: str, resource: Resource, things: list[tuple[str, str]]
    ) -> None:
        waiting = iter(things)

        async def delete_each() -> None:
            for namespace, name in waiting:
                await self._delete(resource, namespace, name)
                self.gone[what] += 1

        async with anyio.create_task_group() as tasks:
            for _ in range(min(_WRITERS, len(things))):
                tasks.start_soon(delete_each)

    async def _delete(self, resource: Resource, namespace: str, name: str) -> None:
        grace = 0 if resource is PODS else None
        backoff = Backoff()
        delete = partial(self._kubernetes.delete, resource, name, namespace, grace=grace)
        for attempt in range(_TRIES):
            try:
                with suppress(NotThere):
                    await self._budget.write(delete)
                return
            except ClusterError as error:
                if attempt + 1 == _TRIES or isinstance(error, NotAllowed):
                    raise
                await anyio.sleep(backoff.next(error.retry_after))
