"""The fleet now, as compact data: the page, `fleet top` and `fleet status` all show this.

A node is a row of four numbers. Rows and a pool's totals are made again only where a node has
changed since the last look, so that a look at ten thousand quiet nodes takes milliseconds.
"""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from enum import IntFlag
from typing import Any, NamedTuple

from hami_mock import __version__
from hami_mock.fleet.allocation import NOTHING, Amounts, Shape
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.kit.text import cut
from hami_mock.node.events import Event
from hami_mock.node.fault import Fault, On
from hami_mock.node.fault_kinds import DEGRADED, LOST, UNHEALTHY
from hami_mock.settings.pools import Pool

MOST_EVENTS = 50
COLUMNS = ("memory", "slots", "cores", "mark")
"""What a row has: percent that are allocated (-1: there is nothing to allocate), and a `Mark`."""


class Mark(IntFlag):
    """What is to be seen of a node beside its allocation."""

    THERE = 1
    READY = 2
    STOPPED = 4
    BROKEN = 8
    """A card is unhealthy or lost."""
    DEGRADED = 16
    FAULT = 32
    """Something else is wrong on purpose: a call that is slow, hangs or fails."""


ILL = Mark.STOPPED | Mark.BROKEN | Mark.DEGRADED | Mark.FAULT
_MARKS = {UNHEALTHY: Mark.BROKEN, LOST: Mark.BROKEN, DEGRADED: Mark.DEGRADED}


class Row(NamedTuple):
    """What a node adds to its pool's totals, and its mark."""

    mark: Mark = Mark(0)
    used: Amounts = NOTHING
    pods: int = 0
    broken: int = 0


class _Seen(NamedTuple):
    """What a row was made from: while it stays, so does the row."""

    faults: tuple[Fault, ...]
    pods: tuple[object, ...]
    is_there: bool
    is_ready: bool


_UNSEEN = _Seen((), (), is_there=False, is_ready=False)


class Totals:
    """The sums over a pool's nodes."""

    def __init__(self) -> None:
        self.there = self.ready = self.ill = self.pods = self.broken = 0
        self.used = NOTHING

    def add(self, row: Row, times: int = 1) -> None:
        """Count a row in, or with -1 out again."""
        self.there += times * bool(row.mark & Mark.THERE)
        self.ready += times * bool(row.mark & Mark.READY)
        self.ill += times * bool(row.mark & ILL)
        self.pods += times * row.pods
        self.broken += times * row.broken
        self.used = self.used.plus(row.used, times)


class PoolView:
    """A pool's nodes in the order in which they are shown: by zone, by rack, by number."""

    def __init__(self, pool: Pool, members: Iterable[Member]) -> None:
        self.pool = pool
        self.shape = Shape.of(pool)
        zones = {zone: number for number, zone in enumerate(pool.zones)}
        self.members = sorted(members, key=lambda m: (zones.get(m.zone, -1), m.index))
        self.rows = [Row()] * len(self.members)
        self.totals = Totals()
        self._seen = [_UNSEEN] * len(self.members)

    def look(self) -> Iterator[int]:
        """Make the rows of the nodes that have changed anew, and yield their positions."""
        seen = self._seen
        for position, member in enumerate(self.members):
            before, pods = seen[position], member.pods
            if (
                before.faults is member.faults
                and before.is_there is member.is_there
                and before.is_ready is member.is_ready
                and (not pods if not before.pods else pods and (*pods.values(),) == before.pods)
            ):
                continue
            seen[position] = _Seen(
                member.faults, (*(pods or {}).values(),), member.is_there, member.is_ready
            )
            row, old = self._row(member), self.rows[position]
            if row != old:
                self.totals.add(old, -1)
                self.totals.add(row)
                self.rows[position] = row
                yield position

    def encoded(self, position: int) -> tuple[int, ...]:
        """Return a row as it stands in the data: see COLUMNS."""
        row = self.rows[position]
        return (*map(_percent, row.used, self.shape.whole), int(row.mark))

    def headline(self) -> dict[str, Any]:
        """Return what changes of a pool as a whole."""
        totals, whole = self.totals, self.shape.whole
        cards = totals.there * self.shape.cards
        return {
            "nodes": len(self.members),
            "there": totals.there,
            "ready": totals.ready,
            "ill": totals.ill,
            "cards": cards,
            "usable": cards - min(totals.broken, cards),
            "pods": totals.pods,
            **{
                name: [used, totals.there * each]
                for name, used, each in zip(Amounts._fields, totals.used, whole, strict=True)
            },
        }

    def data(self) -> dict[str, Any]:
        groups: dict[tuple[str, str], list[int]] = {}
        for member in self.members:
            groups.setdefault((member.zone, member.rack), []).append(member.index)
        return {
            "name": self.pool.name,
            "models": {cut(name): count for name, count in self.shape.models.items()},
            "groups": [
                {"zone": zone, "rack": rack, "nodes": indices}
                for (zone, rack), indices in groups.items()
            ],
            **self.headline(),
        }

    def _row(self, member: Member) -> Row:
        mark, broken = Mark(0), set[str]()
        mark |= Mark.THERE if member.is_there else 0
        mark |= Mark.READY if member.is_there and member.is_ready else 0
        for fault in member.faults:
            if fault.kind.on is On.NODES:
                mark |= Mark.STOPPED
            else:
                mark |= _MARKS.get(fault.kind, Mark.FAULT)
            if _MARKS.get(fault.kind) is Mark.BROKEN:
                broken |= fault.targets
        if not member.pods:
            return Row(mark, broken=len(broken))
        used, pods = NOTHING, 0
        for pod in member.pods.values():
            pods += not pod.is_over
            used = used.plus(self.shape.used_by(pod))
        return Row(mark, used, pods, len(broken))


