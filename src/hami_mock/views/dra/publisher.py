"""Keeps a driver's ResourceSlices at the API server as they should be."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from types import MappingProxyType
from typing import Any, Protocol

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Change, revision
from hami_mock.cluster.resources import RESOURCE_SLICES, Resource
from hami_mock.errors import ClusterError, Conflict, NotThere
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import Backoff, first_of
from hami_mock.kubelet.dra_gates import GATES, components
from hami_mock.views.dra.devices import Pool
from hami_mock.views.dra.slices import Object, contents, dropped, is_same, spec

_NOT_YET = "the ResourceSlices haven't been written yet"
_WITHDRAWAL_SECONDS = 2.0
_NO_LABELS: Mapping[str, str] = MappingProxyType({})

_log = logging.getLogger(__name__)


class Api(Protocol):
    """What is asked of the API server: of a connection, or of one whose writes are counted."""

    async def node(self, name: str) -> Object: ...
    async def create(self, resource: Resource, thing: Object) -> Object: ...
    async def update(self, resource: Resource, thing: Object) -> Object: ...
    async def delete(self, resource: Resource, name: str) -> None: ...


Watch = Callable[..., AsyncGenerator[Change, None]]
"""What `Kubernetes.watch` is."""


class Publisher:
    """Writes slices when they aren't what the state says, and never else.

    The kubelet removes the slices of all drivers when it starts, and anybody may edit one.
    """

    def __init__(self, pool: Pool, kubernetes: Api, labels: Mapping[str, str] = _NO_LABELS) -> None:
        self._pool = pool
        self._labels = labels
        self._driver = pool.driver
        self._node = pool.name
        self._kubernetes = kubernetes
        self._found: dict[str, Object] | None = None
        """The slices that are there, by name; None: they haven't been read yet."""
        self._taken: dict[str, tuple[Object, Object]] = {}
        """What was written of each slice, and what the server made of it."""
        self._seen = Broadcast()
        self.gates: set[str] = set()
        """The gates that turned out to be off."""
        self.problem = _NOT_YET
        """Why they aren't as they should be; "" if they are."""
        self.writes = 0
        self.generation = 0

    async def run(
        self, watch: Watch, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep them until cancelled; then remove them: nobody is left to prepare claims."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, watch)
                task_status.started()
                await self._keep_up()
        finally:
            await self._withdraw()

    async def publish(self, found: Mapping[str, Object]) -> Mapping[str, Object]:
        """Put right what differs from the slices that are there, once; return what is there then.

        Raises ClusterError.
        """
        self._found = dict(found)
        await self._write()
        return self._found

    @property
    def count(self) -> int:
        return len(self._found or ())

    async def _watch(self, watch: Watch) -> None:
        def hear(reason: str) -> None:
            if self._found is None:
                self.problem = reason or _NOT_YET

        fields = f"spec.driver={self._driver.name},spec.nodeName={self._node}"
        what = f"ResourceSlices of {self._driver.name}"
        async with aclosing(watch(RESOURCE_SLICES, fields, what=what, tell=hear)) as changes:
            async for change in changes:
                self._see(change)
                self._seen.send()

    def _see(self, change: Change) -> None:
        if change.is_all or self._found is None:
            self._found = {}
        for thing in change.things:
            name = thing["metadata"]["name"]
            # What the watch tells may be older than the answer to a write of ours.
            newest = max(thing, self._found.get(name, thing), key=revision)
            if newest is thing and change.is_gone:
                self._found.pop(name, None)
            else:
                self._found[name] = newest

    async def _keep_up(self) -> None:
        backoff = Backoff()
        while True:
            events = self._pool.state.changes.next(), self._seen.next()
            try:
                if self._found is not None:
                    await self._write()
                    self.problem = ""
                    backoff.reset()
            except ClusterError as error:
                if str(error) != self.problem:
                    _log.warning("%s", error)
                self.problem = str(error)
                pause = backoff.next(error.retry_after)
                if not isinstance(error, Conflict | NotThere):
                    await anyio.sleep(pause)
                    continue
                # The watch soon tells what somebody else has done, but not that the node is back.
                with anyio.move_on_after(pause):
                    await first_of(*(event.wait for event in events))
                continue
            await first_of(*(event.wait for event in events))

    async def _write(self) -> None:
        """Write what differs, until nothing more is dropped. Raises ClusterError."""
        known: set[str] | None = None
        while known != self.gates:
            known = set(self.gates)
            wanted = contents(self._driver, self._pool.devices.values(), known)
            await self._write_slices({self._name(i): each for i, each in enumerate(wanted)})

    def _name(self, number: int) -> str:
        return f"{self._node}-{self._driver.name}-{number}"

    async def _write_slices(self, wanted: Mapping[str, Object]) -> None:
        found = self._found or {}
        changed = [name for name in wanted if not self._is_right(name, wanted, found)]
        gone = found.keys() - wanted.keys()
        if not changed and not gone:
            return
        numbers = [_generation(each) for each in found.values()]
        self.generation = max([self.generation, *numbers])
        # A pool is whole only if all of its slices have one generation. A single slice can be
        # replaced in it; whatever else changes needs a new one.
        is_single = len(changed) == 1 and not gone and len({*numbers}) == 1
        if not (is_single and len(found) == len(wanted)):
            self.generation += 1
            changed = [*wanted]
        known = len(self.gates)
        for name in changed:
            await self._write_slice(name, wanted[name], len(wanted))
            if len(self.gates) > known:
                # Not one slice more of what can't be offered so.
                return
        for name in gone:
            await self._delete(name)

    def _is_right(
        self, name: str, wanted: Mapping[str, Object], found: Mapping[str, Object]
    ) -> bool:
        """Tell whether a slice is as the server took it, or has all that it should."""
        there, content = found.get(name), wanted[name]
        if there is None:
            return False
        if there["spec"].get("pool", {}).get("resourceSliceCount") != len(wanted):
            return False
        if name in self._taken:
            return self._taken[name] == (content, there["spec"])
        # Of an agent before this one.
        return is_same(content, there["spec"])

    async def _write_slice(self, name: str, content: Object, count: int) -> None:
        whole = spec(self._driver, self._node, content, self.generation, count)
        there = (self._found or {}).get(name)
        metadata: Object = {"name": name}
        if self._labels:
            metadata["labels"] = dict(self._labels)
        thing: Object = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": metadata,
            "spec": whole,
        }
        self.writes += 1
        if there is None:
            metadata["ownerReferences"] = await self._owners()
            made = await self._kubernetes.create(RESOURCE_SLICES, thing)
        else:
            kept = ("ownerReferences", "resourceVersion")
            metadata |= {key: there["metadata"][key] for key in kept if key in there["metadata"]}
            made = await self._kubernetes.update(RESOURCE_SLICES, thing)
        assert self._found is not None
        self._found[name] = made
        self._taken[name] = content, made["spec"]
        for gate in sorted(dropped(content, made["spec"]) - self.gates):
            self.gates.add(gate)
            _log.error("%s: %s", self._driver.name, gate_message(gate))

    async def _owners(self) -> list[Object]:
        """Return the node: what is left when the agent dies goes with it."""
        node = await self._kubernetes.node(self._node)
        uid = node["metadata"].get("uid", "")
        return [{"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": uid}] if uid else []

    async def _delete(self, name: str) -> None:
        self.writes += 1
        with suppress(NotThere):  # somebody else may have done it
            await self._kubernetes.delete(RESOURCE_SLICES, name)
        (self._found or {}).pop(name, None)
        self._taken.pop(name, None)

    async def _withdraw(self) -> None:
        with anyio.move_on_after(_WITHDRAWAL_SECONDS, shield=True) as scope:
            try:
                for name in [*(self._found or ())]:
                    await self._delete(name)
            except ClusterError as error:
                _log.warning("%s: can't remove its ResourceSlices: %s", self._driver.name, error)
        if scope.cancelled_caught:
            _log.warning(
                "%s: can't remove its ResourceSlices: no answer from the API server",
                self._driver.name,
            )


def gate_message(gate: str) -> str:
    return (
        f"the API server dropped what needs the feature gate {gate}: {GATES[gate].without}; turn "
        f"it on for {components()}, and restart this agent"
    )


def _generation(thing: Mapping[str, Any]) -> int:
    found = thing["spec"].get("pool", {}).get("generation", 0)
    return found if isinstance(found, int) else 0
