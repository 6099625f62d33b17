"""Reports of the plugins that HAMi's scheduler waits for, every half minute, of all nodes in turn.

Who has 5,000 such nodes writes 167 times a second, for ever. Each node has a moment of its own in
the half minute, so that they never come at once. Where the budget is too small the round takes
longer, which HAMi bears as long as the devices are allocatable.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import ClusterError, NotThere
from hami_mock.fleet.budget import Budget
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.hami.handshake import REPORT_INTERVAL
from hami_mock.hami.kinds import ReportStyle
from hami_mock.kit.text import cut
from hami_mock.node.state import NodeState
from hami_mock.settings.pools import Pool
from hami_mock.views.hami.registration import registration

_TICKS = 30
"""Into so many moments the half minute is cut."""
_WRITERS = 8

Styles = Mapping[str, ReportStyle]
"""How vendors report, by annotation."""


class Handshakes:
    """Writes reports for the pools whose vendors report, and nothing for the others."""

    name = "handshakes"

    def __init__(self, fleet: Fleet, kubernetes: Kubernetes, budget: Budget) -> None:
        self._fleet = fleet
        self._kubernetes = kubernetes
        self._budget = budget
        self._styles = {pool.name: self._of_pool(pool) for pool in fleet.pools}
        self.round_seconds = 0.0
        """How long the last round took."""
        self.error = ""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Report until cancelled, or return at once if no pool has to."""
        task_status.started()
        seconds = REPORT_INTERVAL.total_seconds()
        while any(self._styles.values()):
            began = anyio.current_time()
            for tick in range(_TICKS):
                await self._report([m for m in self.reporting() if m.index % _TICKS == tick])
                await anyio.sleep_until(began + (tick + 1) * seconds / _TICKS)
            self.round_seconds = anyio.current_time() - began

    def status(self) -> dict[str, Any]:
        count = len(self.reporting())
        return {
            "nodes": count,
            "per_second": round(count / REPORT_INTERVAL.total_seconds(), 1),
            "round_seconds": round(self.round_seconds, 1),
            "error": self.error,
        }

    def reporting(self) -> list[Member]:
        """Return the nodes that have to report; one that was stopped has nobody who would."""
        members = self._fleet.members.values()
        return [m for m in members if self._styles[m.pool.name] and m.is_there and not m.is_stopped]

    async def _report(self, members: list[Member]) -> None:
        waiting = iter(members)
        async with anyio.create_task_group() as tasks:
            for _ in range(min(_WRITERS, len(members))):
                tasks.start_soon(self._report_each, waiting)

    async def _report_each(self, members: Iterator[Member]) -> None:
        for member in members:
            now = datetime.now().astimezone()
            reports = {key: style.write(now) for key, style in self._of(member).items()}
            if not reports:
                continue
            patch = partial(self._kubernetes.patch_node_annotations, member.name, reports)
            try:
                await self._budget.write(patch)
            except NotThere:
                continue  # whoever keeps the nodes will see it too
            except ClusterError as error:
                self.error = cut(str(error))
            else:
                self.error = ""

    def _of(self, member: Member) -> Styles:
        """Return what a node reports: nothing for a vendor whose cards are all lost."""
        whole = self._styles[member.pool.name]
        if not member.faults:
            return whole
        return self._there(self._fleet.state(member))

    def _of_pool(self, pool: Pool) -> Styles:
        if not pool.settings.hami:
            return {}
        return self._there(self._fleet.state(Member(pool, 0)))

    @staticmethod
    def _there(state: NodeState) -> Styles:
        return {key: style for key, style in registration(state).handshakes.items() if style}
