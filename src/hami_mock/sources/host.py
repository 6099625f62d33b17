"""What the node's kubelet bears, and what the API server lets the agent do there."""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import anyio

from hami_mock.errors import Away, ClusterError, HamiMockError, NotThere
from hami_mock.kit.concurrency import Backoff
from hami_mock.kubelet.limits import Version
from hami_mock.node.ways import NO_PERMISSION, Permission, Units
from hami_mock.settings.settings import Settings

if TYPE_CHECKING:
    from hami_mock.cluster.kubernetes import Kubernetes

_T = TypeVar("_T")

_AWAY_SECONDS = 10.0
"""What an API server that can't be reached gets before the agent goes on without it."""

_log = logging.getLogger(__name__)


class Host(NamedTuple):
    """The kubelet's version, if it is known, and whether the Node's status may be written."""

    version: Version | None = None
    permission: Permission = NO_PERMISSION

    def after(self, before: "Host") -> "Host":
        """Return what is known now: units that changed their way for an outage would be missed."""
        return Host(self.version or before.version, self.permission.after(before.permission))


async def ask(settings: Settings, if_unknown: Permission = NO_PERMISSION) -> Host:
    """Ask the API server, where there is one and its answer decides something.

    `if_unknown` is what holds where there is none, or it has no such node.
    """
    version, asks_permission = settings.kubelet_version, _asks_permission(settings)
    is_coarse = any(vendor.memory_factor is None for vendor in settings.vendors)
    asks_version = version is None and (is_coarse or asks_permission)
    if not (asks_version or asks_permission):
        return Host(version)
    # Here: it takes long to load, and not every agent has somebody to ask.
    from hami_mock.cluster.kubernetes import Kubernetes, is_configured
    from hami_mock.sources.annotated.node_object import version_of

    if not is_configured():
        return Host(version, if_unknown)
    try:
        async with Kubernetes() as cluster:
            node = await _patiently(cluster.node, settings.node_name)
            return Host(version or version_of(node), await permission_for(cluster, settings))
    except HamiMockError as error:
        if asks_version:
            name = settings.node_name
            _log.warning("can't find out the kubelet's version on node %s: %s", name, error)
        is_assumed = isinstance(error, NotThere) and if_unknown.is_allowed
        return Host(version, if_unknown if is_assumed else _refused(error))


async def permission_for(cluster: "Kubernetes", settings: Settings) -> Permission:
    """Return whether the agent may write the Node's status, if that decides anything."""
    if not _asks_permission(settings):
        return NO_PERMISSION
    try:
        await _patiently(cluster.check_node_status, settings.node_name)
    except ClusterError as error:
        return _refused(error)
    return Permission(is_allowed=True)


def _asks_permission(settings: Settings) -> bool:
    return settings.may_use_status and settings.units is Units.AUTO


async def _patiently(ask: Callable[[str], Awaitable[_T]], node_name: str) -> _T:
    """Ask again for a while if the API server is away. Raises ClusterError."""
    backoff, end = Backoff(), anyio.current_time() + _AWAY_SECONDS
    while True:
        try:
            return await ask(node_name)
        except Away as error:
            pause = backoff.next(error.retry_after)
            if anyio.current_time() + pause > end:
                raise
        await anyio.sleep(pause)


def _refused(error: HamiMockError) -> Permission:
    # A node that isn't there (yet) says as little as a server that isn't.
    return Permission(refusal=str(error), is_known=not isinstance(error, Away | NotThere))
