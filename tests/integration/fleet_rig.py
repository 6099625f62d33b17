"""A fleet against the fake API server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.fleet.budget import Budget
from hami_mock.fleet.controller import Controller
from hami_mock.fleet.fleet import Fleet
from tests.integration.fake_api_server import FakeApiServer, api_server


@asynccontextmanager
async def keeping(fleet: Fleet, rate: float = 0) -> AsyncIterator[Controller]:
    """Run a controller of the fleet."""
    async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
        controller = Controller(fleet, kubernetes, Budget(rate))
        await tasks.start(controller.run)
        yield controller
        tasks.cancel_scope.cancel()


def with_server(folder: Path, scenario: Callable[[FakeApiServer], Awaitable[None]]) -> None:
    async def run() -> None:
        with anyio.fail_after(60):
            async with api_server(folder) as server:
                await scenario(server)

    anyio.run(run)


def nodes(server: FakeApiServer) -> dict[str, Any]:
    """Return the nodes that are there, by name."""
    return {name: thing for (kind, _, name), thing in server.objects.items() if kind == "nodes"}


def writes(server: FakeApiServer) -> int:
    """Return how many writes were asked for."""
    return sum(not line.startswith(("get", "list", "watch")) for line in server.requests)
