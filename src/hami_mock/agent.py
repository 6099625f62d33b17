"""The agent: one task group with a list of sources and views around one state."""

import logging
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import anyio
from anyio.abc import TaskStatus

from hami_mock import __version__
from hami_mock.errors import StartError
from hami_mock.faults.stage import Stage
from hami_mock.kit.signals import received
from hami_mock.kit.supervision import Supervisor, reason_of
from hami_mock.kubelet.limits import Version
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.advice import dra_warnings, warnings
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings
from hami_mock.sources.configuration import Configuration, Source
from hami_mock.sources.configured import ConfiguredSource, first_node
from hami_mock.sources.holders import HolderReader
from hami_mock.sources.host import Host, permission_for
from hami_mock.sources.inventory import Inventory
from hami_mock.sources.late_load import LateLoad
from hami_mock.views.deviceplugin.directory import SocketDirectory
from hami_mock.views.deviceplugin.plugins import Plugins
from hami_mock.views.http.metrics import NodeCollector
from hami_mock.views.http.view import HttpView, agent_routes
from hami_mock.views.offering import Offering
from hami_mock.views.page.feed import Feed
from hami_mock.views.page.routes import page_routes
from hami_mock.views.page.snapshot import snapshot

if TYPE_CHECKING:
    from hami_mock.cluster.kubernetes import Kubernetes
    from hami_mock.sources.load import LoadSource
    from hami_mock.views.dra.view import DraView, DriverFigures
    from hami_mock.views.driver.view import DriverView
    from hami_mock.views.hami.allocator import Allocator
    from hami_mock.views.node_status import NodeStatus

_log = logging.getLogger(__name__)


class Part(Protocol):
    """A source or a view, or what they have in common."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled; it may end before if there is nothing to do."""


@runtime_checkable
class View(Part, Protocol):
    """Shows the state, and each change of it, to somebody: the kubelet, the API server, people."""

    name: str
    """What `ctl status -o json` calls it."""

    def status(self) -> Mapping[str, Any]: ...


