"""One resource's life with the kubelet: serve, register, be watched; when it ends, once more."""

import logging
import re
import secrets
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import Refused
from hami_mock.kit.concurrency import Backoff, first_of
from hami_mock.kit.folder_watch import Identity, identity
from hami_mock.kit.supervision import reason_of
from hami_mock.kubelet._proto.v1beta1 import RegisterRequest
from hami_mock.kubelet.rpc import call
from hami_mock.node.fault import FaultKind
from hami_mock.node.fault_kinds import DOWN, REFUSED
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.deviceplugin.directory import SocketDirectory
from hami_mock.views.deviceplugin.server import serve
from hami_mock.views.deviceplugin.service import DevicePluginService

API_VERSION = "v1beta1"

_REGISTER_SECONDS = 300.0
"""A kubelet from 1.36 on may be busy with another resource's list for minutes. Whoever gives up and
registers again makes it worse: up to 1.36 the end of the old stream takes the new one along."""
_WATCH_SECONDS = 60.0
"""A kubelet that took the registration opens the list at once."""
_STEADY_SECONDS = 10.0
"""A list that was watched for this long was no failure, whatever ended it."""

ServiceMaker = Callable[[Resource, NodeState, ResourceCounters], DevicePluginService]

_LIST_ENDED = "the kubelet closed the list"

_log = logging.getLogger(__name__)


class Phase(StrEnum):
    """How far a resource has come."""

    WAITING = "waiting"
    REGISTERED = "registered"
    WATCHED = "watched"
    FAILED = "failed"
    STOPPED = "stopped"


