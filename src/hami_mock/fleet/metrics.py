"""Metrics of the whole fleet at one address: those of each maker's exporter, with the node's name.

Nodes that nobody uses and where nothing is wrong show the same but for their names: one text for
each pool, filled in. It is sent while it is made, for ten thousand nodes are half a gigabyte.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.fleet.figures import own_figures
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.fleet.readings import Readings
from hami_mock.kit.exposition_text import head_text
from hami_mock.node.cards import card_uuid
from hami_mock.node.state import NodeState
from hami_mock.settings.pools import Pool
from hami_mock.sources.configured import configured_node
from hami_mock.vendors.exporter import Exporter, Metric
from hami_mock.views.exporters.lines import NODE, LabelledRows, Lines, lines
from hami_mock.views.exporters.pages import fleet_exporters, rows_of
from hami_mock.views.http.scrapes import CONTENT_TYPE
from hami_mock.views.http.server import Answer, Pieces, Routes, serve_http

_NODES_AT_ONCE = 50
_MOST_SCRAPES = 4
"""At the same time; more of them get no answer."""

_log = logging.getLogger(__name__)


@dataclass
class _Kind:
    """What all nodes of a pool show as long as nobody uses them."""

    state: NodeState
    own: dict[str, bytes]
    """The UUIDs of each node's cards, one after the other, by the node's name."""


class FleetMetrics:
    """Serves /metrics (all), /metrics/fleet (the fleet's own figures), /metrics/pools/NAME."""

    def __init__(
        self,
        fleet: Fleet,
        address: str = "",
        figures: Callable[[], Mapping[str, Any]] = dict,
        readings: Readings | None = None,
        more: Routes | None = None,
    ) -> None:
        """Make them; `figures` are what `own_figures` shows beside the nodes."""
        self._fleet = fleet
        self._address = address
        self._figures = figures
        self._readings = readings or Readings(fleet)
        self._exporters = fleet_exporters()
        self._kinds: dict[str, _Kind] = {}
        self._scrapes = 0
        self._more = more or {}

    @property
    def routes(self) -> Routes:
        return {
            "/metrics": lambda: self._answer(self.everything),
            "/metrics/fleet": lambda: Answer(self.own(), content_type=CONTENT_TYPE),
            **{f"/metrics/pools/{pool.name}": self._of_pool(pool) for pool in self._fleet.pools},
            "/health": lambda: Answer(b"OK\n"),
            **self._more,
        }

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Answer until cancelled. Raises StartError if the address can't be had."""
        async with serve_http(self._address, self.routes, "http-listen") as self._address:
            _log.info("metrics of the fleet at http://%s/metrics", self._address)
            task_status.started()
            await anyio.sleep_forever()

    def status(self) -> dict[str, Any]:
        return {"address": self._address}

    def everything(self) -> Generator[bytes, None, None]:
        yield self.own()
        yield from self.cards(self._fleet.pools)

    def own(self) -> bytes:
        return "".join(own_figures(self._fleet, self._figures())).encode()

    def _of_pool(self, pool: Pool) -> Callable[[], Pieces | Answer]:
        return lambda: self._answer(lambda: self.cards([pool]))

    def _answer(self, make: Callable[[], Generator[bytes, None, None]]) -> Pieces | Answer:
        if self._scrapes >= _MOST_SCRAPES:
            raise RuntimeError(f"{_MOST_SCRAPES} scrapes of the fleet are already in progress")

        def counted() -> Generator[bytes, None, None]:
            self._scrapes += 1
            try:
                yield from make()
            finally:
                self._scrapes -= 1

        return Pieces(counted, CONTENT_TYPE)

    def cards(self, pools: Iterable[Pool]) -> Generator[bytes, None, None]:
        """Yield the metrics of the cards of some pools, piece by piece."""
        names = {pool.name for pool in pools}
        members = [m for m in self._fleet.members.values() if m.pool.name in names]
        self._readings.forget()
        for exporter in self._exporters:
            yield from self._of_exporter(exporter, members)

    def _of_exporter(
        self, exporter: Exporter, members: list[Member]
    ) -> Generator[bytes, None, None]:
        writers = {driver: Lines(exporter, driver) for driver in self._drivers(members)}
        idle: dict[str, LabelledRows] = {}
        used: dict[str, LabelledRows] = {}
        shown: list[tuple[Member, bool]] = []
        for number, member in enumerate(members):
            pool = member.pool
            if pool.name not in idle:
                idle[pool.name] = self._idle(pool, exporter, writers[pool.settings.driver_version])
            if not any(idle[pool.name].values()):
                continue
            if self._readings.is_as_new(member):
                self._own(member)
                shown.append((member, True))
            else:
                seen, lines_of = self._readings.seen(member), writers[pool.settings.driver_version]
                rows = lines_of.labelled(rows_of(exporter, seen, member.pods or {}), member.name)
                if any(rows.values()):
                    used[member.name] = rows
                    shown.append((member, False))
                yield b"\n"  # so that this is done in pieces too
            if number % _NODES_AT_ONCE == 0:
                yield b"\n"
        if not shown:
            return
        for name, metrics in groupby(exporter.metrics, key=lambda metric: metric.name):
            same = [*metrics]
            yield head_text(name, same[0].help, same[0].kind).encode()
            yield from self._of_metric(same, shown, idle, used)

    def _of_metric(
        self,
        metrics: list[Metric],
        shown: list[tuple[Member, bool]],
        idle: Mapping[str, LabelledRows],
        used: Mapping[str, LabelledRows],
    ) -> Iterator[bytes]:
        texts = {
            pool: self._template(pool, "".join(lines(metric, rows) for metric in metrics))
            for pool, rows in idle.items()
        }
        for start in range(0, len(shown), _NODES_AT_ONCE):
            made = [
                texts[member.pool.name] % self._own(member)
                if is_as_new
                else "".join(lines(metric, used[member.name]) for metric in metrics).encode()
                for member, is_as_new in shown[start : start + _NODES_AT_ONCE]
            ]
            if text := b"".join(made):
                yield text

    def _drivers(self, members: list[Member]) -> set[str]:
        return {member.pool.settings.driver_version for member in members}

    def _kind(self, pool: Pool) -> _Kind:
        kind = self._kinds.get(pool.name)
        if kind is None:
            settings = replace(pool.settings, node_name=NODE, device_plugins=False)
            state = NodeState(configured_node(settings, None))
            kind = self._kinds[pool.name] = _Kind(state, {})
        return kind

    def _idle(self, pool: Pool, exporter: Exporter, writer: Lines) -> LabelledRows:
        """Return the rows of a node of a pool that nobody uses; its names are still open."""
        state = self._kind(pool).state
        seen = [
            self._readings.idle(card)._replace(instances=state.instances(card))
            for card in state.node.cards
        ]
        return writer.labelled(rows_of(exporter, seen, {}), NODE)

    def _template(self, pool_name: str, text: str) -> bytes:
        """Return a text in which names are left open, to be filled in with `_own`."""
        open_text = text.replace("%", "%%").replace(NODE, "%(node)b")
        for number, card in enumerate(self._kinds[pool_name].state.node.cards):
            open_text = open_text.replace(card.uuid, f"%({number})b")
        return open_text.encode()

    def _own(self, member: Member) -> Mapping[bytes, bytes]:
        """Return the names of a node and its cards; made once, for it takes a while."""
        kind, name = self._kind(member.pool), member.name
        packed = kind.own.get(name)
        if packed is None:
            uuids = (card_uuid(name, card.vendor, card.index) for card in kind.state.node.cards)
            packed = kind.own[name] = "\n".join(uuids).encode()
        numbered = {b"%d" % number: uuid for number, uuid in enumerate(packed.split(b"\n"))}
        return {b"node": name.encode(), **numbered}
