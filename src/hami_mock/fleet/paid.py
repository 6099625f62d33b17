"""The API server for parts that were written for one node: each of their writes is paid for."""

from collections.abc import Sequence

from hami_mock.cluster.kubernetes import Kubernetes, Object
from hami_mock.cluster.resources import Resource
from hami_mock.fleet.budget import Budget


class Paid(Kubernetes):
    """Asks through another connection, and spends the fleet's budget of writes."""

    def __init__(self, through: Kubernetes, budget: Budget) -> None:
        super().__init__()
        self._through = through
        self._budget = budget

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return await self._through.get(resource, name, namespace)

    async def create(self, resource: Resource, thing: Object) -> Object:
        return await self._budget.write(lambda: self._through.create(resource, thing))

    async def update(self, resource: Resource, thing: Object, subresource: str = "") -> Object:
        return await self._budget.write(lambda: self._through.update(resource, thing, subresource))

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, grace: int | None = None
    ) -> None:
        delete = self._through.delete
        await self._budget.write(lambda: delete(resource, name, namespace, grace=grace))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Object | Sequence[Object],
        namespace: str = "",
        subresource: str = "",
    ) -> Object:
        through = self._through
        return await self._budget.write(
            lambda: through.patch(resource, name, patch, namespace, subresource)
        )
