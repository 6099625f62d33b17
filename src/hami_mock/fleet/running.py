"""A fleet's process: in a list all that keeps its nodes, shows them or changes them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import anyio
from anyio.abc import TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.resources import PODS
from hami_mock.faults.stage import Stage
from hami_mock.fleet.binding import Binder
from hami_mock.fleet.budget import DEFAULT_RATE, Budget
from hami_mock.fleet.controller import Controller
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.handshakes import Handshakes
from hami_mock.fleet.paid import Paid
from hami_mock.fleet.playing import OnFleet, read_scenario
from hami_mock.fleet.pods import BOUND, FleetPods
from hami_mock.fleet.snapshot import Snapshot
from hami_mock.fleet.status import fleet_status, writes_status
from hami_mock.kit.supervision import Supervisor


class Part(Protocol):
    """Something that runs for as long as the fleet's process does."""

    async def run(self, *, task_status: TaskStatus[None]) -> None: ...


@dataclass(frozen=True)
class Options:
    """How the process of a fleet is run.

    - writes: how many a second the API server gets, at most; 0: as many as it bears
    - control_socket: where `hami-mock fleet fail` and so on reach it; "": nowhere
    - http_listen: the address of the metrics and the page; "": there are none
    - bind: who lets pods run, "agent" (HAMi's whole protocol) or "stages" (KWOK's alone)
    """

    writes: float = DEFAULT_RATE
    control_socket: str = ""
    http_listen: str = ""
    bind: str = "agent"


class Running:
    """The parts of a fleet's process, and what can be asked of it."""

    def __init__(self, fleet: Fleet, kubernetes: Kubernetes, options: Options) -> None:
        self.fleet = fleet
        self.options = options
        self.kubernetes = kubernetes
        self.budget = Budget(options.writes)
        self.binder = Binder(fleet, Paid(kubernetes, self.budget))
        binds = options.bind == "agent"
        seen = self.binder.left.see if binds else None
        self.controller = Controller(
            fleet, kubernetes, self.budget, seen, lambda: self.pods.is_read
        )
        self.pods = FleetPods(
            fleet,
            lambda: kubernetes.watch_pages(PODS, fields=BOUND),
            self.binder.see if binds else None,
            lambda: self.controller.is_settled,
        )
        self.handshakes = Handshakes(fleet, kubernetes, self.budget)
        self.stage = Stage(OnFleet(fleet))
        self.stop_scenario = self.stage.stop
        self.shown = Snapshot(fleet)
        self.supervisor = Supervisor()
        self._parts: dict[str, Part] = {}
        self._ended = anyio.Event()

    def _all_parts(self) -> Iterator[tuple[str, Part]]:
        """Yield the parts with their names in the order of their start."""
        yield "nodes", self.controller
        yield "handshakes", self.handshakes
        if any(pool.settings.dra for pool in self.fleet.pools):
            from hami_mock.fleet.slices import Slices

            yield "slices", Slices(self.fleet, self.kubernetes, self.budget)
        if self.options.bind == "agent":
            yield "binding", self.binder
        yield "pods", self.pods
        yield "scenario", self.stage
        if self.options.http_listen:
            from hami_mock.fleet.metrics import FleetMetrics
            from hami_mock.fleet.page.feed import Feed
            from hami_mock.fleet.page.routes import page_routes

            feed = Feed(self.fleet)
            yield "page", feed
            routes = page_routes(feed, self.fleet)
            address = self.options.http_listen
            yield "http", FleetMetrics(self.fleet, address, self._figures, more=routes)
        if self.options.control_socket:
            from hami_mock.control.server import ControlServer
            from hami_mock.fleet.control import FleetCommands

            commands = partial(FleetCommands, self)
            yield "control", ControlServer(self.options.control_socket, commands)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled; the nodes stay."""
        async with anyio.create_task_group() as tasks:
            for name, part in self._all_parts():
                self._parts[name] = part
                await tasks.start(self.supervisor.run, name, part.run)
            task_status.started()
            await anyio.sleep_forever()

    def _figures(self) -> dict[str, Any]:
        """Return what metrics have of the process, beside the nodes."""
        binder, budget = self.binder, self.budget
        return {
            "writes": budget.written,
            "writes_refused": budget.refused,
            "bound": binder.bound,
            "bind_failures": binder.failed,
            "bind_seconds": binder.seconds,
        }

    def end(self) -> None:
        self._ended.set()

    async def ended(self) -> None:
        await self._ended.wait()

    async def status(self) -> dict[str, Any]:
        own = {
            name: told()
            for name, part in self._parts.items()
            if callable(told := getattr(part, "status", None))
        }
        return {
            **fleet_status(self.fleet),
            "writes": writes_status(self.budget),
            "failures": dict(self.supervisor.failures),
            "scenario": self.stage.status,
            "parts": own,
        }

    async def snapshot(self) -> dict[str, Any]:
        """Return all nodes, as `hami-mock fleet top` and the page show them."""
        self.shown.look()
        return {**self.shown.data(), "writes": writes_status(self.budget)}

    async def play(self, text: str, name: str, seed: int | None = None) -> dict[str, Any]:
        """Play a scenario in place of one that plays. Raises UsageError if it is wrong."""
        return await self.stage.play(read_scenario(text, name, self.fleet), seed)
