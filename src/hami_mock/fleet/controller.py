"""Keeps the nodes of a fleet at the API server as they should be: one watch, a few writers."""

import logging
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes, Object, annotations_of, labels_of, revision
from hami_mock.cluster.resources import NODES, PODS
from hami_mock.errors import ClusterError, Conflict, Invalid, NotAllowed, NotThere
from hami_mock.fleet import names
from hami_mock.fleet.agenda import Agenda
from hami_mock.fleet.budget import Budget
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.fleet.nodes import node_object
from hami_mock.fleet.shown import Made, Ours, is_ready, patch
from hami_mock.kit.concurrency import Backoff
from hami_mock.kit.text import cut

WRITERS = 64
"""How many requests are in flight at once. On two cores, 3,000 nodes were created at about 150 a
second with 16, 200 with 32, 270 with 64, and hardly more with 128."""
_QUIET_SECONDS = 60.0
"""When nobody else has changed what is ours of a node for so long, the dispute is over."""
_AGAIN_SECONDS = 30.0
"""Until the next try to write a node that the server doesn't take, or that is somebody else's."""

Seen = Callable[[Member, Object], None]

_log = logging.getLogger(__name__)


class Controller:
    """Creates nodes that are missing, corrects those that differ, deletes those that must go.

    Who else insists on changing what is ours of a node waits longer for each answer.
    """

    name = "nodes"

    def __init__(
        self,
        fleet: Fleet,
        kubernetes: Kubernetes,
        budget: Budget,
        seen: Seen | None = None,
        knows_pods: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make one; `seen` is told of each node of the fleet as the API server has it.

        `knows_pods` tells whether the members have their pods: what these have of cards that have
        failed counts. `Fleet.orders` is sent when it turns true.
        """
        self._seen = seen
        self._knows_pods = knows_pods
        self._fleet = fleet
        self._kubernetes = kubernetes
        self._budget = budget
        self._agenda = Agenda()
        self._ours: dict[str, Ours] = {}
        self._found: dict[str, Object] = {}
        """What is to be written of nodes that aren't as they should be; few at a time."""
        self._unjudged: set[str] = set()
        """Nodes with faults that were seen before their pods."""
        self._disputes: dict[str, tuple[Backoff, float]] = {}
        """Nodes that somebody else changes, and when they did last."""
        self._failures = Backoff(first=0.5)
        self.is_settled = False
        """Whether all nodes have been read once, with the faults that they had."""
        self.error = "the nodes haven't been read from the API server yet"
        self.problems: dict[str, str] = {}
        """Nodes that can't be made, and why."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep them until cancelled; they stay when this ends."""
        task_status.started()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            tasks.start_soon(self._take_orders)
            for _ in range(WRITERS):
                tasks.start_soon(self._write)

    def status(self) -> dict[str, Any]:
        members = self._fleet.members.values()
        return {
            "wanted": len(members),
            "there": sum(member.is_there for member in members),
            "ready": sum(member.is_ready for member in members),
            "leaving": len(self._fleet.leaving),
            "to_write": len(self._agenda),
            "disputes": sorted(self._disputes),
            "problems": dict(self.problems),
            "error": self.error,
        }

    @property
    def not_ready(self) -> str:
        return f"nodes can't be kept: {self.error}" if self.error and self.is_settled else ""

    # What is there.

    async def _follow(self) -> None:
        label = f"{names.FLEET}={self._fleet.name}"
        there: set[str] = set()
        is_listing = False
        async with aclosing(self._kubernetes.watch_pages(NODES, label)) as changes:
            async for change in changes:
                if change.is_all:
                    there, is_listing = set(), True
                for node in change.things:
                    self._look_at(node, is_gone=change.is_gone)
                    if is_listing:
                        there.add(node["metadata"]["name"])
                if is_listing and not change.has_more:
                    is_listing = False
                    self._compare_all(there)

    def _look_at(self, node: Object, *, is_gone: bool = False, made: Made | None = None) -> None:
        """Take over what a node shows, unless something newer of it was seen."""
        name, version = node["metadata"]["name"], revision(node)
        if name in self._fleet.leaving:
            # Whatever it shows is no matter of its namesake, that may have to come after it.
            if is_gone:
                del self._fleet.leaving[name]
                self._agenda.add(name)
                self._fleet.changes.send()
            return
        member = self._fleet.members.get(name)
        if member is None and not is_gone:
            member = self._unknown(name)
        if member is None or version < member.version:
            return
        was = member.is_there, member.is_ready
        member.version = version
        if self._seen is not None and not is_gone:
            self._seen(member, node)
        member.is_there, member.is_ready = not is_gone, not is_gone and is_ready(node)
        if is_gone:
            member.right = 0
            self._dispute(name, "deleted")
        else:
            self._compare(member, node, made)
        if was != (member.is_there, member.is_ready):
            self._fleet.changes.send()

    def _unknown(self, name: str) -> Member | None:
        """Return the member for a node that the file doesn't ask for, if it may become one.

        A fleet of before may have had more nodes, or others than its first ones.
        """
        if not self.is_settled and (member := self._fleet.adopt(name)):
            return member
        self._fleet.leaving[name] = ()
        self._agenda.add(name)
        return None

    def _compare(self, member: Member, node: Object, made: Made | None = None) -> None:
        """See whether a node is as it should be; if not, it is written."""
        name, ours = member.name, self._ours_of(member)
        if not self.is_settled:
            self._fleet.restore(member, annotations_of(node).get(names.FAULTS))
        mark = ours.mark(node)
        is_awake = member.is_stopped and member.is_ready
        if mark == member.right and not is_awake:
            return
        was_right, member.right = bool(member.right), 0
        if name in self._fleet.changed:
            self._agenda.add(name)
            return
        if member.faults and not self._knows_pods():
            self._unjudged.add(name)
            return
        made = made or self._made(member)
        # Most are as they were made, which is quickly seen.
        is_as_made = mark == ours.mark(made.wanted) and not is_awake
        found = {} if is_as_made else patch(made, ours, node, time.time())
        if not found:
            member.right = mark
            self._found.pop(name, None)
            return
        self._found[name] = found
        if was_right and not is_awake:
            self._dispute(name, "changed")
        elif is_awake or name not in self._agenda:
            # Whoever changes it again while its time hasn't come doesn't bring that nearer.
            self._agenda.add(name)

    def _compare_all(self, there: set[str]) -> None:
        """Make what is missing, after all nodes were read."""
        if not self.is_settled:
            self.is_settled = True
            for pool in self._fleet.pools:
                self._fleet.scale(pool.name, pool.nodes)
        for name, member in self._fleet.members.items():
            if name not in there:
                member.is_there = member.is_ready = False
                member.right = 0
                self._agenda.add(name)
        self._fleet.leaving = {n: p for n, p in self._fleet.leaving.items() if n in there}
        self.error = ""
        self._fleet.tell_orders()
        self._fleet.changes.send()

    def _dispute(self, name: str, what: str) -> None:
        """Put right what somebody else did, the later the more often they do it."""
        now = anyio.current_time()
        backoff, last = self._disputes.get(name, (Backoff(first=0.5), now))
        if now - last > _QUIET_SECONDS:
            backoff.reset()
        self._disputes[name] = backoff, now
        _log.warning("something else %s node %s: correcting it", what, name)
        self._agenda.add(name, backoff.next())

    # What is written.

    async def _take_orders(self) -> None:
        """See which faults began or ended, and which nodes must come or go."""
        while True:
            ordered = self._fleet.orders.next()
            until = self._fleet.end_overdue() - time.time()
            if self.is_settled:
                unjudged = self._unjudged if self._knows_pods() else ()
                for name in (*self._fleet.changed, *self._fleet.leaving, *unjudged):
                    self._agenda.add(name)
            now = anyio.current_time()
            over = [n for n, (_, last) in self._disputes.items() if now - last > _QUIET_SECONDS]
            for name in over:
                del self._disputes[name]
            with anyio.move_on_after(min(max(until, 0.001), _QUIET_SECONDS)):
                await ordered.wait()

    async def _write(self) -> None:
        while True:
            name = await self._agenda.next()
            try:
                await self._put_right(name)
            except ClusterError as error:
                self._fail(name, error)
            else:
                self.error = ""
                self._failures.reset()

    async def _put_right(self, name: str) -> None:
        member = self._fleet.members.get(name)
        if name in self._fleet.leaving:
            await self._delete(name)
        elif member is None:
            self._unjudged.discard(name)
        elif not member.is_there:
            await self._create(member)
        elif name in self._fleet.changed:
            await self._rewrite(member)
        elif name in self._found:
            await self._patch(member, self._found.pop(name))
        elif name in self._unjudged:
            node = await self._kubernetes.node(name)
            self._unjudged.discard(name)
            self._look_at(node)

    async def _create(self, member: Member) -> None:
        name, made = member.name, self._made(member)
        self._fleet.changed.discard(name)
        try:
            node = await self._budget.write(lambda: self._kubernetes.create(NODES, made.wanted))
        except Conflict:
            node = await self._kubernetes.node(name)
            if not self._is_ours(node):
                self.problems[name] = "a node with that name exists, and isn't this fleet's"
                self._agenda.add(name, _AGAIN_SECONDS)
                return
        self._take(node, made)

    def _is_ours(self, node: Object) -> bool:
        """Tell whether we made a node, though the watch, which goes by the label, doesn't show it.

        Somebody may have removed the label.
        """
        fleet = labels_of(node).get(names.FLEET)
        return fleet == self._fleet.name or (fleet is None and names.MADE in annotations_of(node))

    async def _rewrite(self, member: Member) -> None:
        """Write all that is ours of a node, after something began or ended there."""
        made, ours = self._made(member), self._ours_of(member)
        self._fleet.changed.discard(member.name)
        if member.right and member.right == ours.mark(made.wanted):
            return  # other pods have as much of it
        self._found.pop(member.name, None)
        whole = patch(made, ours, None, time.time())
        try:
            await self._patch(member, whole)
        except ClusterError:
            # It may have been written all the same.
            member.right = 0
            self._fleet.changed.add(member.name)
            raise

    async def _patch(self, member: Member, found: Object) -> None:
        name = member.name
        try:
            node = await self._budget.write(lambda: self._kubernetes.patch_node_status(name, found))
        except NotThere:
            member.is_there = False
            raise
        self._take(node)

    def _take(self, node: Object, made: Made | None = None) -> None:
        """Take over the answer to a write of ours: what it shows of ours is no dispute."""
        name = node["metadata"]["name"]
        self.problems.pop(name, None)
        if member := self._fleet.members.get(name):
            member.right = 0
            self._look_at(node, made=made)

    async def _delete(self, name: str) -> None:
        """Delete a node that must go, after its pods; the watch tells when it is gone."""
        for namespace, pod in self._fleet.leaving[name]:
            with suppress(NotThere):
                await self._budget.write(
                    partial(self._kubernetes.delete, PODS, pod, namespace, grace=0)
                )
        with suppress(NotThere):
            await self._budget.write(lambda: self._kubernetes.delete(NODES, name))

    def _fail(self, name: str, error: ClusterError) -> None:
        """Note why a node couldn't be written, and try again later."""
        reason = cut(str(error))
        is_about_node = isinstance(error, Invalid | NotAllowed)
        pause = _AGAIN_SECONDS if is_about_node else self._failures.next(error.retry_after)
        self._agenda.add(name, pause)
        if is_about_node:
            self.problems[name] = reason
        if not self.error:
            _log.warning("%s", reason)
        self.error = reason

    def _made(self, member: Member) -> Made:
        state = self._fleet.state(member)
        faults = self._fleet.annotation(member, state)
        wanted = node_object(member.pool, state, self._fleet.name, time.time(), faults)
        return Made(member.pool, state, self._ours_of(member).noted(wanted))

    def _ours_of(self, member: Member) -> Ours:
        pool = member.pool
        if pool.name not in self._ours:
            self._ours[pool.name] = Ours.of(pool, self._fleet.name)
        return self._ours[pool.name]
