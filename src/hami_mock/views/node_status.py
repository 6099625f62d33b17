"""Units as numbers in the Node's status: no device, no list, and no limit to how many.

The kubelet copies what it finds in the capacity to allocatable, unless it believes that a device
plugin has the resource. It believes so for five minutes after the plugin has gone, and would refuse
pods. So what may have been a plugin's is written to the capacity alone, and its allocatable is 0:
when it shows up there, the kubelet itself has let go of it.
"""

import logging
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes, annotations_of
from hami_mock.errors import ClusterError
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import first_of
from hami_mock.node.amounts import amount
from hami_mock.node.fault_kinds import DOWN
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.sources.annotated.node_object import NodeObject
from hami_mock.views import status_note
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.node_keeper import NodeKeeper
from hami_mock.views.status_note import ANNOTATION

_log = logging.getLogger(__name__)


@dataclass
class StatusResource:
    """A resource in the Node's status, and how far it has come."""

    resource: Resource
    keeper: NodeKeeper
    is_offered: bool = False
    waits_for: str = ""
    counters: ResourceCounters = field(default_factory=ResourceCounters)

    @property
    def phase(self) -> str:
        return "in status" if self.is_offered else "waiting"

    @property
    def reason(self) -> str:
        return "" if self.is_offered else self.waits_for or self.keeper.error or ""


class PluginsSeen(NamedTuple):
    """Which resources have a device plugin, and which had one, that has ended.

    `registrations` tell when one ends.
    """

    registrations: Broadcast
    has: Callable[[str], bool] = lambda _: False
    had: Callable[[str], bool] = lambda _: False