class Agent:
    """A node's state, and in a list all that decides on it, shows it or changes it."""

    def __init__(
        self,
        settings: Settings,
        node: Node,
        flags: Mapping[str, str] | None = None,
        kubernetes: "Kubernetes | None" = None,
        directory: SocketDirectory | None = None,
    ) -> None:
        self.settings = settings
        self.state = NodeState(node, ignored_xids=settings.ignored_xids)
        self.directory = directory or SocketDirectory(settings.socket_dir)
        self.holders = HolderReader(self.state, PodResources(settings.pod_resources_socket))
        self.inventory = Inventory(settings, self.state, self.holders, self.directory)
        self.source: Source = ConfiguredSource(
            settings, self.state, self.inventory, is_connected=kubernetes is not None
        )
        if settings.is_companion and kubernetes is not None:
            from hami_mock.sources.annotated.source import AnnotatedSource

            self.source = AnnotatedSource(
                settings, self.state, self.inventory, kubernetes.watch_node,
                partial(permission_for, kubernetes),
            )  # fmt: skip
        self.configuration = Configuration(settings, flags or {}, self.state, self.source)
        self.reload = self.configuration.reload
        self._late_load = LateLoad(
            self.state, lambda: self.configuration.settings, self.configuration.applied
        )
        self.stage = Stage(self.state)
        self.stop_scenario = self.stage.stop
        self.supervisor = Supervisor()
        self.views: list[View] = []
        self._running: dict[str, Part] = {}
        self._kubernetes = kubernetes
        self._dra: DraView | None = None
        self._allocator: Allocator | None = None
        if kubernetes is not None and settings.hami:
            from hami_mock.views.hami import allocator

            self._allocator = allocator.Allocator(self.state, kubernetes)
        self._driver: DriverView | None = None
        if settings.driver:
            from hami_mock.views.driver import compiled, view

            root, version = Path(settings.driver_root), settings.driver_version
            self._driver = view.DriverView(self.state, root, version, compiled.read)
        given_with = self._driver.given_with if self._driver else None
        self._plugins = Plugins(self.state, self.directory, self._allocator, given_with)
        self.plugins = self._plugins.all
        self._node_status: NodeStatus | None = None
        if kubernetes is not None:
            from hami_mock.views import node_status

            own = self._plugins
            plugins = node_status.PluginsSeen(own.registrations, own.has, own.had)
            self._node_status = node_status.NodeStatus(
                self.state, kubernetes, plugins, self.inventory.forget_units_in_status
            )

    def _parts(self) -> Iterator[tuple[str, Part]]:
        """Yield sources and views with their names in the order of their start.

        Each is loaded when those before it run: registrations are on their way first, and what
        isn't needed costs nothing.
        """
        settings, kubernetes = self.settings, self._kubernetes
        if settings.http_listen:
            yield from self._pages(settings.http_listen)
        yield "inventory", self.inventory
        if self._driver is not None:
            # Before the kubelet asks for what it gives containers.
            yield "driver", self._driver
        yield "device plugins", self._plugins
        yield "socket folder", self.directory
        yield "configuration", self.configuration
        yield "scenario", self.stage
        if settings.control_socket:
            from hami_mock.control.commands import Commands
            from hami_mock.control.server import ControlServer

            yield "control", ControlServer(settings.control_socket, partial(Commands, self))
        yield "holders", self.holders
        if kubernetes is not None and (settings.reads_pods or self._node_status):
            from hami_mock.sources.pods import PodReader

            yield "pods", PodReader(self.state, kubernetes.watch_pods, self._reads_pods)
        yield "load", self._late_load
        yield "source", self.source
        if settings.has_exporters:
            from hami_mock.views.exporters.view import exporter_views

            yield from exporter_views(settings, self.state)
        if kubernetes is not None:
            yield from self._cluster_views(kubernetes)

    def _cluster_views(self, kubernetes: "Kubernetes") -> Iterator[tuple[str, Part]]:
        """Yield what shows the state to the API server."""
        settings = self.settings
        if self._node_status is not None:
            yield "node status", self._node_status
        if settings.kubernetes_events:
            from hami_mock.views.node_events import NodeEvents

            yield "node events", NodeEvents(kubernetes, self.state)
        if settings.labels:
            from hami_mock.views.labels.labeller import Labeller, Registrations, Wanted

            yield "labels", Labeller(
                self.state, kubernetes,
                Wanted(settings.labels, settings.driver_version, settings.labels_remove),
                Registrations(self._are_registered, self._plugins.registrations),
            )  # fmt: skip
        if settings.dra:
            from hami_mock.views.dra.view import DraView, Places

            gives = self._driver.given_with if self._driver else None
            folders = settings.dra_plugins_dir, settings.dra_registry_dir, settings.cdi_dir
            self._dra = DraView(
                self.state, kubernetes, settings.dra, settings.driver_version,
                Places(*folders, gives),
            )  # fmt: skip
            yield "dra", self._dra
        if self._allocator is not None:
            from hami_mock.views.hami.left_behind import LeftBehind
            from hami_mock.views.hami.registrar import Registrar

            yield "hami locks", LeftBehind(self.state, kubernetes, self._allocator.troubles)
            yield "hami", Registrar(self.state, kubernetes, keep=settings.hami_keep_annotations)

    def _pages(self, address: str) -> Iterator[tuple[str, Part]]:
        kubernetes = self._kubernetes
        writes = (lambda: kubernetes.writes) if kubernetes else None
        shown = NodeCollector(
            self.state, self.offerings, self.configuration, writes,
            self.failures, self.supervisor.counts, self._dra_figures,
        )  # fmt: skip
        feed = Feed(self, self.holders.refresh_if_old)
        routes = {**agent_routes(shown, self.notices), **page_routes(feed)}
        yield "http", HttpView(address, routes)
        yield "page", feed

    def _dra_figures(self) -> "Sequence[DriverFigures]":
        return self._dra.figures() if self._dra else ()

    def _are_registered(self) -> bool:
        """Tell whether the kubelet has all that there is; a companion must know its cards first."""
        is_known = bool(self.state.node.cards) or not self.configuration.missing
        in_status = [each for each in self.offerings() if each.resource.in_status]
        are_shown = all(each.is_offered for each in in_status)
        return is_known and self._plugins.are_registered() and are_shown

    def _reads_pods(self) -> bool:
        # Units in the Node's status are whose pods ask for them: the kubelet knows no holder.
        return self.settings.reads_pods or any(r.in_status for r in self.state.node.resources)

    def offerings(self) -> list[Offering]:
        """Return the resources that the node offers, in their order, and how far each has come."""
        plugins = {plugin.resource.name: plugin for plugin in self.plugins}
        found: list[Offering] = []
        for resource in self.state.node.resources:
            if resource.in_status and self._node_status:
                found.append(self._node_status.offering(resource))
            elif resource.name in plugins:
                found.append(plugins[resource.name])
        return found

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled.

        Raises StartError if another agent has the socket folder, or the HTTP address can't be had.
        """
        self.directory.claim()
        try:
            for name in self.directory.remove_stale_sockets():
                _log.info("removed a socket left behind by an earlier agent: %s", name)
            async with anyio.create_task_group() as tasks:
                for name, part in self._parts():
                    self._running[name] = part
                    await tasks.start(self.supervisor.run, name, part.run)
                    if isinstance(part, View):
                        self.views.append(part)
                task_status.started()
                await anyio.sleep_forever()
        finally:
            self.directory.release()

    def failures(self) -> dict[str, str]:
        """Return the parts that don't work now, and why.

        A view that runs but can't show the state to whom it should says so in `not_ready`.
        """
        hindered = {
            view.name: why for view in self.views if (why := getattr(view, "not_ready", ""))
        }
        return {**hindered, **self.supervisor.failures}

    def notices(self) -> dict[str, str]:
        """Return the parts that know less than they could, and why; the agent works without."""
        return {
            name: told
            for name, part in self._running.items()
            if (told := getattr(part, "notice", ""))
        }

    @property
    def node(self) -> Node:
        return self.state.node

    async def status(self) -> dict[str, Any]:
        from hami_mock.control.status import status

        await self.holders.refresh_if_old()
        return {
            **status(self.state, self.offerings(), self.failures(), self.notices()),
            "driver_version": self.configuration.settings.driver_version,
            "configuration": self.configuration.as_data(),
            "scenario": self.stage.status,
            "load": self.load.status(),
            "views": {view.name: view.status() for view in self.views},
        }

    @property
    def load(self) -> "LoadSource":
        return self._late_load.source

    async def set_load(self, targets: Sequence[str], load: str | None) -> list[str]:
        """Set the load of containers, or take it back; return what changed. Raises UsageError."""
        from hami_mock.control.loading import set_load

        # Not only if it is old: a pod that has just begun may be named.
        await self.holders.refresh()
        return set_load(self.state, self.load, targets, load)

    async def snapshot(self) -> dict[str, Any]:
        await self.holders.refresh_if_old()
        return snapshot(self)

    async def set_options(self, values: Mapping[str, str], reset: bool) -> list[str]:
        """Set options over all else; return what changed. Raises UsageError."""
        return await self.configuration.set_options(values, reset=reset)

    async def play(self, text: str, name: str, seed: int | None) -> dict[str, Any]:
        """Play a scenario in place of one that plays. Raises UsageError if it is wrong."""
        from hami_mock.faults import scenario_reader

        return await self.stage.play(scenario_reader.parse(text, name), seed)


async def run(settings: Settings, flags: Mapping[str, str]) -> None:
    """Run the agent until SIGTERM or SIGINT; at SIGHUP it reads its configuration again."""
    scenario = None
    if settings.scenario:
        from hami_mock.faults import scenario_reader

        scenario = scenario_reader.read(settings.scenario)
    # Before anything is written there.
    directory = SocketDirectory(settings.socket_dir)
    directory.claim()
    # A companion's cards come from the node at the API server.
    node, host = Node(settings.node_name, (), ()), Host(settings.kubelet_version)
    if not settings.is_companion:
        node, host = await first_node(settings)
    _announce(settings, node, host.version)
    async with AsyncExitStack() as connections:
        kubernetes = await _connect(settings, connections)
        agent = Agent(settings, node, flags, kubernetes, directory)
        if isinstance(agent.source, ConfiguredSource):
            agent.source.known = host
        with received(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as tasks:
                await tasks.start(agent.run)
                if scenario is not None:
                    await agent.stage.play(scenario, agent.settings.seed)
                async for number in signals:
                    if number != signal.SIGHUP:
                        _log.info("%s: stopping", signal.Signals(number).name)
                        break
                    _log.info("SIGHUP: reading the configuration again")
                    try:
                        await agent.configuration.follow()
                    except Exception as error:
                        # A mistake in the files is told by `follow`; this is something else.
                        _log.error("keeping the old configuration: %s", reason_of(error))
                tasks.cancel_scope.cancel()


async def _connect(settings: Settings, connections: AsyncExitStack) -> "Kubernetes | None":
    """Connect to the API server, if anything may have to be said to it.

    Raises StartError if it can't be used, and something must be.
    """
    if not (settings.needs_cluster or settings.may_use_status):
        return None
    from hami_mock.cluster.kubernetes import Kubernetes, is_configured

    if not settings.needs_cluster and not is_configured():
        return None
    try:
        return await connections.enter_async_context(Kubernetes())
    except StartError as error:
        if flags := ", ".join(settings.cluster_flags):
            raise StartError(f"{flags}: the API server is needed: {error}") from error
        _log.info("units stay with device plugins: %s", error)
        return None


def _announce(settings: Settings, node: Node, version: Version | None) -> None:
    carries = f"{len(node.cards)} cards, {len(node.resources)} resources"
    where = f"sockets in {settings.socket_dir}"
    _log.info("hami-mock %s on node %s: %s, %s", __version__, node.name, carries, where)
    if settings.is_companion:
        _log.info("companion of a real plugin: the cards are read from the node")
    elif not settings.device_plugins:
        others = (
            "claims get the cards through DRA"
            if settings.dra
            else "a real plugin registers the resources"
        )
        _log.info("device plugins are off: %s", others)
    elif not node.resources:
        _log.warning("no cards are configured for this node: nothing will be registered")
    for warning in dra_warnings(node, settings.dra):
        _log.warning("%s", warning)
    for resource in node.resources:
        way = ", in the Node's status" if resource.in_status else ""
        _log.info("%s: %d x %s%s", resource.name, resource.count, resource.unit, way)
        for warning in warnings(resource, node, version):
            _log.warning("%s: %s", resource.name, warning)
