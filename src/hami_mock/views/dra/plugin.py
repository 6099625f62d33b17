"""One driver's sockets: the one that the kubelet calls, and the one that it finds it by."""

import logging
import os
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import StartError
from hami_mock.kit.concurrency import Backoff, first_of
from hami_mock.kit.folder_watch import FolderWatch, identity
from hami_mock.kit.own_socket import remove_stale
from hami_mock.kit.supervision import reason_of
from hami_mock.views.deviceplugin.server import serve
from hami_mock.views.dra.claims import Claims
from hami_mock.views.dra.devices import Pool
from hami_mock.views.dra.registration import RegistrationService
from hami_mock.views.dra.service import ClaimService, HealthService

LONGEST_SOCKET = 107
"""Bytes of the path of a unix socket that Linux takes."""

_log = logging.getLogger(__name__)


class DriverSockets:
    """Serves a driver until cancelled, and again when somebody has removed its sockets.

    A kubelet that restarts looks through its folder, and finds the driver by itself.
    """

    def __init__(
        self,
        pool: Pool,
        claims: Claims,
        folder: Path,
        registry: Path,
    ) -> None:
        self._pool = pool
        self._driver = pool.driver.name
        self._claims = claims
        self._folder = folder
        self._socket = folder / "dra.sock"
        self._registration_socket = registry / f"{self._driver}-reg.sock"
        self.registration = RegistrationService(self._driver, str(self._socket))
        self._watches = FolderWatch(registry), FolderWatch(self._folder)
        self._told = ""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        backoff = Backoff()
        async with anyio.create_task_group() as tasks:
            for watch in self._watches:
                await tasks.start(watch.run)
            task_status.started()
            while True:
                try:
                    await self._serve()
                    backoff.reset()
                except Exception as error:
                    # It may be over at the next try: a folder that isn't there yet, a full disk.
                    self._tell(reason_of(error))
                    await anyio.sleep(backoff.next())

    async def _serve(self) -> None:
        """Serve until a socket is gone. Raises OSError, StartError."""
        self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        # The kubelet's own folder: where there is none, there is no kubelet.
        if not self._registration_socket.parent.is_dir():
            raise StartError(f"there is no folder {self._registration_socket.parent}")
        for path in (self._socket, self._registration_socket):
            _check_length(path)
            remove_stale(path)
        self.registration.begin()
        health = HealthService(self._pool)
        async with (
            serve(ClaimService(self._claims), self._socket, health.end_streams, health),
            # After the other one: the kubelet calls it as soon as it has found this one.
            serve(self.registration, self._registration_socket, lambda: None),
        ):
            self._told = ""
            await self._until_gone()
        self._tell("its sockets were removed: making them again")

    async def _until_gone(self) -> None:
        paths = self._socket, self._registration_socket
        own = [identity(path) for path in paths]

        def is_gone() -> bool:
            return [identity(path) for path in paths] != own

        await first_of(*(lambda watch=watch: watch.wait_until(is_gone) for watch in self._watches))

    def _tell(self, problem: str) -> None:
        self.registration.problem = problem
        if problem != self._told:
            # Once per reason, not once per try.
            _log.warning("%s: %s", self._driver, problem)
        self._told = problem


def _check_length(path: Path) -> None:
    if len(os.fsencode(path)) > LONGEST_SOCKET:
        raise StartError(
            f"{str(path)!r} is too long for a socket: at most {LONGEST_SOCKET} bytes; choose "
            "shorter folders with --dra-plugins-dir and --dra-registry-dir"
        )