class NodeStatus:
    """Writes the amounts, and puts them right when somebody else has changed them."""

    name = "node status"

    def __init__(
        self,
        state: NodeState,
        kubernetes: Kubernetes,
        plugins: PluginsSeen,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        """Make one that tells when the node has begun or ceased to show a resource.

        A resource that still has a device plugin is left to it. `forget` is called in the end if
        the node shows nothing of ours any more.
        """
        self._state = state
        self._kubernetes = kubernetes
        self._plugins = plugins
        self._forget = forget
        self._keeper = NodeKeeper(kubernetes, state.node.name, "units in the Node's status")
        self._offerings: dict[str, StatusResource] = {}
        self._written: Mapping[str, int] = {}
        self._confirmed: set[str] = set()
        """What the kubelet doesn't take for a device plugin's."""
        self._doubted: set[str] = set()
        """What it may take for one's, and has been seen with another allocatable than it gets."""

    def offering(self, resource: Resource) -> StatusResource:
        """Return how far a resource has come."""
        found = self._offerings.setdefault(resource.name, StatusResource(resource, self._keeper))
        found.resource = resource
        return found

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the amounts from when there are any until cancelled; then take them away.

        What an agent before this one has left, and isn't wanted any more, goes too.
        """
        task_status.started()
        if not self._resources and not await self._has_leftovers():
            await self._state.wait_until(lambda: bool(self._resources))
        try:
            await self._keeper.run(self._keep_up)
        finally:
            if await self._withdraw():
                self._forget()

    def status(self) -> dict[str, Any]:
        return {"resources": dict(self._written), "error": self._keeper.error}

    @property
    def not_ready(self) -> str:
        return self._keeper.not_ready if self._resources or self._written else ""

    @property
    def _resources(self) -> list[Resource]:
        return [each for each in self._state.node.resources if each.in_status]

    async def _has_leftovers(self) -> bool:
        name = self._state.node.name
        try:
            return ANNOTATION in annotations_of(await self._kubernetes.node(name))
        except ClusterError as error:
            _log.info("can't see whether units are left over in the status of %s: %s", name, error)
            return False

    async def _withdraw(self) -> bool:
        """Take the amounts away; return whether it is certain that none are left."""
        if self._written:
            gone = _patch({}, {}, self._written.keys(), None)
            return await self._keeper.withdraw_status(gone)
        node = self._keeper.node
        return node is not None and ANNOTATION not in annotations_of(node)

    async def _keep_up(self) -> None:
        changes = (
            self._state.changes, self._state.pod_changes, self._state.holders.changes,
            self._keeper.changes, self._plugins.registrations,
        )  # fmt: skip
        events = [each.next() for each in changes]
        if self._keeper.node is not None:
            pause = await self._compare(NodeObject.read(self._keeper.node))
            if pause is not None:
                with anyio.move_on_after(pause):
                    await events[0].wait()
                return
        await first_of(*(event.wait for event in events))

    async def _compare(self, node: NodeObject) -> float | None:
        """Write what differs; return for how long nothing should be written, None: nothing did."""
        wanted = {
            resource.name: amount(resource, self._state)
            for resource in self._resources
            if not (self._state.has(resource.name, DOWN) or self._plugins.has(resource.name))
        }
        noted = status_note.read(node.annotations)
        ours = noted.keys() | self._written.keys()
        self._confirm(node, wanted, noted)
        self._look(node, wanted)
        # The kubelet writes what has a plugin now.
        plugins = {each.name for each in self._state.node.resources if not each.in_status}
        gone = ours - wanted.keys() - plugins
        removed = {n for n in gone if n in node.capacity or n in node.allocatable}
        capacity = _differing(wanted, node.capacity)
        usable = {name: count * (name in self._confirmed) for name, count in wanted.items()}
        allocatable = _differing(usable, node.allocatable)
        note = status_note.write(wanted, self._confirmed)
        if not (capacity or allocatable or removed) and node.annotations.get(ANNOTATION) == note:
            self._written = wanted
            self._keeper.is_right()
            return None
        corrected = [
            name
            for name in {**capacity, **allocatable}
            if self._written.get(name) == wanted[name] and name in self._confirmed
        ]
        before = self._written
        # If the end comes amid this, some of it may be there; but what has a plugin isn't ours.
        self._written = dict.fromkeys(removed, 0) | wanted
        done, pause = await self._keeper.patch_status(
            _patch(capacity, allocatable, removed, note), corrected
        )
        self._written = wanted if done else before
        return pause

    def _confirm(
        self, node: NodeObject, wanted: Mapping[str, int], noted: Mapping[str, int | None]
    ) -> None:
        """Note of which resources the kubelet can't believe, or doesn't any more, that a plugin
        has them."""
        for name, count in wanted.items():
            # What the node doesn't have, or has from us, is no plugin's; but the kubelet reports
            # a plugin up to 10 s after it has come.
            is_new = name not in node.capacity and not self._plugins.had(name)
            if is_new or noted.get(name) is not None:
                self._confirmed.add(name)
            if name in self._confirmed:
                continue
            # The first number seen may be one that the plugin has left there.
            if node.allocatable.get(name, 0) != count:
                self._doubted.add(name)
            elif count and name in self._doubted:
                self._confirmed.add(name)
        self._confirmed &= wanted.keys()
        self._doubted &= wanted.keys() - self._confirmed

    def _look(self, node: NodeObject, wanted: Mapping[str, int]) -> None:
        """Note how far each resource has come."""
        before = {name: each.is_offered for name, each in self._offerings.items()}
        for resource in self._resources:
            found, name = self.offering(resource), resource.name
            found.is_offered, found.waits_for = False, ""
            if self._plugins.has(name):
                found.waits_for = "its device plugin is ending"
            elif name not in wanted:
                found.waits_for = "down on command"
            elif name not in self._confirmed:
                found.waits_for = (
                    "the kubelet still takes it for a device plugin's: it lets go of it 5 minutes "
                    "after the plugin has ended"
                )
            elif node.allocatable.get(name) == wanted[name] == node.capacity.get(name):
                found.is_offered = True
        names = {resource.name for resource in self._resources}
        self._offerings = {n: each for n, each in self._offerings.items() if n in names}
        if before != {name: each.is_offered for name, each in self._offerings.items()}:
            self._plugins.registrations.send()


def _differing(wanted: Mapping[str, int], shown: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in wanted.items() if shown.get(name) != count}


def _patch(
    capacity: Mapping[str, int],
    allocatable: Mapping[str, int],
    removed: Set[str],
    note: str | None,
) -> dict[str, Any]:
    gone = dict.fromkeys(removed)
    return {
        # Of a node, the status has the metadata along.
        "metadata": {"annotations": {ANNOTATION: note}},
        "status": {
            "capacity": {**_texts(capacity), **gone},
            "allocatable": {**_texts(allocatable), **gone},
        },
    }


def _texts(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in amounts.items()}