class Change(NamedTuple):
    """What a look has found.

    - is_other: there are other nodes than before
    - rows: those that changed, in one list: the node's number among all, its row, and so on
    - is_all: nothing was left for the next look
    """

    is_other: bool
    rows: list[int]
    is_all: bool = True


class Snapshot:
    """All nodes as rows, kept up with each look."""

    def __init__(self, fleet: Fleet) -> None:
        self.pools: list[PoolView] = []
        self._fleet = fleet
        self._made_for: tuple[object, int] = None, -1

    def look(self, most: float = math.inf) -> Change:
        """See what has changed since the last time, on so many nodes at once."""
        fleet = self._fleet
        # Whoever scales a pool makes new ones; nodes that are found to be there only come.
        made_for = fleet.pools, len(fleet.members)
        is_other = fleet.pools is not self._made_for[0] or made_for[1] != self._made_for[1]
        if is_other:
            own: dict[str, list[Member]] = {pool.name: [] for pool in fleet.pools}
            for member in fleet.members.values():
                own[member.pool.name].append(member)
            self.pools = [PoolView(pool, own[pool.name]) for pool in fleet.pools]
            self._made_for = made_for
        rows: list[int] = []
        first = 0
        for view in self.pools:
            for position in view.look():
                rows += (first + position, *view.encoded(position))
                if len(rows) >= most * (len(COLUMNS) + 1):
                    return Change(is_other, rows, is_all=False)
            first += len(view.members)
        return Change(is_other, rows)

    def data(self) -> dict[str, Any]:
        """Return all of it, after a look; `rows` has the rows of all nodes in one list."""
        rows: list[int] = []
        for view in self.pools:
            for position in range(len(view.members)):
                rows += view.encoded(position)
        return {
            "fleet": self._fleet.name,
            "version": __version__,
            "time": now(),
            "pools": [view.data() for view in self.pools],
            "columns": [*COLUMNS],
            "rows": rows,
            "events": events_after(self._fleet, 0),
        }


def now() -> float:
    return round(time.time(), 1)


def events_after(fleet: Fleet, number: int) -> list[dict[str, Any]]:
    """Return the events after one, at most so many, in the order in which they happened."""
    latest = fleet.events.after(number)[-MOST_EVENTS:]
    return [_event(event) for event in latest]


def _event(event: Event) -> dict[str, Any]:
    return {**asdict(event), "warning": event.is_warning}


def _percent(used: int, whole: int) -> int:
    """Return how much is used; something isn't nothing, and not all isn't all."""
    if whole <= 0:
        return -1
    share = 100 * used / whole
    return 1 if 0 < share < 1 else 99 if 99 < share < 100 else round(share)
