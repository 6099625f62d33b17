"""The DRA drivers that publish this node's cards: as many as its vendors have, at any time."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskGroup, TaskStatus

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.resources import RESOURCE_CLAIMS
from hami_mock.node.state import NodeState
from hami_mock.vendors import VENDORS
from hami_mock.vendors.dra import DraDriver, Profile, driver_of
from hami_mock.vendors.vendor import Vendor
from hami_mock.views.deviceplugin.counters import Histogram
from hami_mock.views.dra.cdi import CdiFolder, GivesWith
from hami_mock.views.dra.checkpoint import Checkpoint
from hami_mock.views.dra.claims import Claims
from hami_mock.views.dra.devices import Pool
from hami_mock.views.dra.plugin import DriverSockets
from hami_mock.views.dra.publisher import Publisher, gate_message


class Places(NamedTuple):
    """The kubelet's folders of plugins and of their registrations, and the runtime's of specs.

    `gives` tells what else containers get with cards.
    """

    plugins: str
    registry: str
    cdi: str
    gives: GivesWith | None = None


class DriverFigures(NamedTuple):
    """What metrics tell of a driver."""

    driver: str
    is_registered: bool
    devices: int
    slices: int
    slice_writes: int
    claims: int
    claim_errors: int
    gates_off: Sequence[str]
    prepare_seconds: Histogram


class DraView:
    """Starts a driver for each profile of a vendor that has cards; it stays when they go.

    One with claims of an agent before stays too: a pod can't end until they are taken back.
    """

    name = "dra"

    def __init__(
        self,
        state: NodeState,
        kubernetes: Kubernetes,
        profiles: Sequence[Profile],
        driver_version: str,
        places: Places,
    ) -> None:
        self._state = state
        self._kubernetes = kubernetes
        self._profiles = profiles
        self._version = driver_version
        self._places = places
        self._drivers: dict[str, RunningDriver] = {}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self._drivers.clear()
        async with anyio.create_task_group() as tasks:
            await self._follow(tasks)
            for driver, profile in self._drivers_of(VENDORS).items():
                if driver.name not in self._drivers and self._has_claims(driver):
                    await self._start(driver, profile, tasks)
            task_status.started()
            while True:
                change = self._state.changes.next()
                await self._follow(tasks)
                await change.wait()

    def status(self) -> dict[str, Any]:
        return {name: driver.status() for name, driver in self._drivers.items()}

    def figures(self) -> list[DriverFigures]:
        return [driver.figures() for driver in self._drivers.values()]

    @property
    def not_ready(self) -> str:
        problems = ((name, driver.problem) for name, driver in self._drivers.items())
        return "; ".join(f"{name}: {problem}" for name, problem in problems if problem)

    @property
    def notice(self) -> str:
        gates = {gate for driver in self._drivers.values() for gate in driver.gates}
        return "; ".join(map(gate_message, sorted(gates)))

    async def _follow(self, tasks: TaskGroup) -> None:
        vendors = dict.fromkeys(card.vendor for card in self._state.node.cards)
        for driver, profile in self._drivers_of(vendors).items():
            if driver.name not in self._drivers:
                await self._start(driver, profile, tasks)

    def _drivers_of(self, vendors: Iterable[Vendor]) -> dict[DraDriver, Profile]:
        return {
            driver: profile
            for vendor in vendors
            for profile in self._profiles
            if (driver := driver_of(vendor, profile)) is not None
        }

    def _has_claims(self, driver: DraDriver) -> bool:
        return bool(Checkpoint(Path(self._places.plugins) / driver.name).read())

    async def _start(self, driver: DraDriver, profile: Profile, tasks: TaskGroup) -> None:
        pool = Pool(driver, profile, self._state, self._version)
        running = RunningDriver(pool, self._kubernetes, self._places)
        self._drivers[driver.name] = running
        await tasks.start(running.run)


class RunningDriver:
    """A driver: what it offers, its sockets, its claims and its slices."""

    def __init__(self, pool: Pool, kubernetes: Kubernetes, places: Places) -> None:
        async def get_claim(namespace: str, name: str) -> Mapping[str, Any]:
            return await kubernetes.get(RESOURCE_CLAIMS, name, namespace)

        folder = Path(places.plugins) / pool.driver.name
        self._kubernetes = kubernetes
        self._pool = pool
        self._claims = Claims(pool, get_claim, folder, CdiFolder(places.cdi), places.gives)
        self._sockets = DriverSockets(pool, self._claims, folder, Path(places.registry))
        self._publisher = Publisher(pool, kubernetes)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self._claims.restore()
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._sockets.run)
            await tasks.start(self._publisher.run, self._kubernetes.watch)
            task_status.started()

    @property
    def problem(self) -> str:
        problems = self._sockets.registration.problem, self._publisher.problem
        return "; ".join(filter(None, problems))

    @property
    def gates(self) -> set[str]:
        return self._publisher.gates

    def figures(self) -> DriverFigures:
        return DriverFigures(
            self._pool.driver.name,
            not self._sockets.registration.problem,
            len(self._pool.devices),
            self._publisher.count,
            self._publisher.writes,
            len(self._claims.all),
            self._claims.errors,
            sorted(self.gates),
            self._claims.seconds,
        )

    def status(self) -> dict[str, Any]:
        claims = self._claims.all
        return {
            "registered": not self._sockets.registration.problem,
            "registrations": self._sockets.registration.registrations,
            "devices": len(self._pool.devices),
            "slices": self._publisher.count,
            "generation": self._publisher.generation,
            "writes": self._publisher.writes,
            "gates_off": sorted(self.gates),
            "claims": {claim.key.claim: [each.name for each in claim.devices] for claim in claims},
            "claim_errors": self._claims.errors,
            "error": self.problem,
        }
