"""The agent: one task group that wires settings, state, plugins and HTTP together."""

import logging
import signal
from contextlib import AsyncExitStack

import anyio
from anyio.abc import TaskStatus

from hami_mock import __version__
from hami_mock.advice import warnings
from hami_mock.cluster import api
from hami_mock.deviceplugin.directory import SocketDirectory
from hami_mock.deviceplugin.lifecycle import PluginLifecycle
from hami_mock.kubelet_rules import Version
from hami_mock.layout import Node, lay_out
from hami_mock.settings import Settings
from hami_mock.state import NodeState
from hami_mock.telemetry.http import agent_routes, serve_http

_log = logging.getLogger(__name__)


async def plan(settings: Settings) -> tuple[Node, Version | None]:
    """Return what the node will offer, and the kubelet's version if it could be learnt.

    The API server is asked only if the answer decides something: `auto` without a version given.
    """
    version = settings.kubelet_version
    is_needed = any(vendor.memory_factor is None for vendor in settings.vendors)
    if version is None and is_needed and api.is_configured():
        version = await api.kubelet_version(settings.node_name)
    return lay_out(settings, version), version


class Agent:
    """A node's device plugins and what shows their state."""

    def __init__(self, settings: Settings, node: Node) -> None:
        self.settings = settings
        self.node = node
        self.state = NodeState(node.cards)
        self.directory = SocketDirectory(settings.socket_dir)
        self.plugins = [
            PluginLifecycle(resource, self.state, self.directory) for resource in node.resources
        ]

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled. Raises StartError if the HTTP address can't be had."""
        for name in self.directory.remove_stale_sockets():
            _log.info("removed the socket of an agent that is gone: %s", name)
        async with AsyncExitStack() as stack:
            if self.settings.http_listen:
                routes = agent_routes(self.state, self.plugins)
                server = serve_http(self.settings.http_listen, routes)
                _log.info("HTTP at %s", await stack.enter_async_context(server))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            for plugin in self.plugins:
                await tasks.start(plugin.run)
            await tasks.start(self.directory.run)
            task_status.started()
            await anyio.sleep_forever()


async def run(settings: Settings) -> None:
    """Run the agent until SIGTERM or SIGINT."""
    node, version = await plan(settings)
    _announce(settings, node, version)
    agent = Agent(settings, node)
    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            await tasks.start(agent.run)
            number = await anext(aiter(signals))
            _log.info("%s: stopping", signal.Signals(number).name)
            tasks.cancel_scope.cancel()


def _announce(settings: Settings, node: Node, version: Version | None) -> None:
    _log.info(
        "hami-mock %s on node %s: %d cards, %d resources, sockets in %s",
        __version__,
        node.name,
        len(node.cards),
        len(node.resources),
        settings.socket_dir,
    )
    if not node.resources:
        _log.warning("no cards are configured for this node: nothing will be registered")
    for resource in node.resources:
        _log.info("%s: %d x %s", resource.name, resource.count, resource.unit)
        for warning in warnings(resource, node, version):
            _log.warning("%s: %s", resource.name, warning)
