"""The claims that a driver has prepared: in the state, in its file, and as CDI specs."""

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from hami_mock.errors import NotThere
from hami_mock.kit.text import cut
from hami_mock.node.claims import PreparedClaim
from hami_mock.views.deviceplugin.counters import Histogram
from hami_mock.views.dra.cdi import CdiFolder, GivesWith, cdi_spec, device_id
from hami_mock.views.dra.checkpoint import Checkpoint
from hami_mock.views.dra.devices import Pool
from hami_mock.views.dra.preparing import ClaimError, prepare

# It becomes a part of a file's name.
_UID = re.compile("[A-Za-z0-9-]{1,64}")

GetClaim = Callable[[str, str], Awaitable[Mapping[str, Any]]]
"""Reads a claim by its namespace and name. Raises ClusterError."""


class Claims:
    """One driver's claims. A claim is prepared once, however often that is asked for."""

    def __init__(
        self,
        pool: Pool,
        get_claim: GetClaim,
        folder: Path,
        cdi: CdiFolder,
        gives: GivesWith | None = None,
    ) -> None:
        self._pool = pool
        self._driver = pool.driver
        self._state = pool.state
        self._get_claim = get_claim
        self._checkpoint = Checkpoint(folder)
        self._cdi = cdi
        self._gives = gives
        self._prepared: dict[str, PreparedClaim] = {}
        self._writing = anyio.Lock()
        self.errors = 0
        """How often a claim couldn't be prepared."""
        self.seconds = Histogram()
        """How long each took that was prepared, also if it was prepared before."""

    @property
    def all(self) -> list[PreparedClaim]:
        return [*self._prepared.values()]

    def restore(self) -> None:
        """Take over what an agent before this one has prepared."""
        for claim in self._checkpoint.read():
            self._prepared[claim.uid] = claim
            self._state.prepare_claim(claim)

    async def prepare(self, namespace: str, name: str, uid: str) -> PreparedClaim:
        """Return what a claim has, and see that it has it. Raises ClaimError, CdiError, …"""
        began = time.perf_counter()
        try:
            made = await self._prepare(namespace, name, uid)
        except BaseException:
            self.errors += 1
            raise
        self.seconds.observe(time.perf_counter() - began)
        return made

    async def _prepare(self, namespace: str, name: str, uid: str) -> PreparedClaim:
        _check(uid)
        claim = None if uid in self._prepared else await self._read(namespace, name)
        async with self._writing:
            made = self._prepared.get(uid)
            if made is None:
                claim = claim or await self._read(namespace, name)
                made = prepare(claim, uid, self._pool, self.all)
            if all(each.name in self._pool.devices for each in made.devices):
                # First what the runtime needs: a spec too many harms nobody. Again each time that
                # it is asked for: the runtime's folder is empty after a restart of the machine.
                spec = cdi_spec(self._pool, made, self._gives)
                await anyio.to_thread.run_sync(self._cdi.write, self._driver, uid, spec)
            if uid not in self._prepared:
                await self._save({**self._prepared, uid: made})
                self._state.prepare_claim(made)
        return made

    async def _read(self, namespace: str, name: str) -> Mapping[str, Any]:
        try:
            return await self._get_claim(namespace, name)
        except NotThere as error:
            raise ClaimError(f"there is no claim {cut(f'{namespace}/{name}')} any more") from error

    async def unprepare(self, uid: str) -> None:
        """Take back what a claim had, if it had anything. Raises CdiError, OSError."""
        _check(uid)
        async with self._writing:
            claim = self._prepared.get(uid)
            if claim is not None:
                await self._save({of: each for of, each in self._prepared.items() if of != uid})
                self._state.unprepare_claim(claim)
            await anyio.to_thread.run_sync(self._cdi.remove, self._driver, uid)

    def cdi_ids(self, claim: PreparedClaim) -> list[str]:
        """Return what the runtime knows each of a claim's devices by; "" without CDI."""
        if not self._cdi:
            return [""] * len(claim.devices)
        return [device_id(self._driver, claim, each) for each in claim.devices]

    async def _save(self, prepared: dict[str, PreparedClaim]) -> None:
        await anyio.to_thread.run_sync(self._checkpoint.write, [*prepared.values()])
        self._prepared = prepared


def _check(uid: str) -> None:
    if not _UID.fullmatch(uid):
        raise ClaimError(f"{cut(uid)!r} is not a claim's UID")