class PluginLifecycle:
    """Keeps one resource registered."""

    def __init__(
        self,
        resource: Resource,
        state: NodeState,
        directory: SocketDirectory,
        service: ServiceMaker = DevicePluginService,
        on_watched: Callable[[], None] = lambda: None,
    ) -> None:
        self._at_first = resource
        self.offer = resource.offer
        self.counters = ResourceCounters()
        self.phase = Phase.WAITING
        self.reason = "not tried yet"
        self.was_watched = False
        """Whether the kubelet has ever taken its list."""
        self._state = state
        self._directory = directory
        self._backoff = Backoff()
        self._service = service
        self._on_watched = on_watched
        self._stop = anyio.Event()
        self.stop = self._stop.set
        self.ended = anyio.Event()

    @property
    def resource(self) -> Resource:
        return self._state.current(self._at_first)

    @property
    def is_offered(self) -> bool:
        return self.phase is Phase.WATCHED

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the resource registered until `stop`."""
        self.ended = anyio.Event()
        task_status.started()
        try:
            await first_of(self._stop.wait, self._keep_registered)
        finally:
            self.phase = Phase.STOPPED
            self.ended.set()

    async def _keep_registered(self) -> None:
        while True:
            try:
                await self._try()
            except Exception as error:
                # Whatever it is, it is this resource's alone, and may be over at the next try.
                self._fail(error)
                await anyio.sleep(self._backoff.next())

    async def _try(self) -> None:
        if self._has(DOWN):
            self._set(Phase.WAITING, "down on command")
            await self._state.wait_until(lambda: not self._has(DOWN))
        kubelet = await self._find_kubelet()
        try:
            self._set(Phase.WAITING, await self._serve_and_register(kubelet))
        except Exception as error:
            self._fail(error)
            await self._pause(kubelet)

    def _fail(self, error: Exception) -> None:
        self._set(Phase.FAILED, reason_of(error))
        self.counters.registration_errors += 1
        _log.debug("%s: the attempt failed", self.resource.name, exc_info=error)

    async def _find_kubelet(self) -> Identity:
        socket = self._directory.kubelet_socket
        while (found := identity(socket)) is None:
            is_there = socket.parent.is_dir()
            missing = f"no kubelet at {socket}" if is_there else f"there is no {socket.parent}"
            self._set(Phase.WAITING, missing)
            self._backoff.reset()
            await self._directory.wait_until(socket.exists)
        return found

    async def _pause(self, kubelet: Identity) -> None:
        """Wait before the next try, but no longer than until the reason for it may be gone."""
        waits = [lambda: self._directory.wait_until(lambda: not self._is_current(kubelet))]
        if self._has(REFUSED):
            waits.append(lambda: self._state.wait_until(lambda: not self._has(REFUSED)))
        if self._directory.stranger():
            waits.append(lambda: self._directory.wait_until(lambda: not self._directory.stranger()))
        with anyio.move_on_after(self._backoff.next()):
            await first_of(*waits)
            self._backoff.reset()

    def _has(self, kind: FaultKind) -> bool:
        return self._state.has(self.resource.name, kind)

    def _is_current(self, kubelet: Identity) -> bool:
        return identity(self._directory.kubelet_socket) == kubelet

    async def _serve_and_register(self, kubelet: Identity) -> str:
        """Serve, register and be watched; return why that is over, once it is.

        Raises KubeletError if the kubelet didn't take it for long, StartError if another agent has
        the folder, OSError if we can't serve.
        """
        # The folder may have come, or come anew, since the agent started.
        self._directory.claim()
        if self._has(REFUSED):
            raise Refused("registration refused on command")
        service = self._service(self.resource, self._state, self.counters)
        # A fresh name each time: the kubelet may still hold a connection to the last one.
        with self._directory.own_socket(socket_name(self.resource.name)) as path:
            async with serve(service, path, service.end_streams):
                await self._register(kubelet, path, service)
                since = anyio.current_time()
                self._set(Phase.WATCHED, "")
                over = await self._until_over(kubelet, path, service)
        self._directory.claim()
        if over is not _LIST_ENDED or anyio.current_time() - since > _STEADY_SECONDS:
            self._backoff.reset()
            return over
        raise Refused(f"{over} soon after opening it")

    async def _register(self, kubelet: Identity, path: Path, service: DevicePluginService) -> None:
        """Register and wait for the list to be opened, for as long as there is any use in it.

        A kubelet that restarts now deletes our socket. The new one would look for it in vain, for
        10 seconds, while we wait for its answer.
        """
        lost = partial(self._directory.wait_until, lambda: bool(self._loss(kubelet, path)))
        socket, name = self._directory.kubelet_socket, self.resource.name
        await first_of(lost, partial(register, socket, path.name, name, self._tell_quiet))
        if not self._loss(kubelet, path):
            self.counters.registrations += 1
            self._set(Phase.REGISTERED, "the kubelet hasn't opened the list yet")
            with anyio.move_on_after(_WATCH_SECONDS):
                await first_of(lost, service.watched.wait)
        if not service.watched.is_set():
            late = f"the kubelet didn't open the list within {_WATCH_SECONDS:.0f} s"
            raise Refused(self._loss(kubelet, path) or late)

    async def _until_over(self, kubelet: Identity, path: Path, service: DevicePluginService) -> str:
        """Wait until the registration is worth nothing any more, and return why."""
        await first_of(
            service.abandoned.wait,
            lambda: self._directory.wait_until(lambda: bool(self._loss(kubelet, path))),
            lambda: self._state.wait_until(lambda: self._has(DOWN)),
        )
        if self._has(DOWN):
            return "down on command"
        if service.dropped:
            return "the list was dropped on command"
        return self._loss(kubelet, path) or _LIST_ENDED

    def _loss(self, kubelet: Identity, path: Path) -> str:
        """Return why a registration at a kubelet for a socket is worth nothing any more."""
        if not self._is_current(kubelet):
            return "the kubelet restarted"
        if identity(path) is None:
            return "the agent's socket disappeared"
        stranger = self._directory.stranger()
        return f"another agent serves {stranger}" if stranger else ""

    def _tell_quiet(self, so_long: str) -> None:
        self._set(Phase.WAITING, f"the kubelet hasn't answered the registration {so_long}")

    def _set(self, phase: Phase, reason: str) -> None:
        if (phase, reason) != (self.phase, self.reason):
            # Once per reason, not once per try: a kubelet may be away for days.
            level = logging.WARNING if phase is Phase.FAILED else logging.INFO
            _log.log(level, "%s: %s%s", self.resource.name, phase, reason and f": {reason}")
        self.phase, self.reason = phase, reason
        if phase is Phase.WATCHED:
            self.was_watched = True
            self._on_watched()


async def register(
    kubelet_socket: Path,
    endpoint: str,
    resource_name: str,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    request = RegisterRequest(version=API_VERSION, endpoint=endpoint, resource_name=resource_name)
    await call(kubelet_socket, "/v1beta1.Registration/Register", request, _REGISTER_SECONDS, tell)


def socket_name(resource_name: str) -> str:
    """Return a name for a socket that was never used before and fits a unix socket's path."""
    readable = re.sub(r"[^A-Za-z0-9.-]", "-", resource_name)[-24:]
    return f"hami-mock-{readable}-{secrets.token_hex(4)}.sock"
