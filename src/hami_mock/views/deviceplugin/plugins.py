"""The plugins of all resources: as many as the state has resources, at any time."""

from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from hami_mock.kit.broadcast import Broadcast
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.views.deviceplugin.allocation import Assigner
from hami_mock.views.deviceplugin.directory import SocketDirectory
from hami_mock.views.deviceplugin.lifecycle import Phase, PluginLifecycle
from hami_mock.views.deviceplugin.service import DevicePluginService, GivesWith


class Plugins:
    """Starts a lifecycle for each resource that comes and stops that of each one that goes."""

    name = "device plugins"

    def __init__(
        self,
        state: NodeState,
        directory: SocketDirectory,
        assigner: Assigner | None = None,
        gives: GivesWith | None = None,
    ) -> None:
        self._state = state
        self._directory = directory
        self._service = partial(DevicePluginService, assigner=assigner, gives=gives)
        self.registrations = Broadcast()
        """Told whenever the kubelet has taken the list of a resource, or a plugin has ended."""
        self.all = [self._make(resource) for resource in self._resources]
        """The plugins in the order of the resources; always the same list."""
        self._ended: set[str] = set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with anyio.create_task_group() as tasks:
            for plugin in self.all:
                await tasks.start(plugin.run)
            task_status.started()
            while True:
                change = self._state.changes.next()
                await self._follow(tasks)
                await change.wait()

    def status(self) -> dict[str, Any]:
        watched = sum(plugin.phase is Phase.WATCHED for plugin in self.all)
        return {"resources": len(self.all), "watched": watched}

    def has(self, name: str) -> bool:
        """Tell whether a resource has a plugin, be it one that is ending."""
        return any(plugin.resource.name == name for plugin in self.all)

    def had(self, name: str) -> bool:
        """Tell whether a resource had a plugin before, that has ended."""
        return name in self._ended

    def are_registered(self) -> bool:
        """Tell whether the kubelet has had the list of every resource that the node has now."""
        had = {(plugin.resource.name, plugin.offer) for plugin in self.all if plugin.was_watched}
        return all((each.name, each.offer) in had for each in self._resources)

    @property
    def _resources(self) -> list[Resource]:
        return [each for each in self._state.node.resources if not each.in_status]

    async def _follow(self, tasks: TaskGroup) -> None:
        resources = self._resources
        offers = {resource.name: resource.offer for resource in resources}
        gone = [p for p in self.all if offers.get(p.resource.name) != p.offer]
        for plugin in gone:
            plugin.stop()
        for plugin in gone:
            # Before another one registers the same name: the end of an old list takes the new one
            # along.
            await plugin.ended.wait()
        known = {plugin.resource.name: plugin for plugin in self.all if plugin not in gone}
        self.all[:] = [known.get(r.name) or self._make(r) for r in resources]
        if gone:
            self._ended.update(plugin.resource.name for plugin in gone)
            self.registrations.send()
        for plugin in self.all:
            if plugin.resource.name not in known:
                await tasks.start(plugin.run)

    def _make(self, resource: Resource) -> PluginLifecycle:
        return PluginLifecycle(
            resource,
            self._state,
            self._directory,
            self._service,
            on_watched=self.registrations.send,
        )
