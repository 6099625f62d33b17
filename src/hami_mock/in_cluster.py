"""What an agent does at the API server, as its settings will have it."""

from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio.abc import TaskStatus

from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings
from hami_mock.sources.configuration import Configuration
from hami_mock.sources.holders import HolderReader
from hami_mock.views.node_events import report_events

if TYPE_CHECKING:
    from hami_mock.cluster.kubernetes import Kubernetes
    from hami_mock.views.hami.allocator import Allocator


class Served(Protocol):
    """The agent, as far as it is seen from here."""

    settings: Settings
    state: NodeState
    holders: HolderReader
    configuration: Configuration


class InCluster:
    """Writes events and HAMi's annotations, or follows those of a real plugin."""

    def __init__(self, agent: Served, kubernetes: "Kubernetes") -> None:
        self._agent = agent
        self._kubernetes = kubernetes
        self.allocator = self._make_allocator() if agent.settings.hami else None
        """Who gives pods what HAMi's scheduler assigned; None without HAMi."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Do it until cancelled."""
        settings, state = self._agent.settings, self._agent.state
        async with anyio.create_task_group() as tasks:
            if settings.kubernetes_events:
                await tasks.start(report_events, self._kubernetes, state)
            if self.allocator is not None:
                from hami_mock.views.hami.registrar import Registrar

                keep = settings.hami_keep_annotations
                await tasks.start(self.allocator.run)
                await tasks.start(Registrar(state, self._kubernetes, keep=keep).run)
            if settings.is_companion:
                await tasks.start(self._accompany)
            task_status.started()

    def writes(self) -> int:
        """Return how often something was written to the API server."""
        return self._kubernetes.writes

    def _make_allocator(self) -> "Allocator":
        from hami_mock.views.hami.allocator import Allocator

        return Allocator(self._agent.state, self._kubernetes)

    async def _accompany(
        self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        from hami_mock.sources.annotated.companion import Companion

        agent = self._agent
        async with aclosing(self._kubernetes.watch_node(agent.settings.node_name)) as nodes:
            companion = Companion(agent.settings, agent.state, agent.holders, nodes)
            agent.configuration.companion = companion
            await companion.run(task_status=task_status)
