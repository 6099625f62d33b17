"""ResourceSlices of the nodes of a fleet whose pools have DRA drivers: one writer for all of them.

A node's slices are made and compared by what does so on a real node (`views/dra`).
"""

import logging
from collections.abc import Iterable
from contextlib import aclosing, suppress
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes, Object
from hami_mock.cluster.resources import RESOURCE_SLICES
from hami_mock.errors import ClusterError, NotThere
from hami_mock.fleet import names
from hami_mock.fleet.agenda import Agenda
from hami_mock.fleet.budget import Budget
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.fleet.paid import Paid
from hami_mock.kit.concurrency import Backoff
from hami_mock.kit.text import cut
from hami_mock.node.fault import Fault
from hami_mock.vendors.dra import driver_of
from hami_mock.views.dra.devices import Pool
from hami_mock.views.dra.publisher import Publisher

_WRITERS = 8
_REST_SECONDS = 0.5
"""Many changes at once are looked at together."""

_log = logging.getLogger(__name__)


class Slices:
    """Publishes what the nodes have, again after each change of their cards or of a slice."""

    name = "slices"

    def __init__(self, fleet: Fleet, kubernetes: Kubernetes, budget: Budget) -> None:
        self._fleet = fleet
        self._kubernetes = kubernetes
        self._paid = Paid(kubernetes, budget)
        self._agenda = Agenda()
        self._there: dict[str, dict[str, int]] = {}
        """The slices that there are, by node and name, and a number for what each says."""
        self._published: dict[str, tuple[Fault, ...]] = {}
        """What was wrong with nodes when their slices were written last."""
        self._gates: set[str] = set()
        self._failures = Backoff(first=0.5)
        self.error = "the ResourceSlices haven't been read yet"

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep them until cancelled; they stay when this ends, as the nodes do."""
        task_status.started()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            for _ in range(_WRITERS):
                tasks.start_soon(self._write)

    def status(self) -> dict[str, Any]:
        return {
            "slices": sum(map(len, self._there.values())),
            "nodes": len(self._published),
            "gates_off": sorted(self._gates),
            "error": self.error,
        }

    async def _watch(self) -> None:
        label = f"{names.FLEET}={self._fleet.name}"
        watch = self._kubernetes.watch_pages(RESOURCE_SLICES, label)
        async with anyio.create_task_group() as tasks, aclosing(watch) as changes:
            is_first, is_listing = True, False
            async for change in changes:
                if change.is_all:
                    is_listing = True
                    self._there.clear()
                    self._published.clear()
                for thing in change.things:
                    self._look_at(thing, is_gone=change.is_gone)
                if not is_listing or change.has_more:
                    continue
                is_listing = False
                if is_first:
                    is_first, self.error = False, ""
                    tasks.start_soon(self._follow)
                else:
                    self._fleet.changes.send()  # some may have gone meanwhile

    def _look_at(self, thing: Object, *, is_gone: bool) -> None:
        """Note a slice; what isn't as it was written is written again."""
        node, name = str(thing["spec"].get("nodeName", "")), thing["metadata"]["name"]
        own = self._there.setdefault(node, {})
        mark = 0 if is_gone else _mark(thing)
        if own.get(name, 0) != mark:
            self._published.pop(node, None)
            self._agenda.add(node)
        if is_gone:
            own.pop(name, None)
        else:
            own[name] = mark
        if not own:
            del self._there[node]

    async def _follow(self) -> None:
        """See which nodes have come or gone, and whose cards have changed."""
        while True:
            changed = self._fleet.changes.next()
            for name, member in self._fleet.members.items():
                is_known = self._published.get(name) == member.faults and name in self._published
                has_slices = member.pool.settings.dra or name in self._there
                if has_slices and member.is_there and not is_known:
                    self._agenda.add(name)
            for name in self._there.keys() - self._fleet.members.keys():
                self._agenda.add(name)
            await anyio.sleep(_REST_SECONDS)
            await changed.wait()

    async def _write(self) -> None:
        while True:
            name = await self._agenda.next()
            member = self._fleet.members.get(name)
            try:
                if member is None:
                    # It isn't of the fleet any more.
                    await self._delete(self._there.get(name, ()))
                elif member.is_there:
                    await self._publish(member)
            except ClusterError as error:
                if not self.error:
                    _log.warning("%s", error)
                self.error = cut(str(error))
                self._agenda.add(name, self._failures.next(error.retry_after))
            else:
                self.error = ""
                self._failures.reset()

    async def _publish(self, member: Member) -> None:
        name, settings = member.name, member.pool.settings
        self._published[name] = member.faults
        state = self._fleet.state(member)
        marks: dict[str, int] = {}
        for vendor in dict.fromkeys(card.vendor for card in state.node.cards):
            for profile in settings.dra:
                driver = driver_of(vendor, profile)
                if driver is None:
                    continue
                pool = Pool(driver, profile, state, settings.driver_version)
                publisher = Publisher(pool, self._paid, {names.FLEET: self._fleet.name})
                publisher.gates = self._gates
                fields = f"spec.driver={driver.name},spec.nodeName={name}"
                found = []
                if name in self._there:
                    found = await self._kubernetes.list_all(RESOURCE_SLICES, fields)
                made = await publisher.publish({each["metadata"]["name"]: each for each in found})
                marks |= {slice_name: _mark(each) for slice_name, each in made.items()}
        # Those of drivers that a file of before asked for.
        await self._delete(self._there.get(name, {}).keys() - marks.keys())
        # So what the watch tells of these writes is no news.
        self._there[name] = marks
        if name not in self._fleet.members:
            self._agenda.add(name)  # it has left meanwhile

    async def _delete(self, slices: Iterable[str]) -> None:
        for name in [*slices]:
            with suppress(NotThere):
                await self._paid.delete(RESOURCE_SLICES, name)


def _mark(thing: Object) -> int:
    """Return a number for what a slice says: all that is kept of it."""
    return hash(repr(thing["spec"])) or 1
