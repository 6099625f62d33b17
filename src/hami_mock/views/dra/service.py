"""The calls that the kubelet makes to a DRA driver: claims and health."""

import logging
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import anyio
from grpclib.const import Cardinality, Handler

from hami_mock.kit.concurrency import first_of
from hami_mock.kit.supervision import reason_of
from hami_mock.kit.text import cut
from hami_mock.kubelet._proto import v1 as health_api
from hami_mock.kubelet._proto.k8s.io.kubelet.pkg.apis.dra import v1 as api
from hami_mock.node.claims import PreparedClaim
from hami_mock.views.dra.claims import Claims
from hami_mock.views.dra.devices import Pool

if TYPE_CHECKING:
    from grpclib.server import Stream

_Healths = health_api.NodeWatchResourcesResponse
_HEALTH_SECONDS = 300
"""After so long without a word, the kubelet takes a device's health for unknown."""
_LONGEST_MESSAGE = 1000

_log = logging.getLogger(__name__)


class ClaimService(api.DraPluginBase):
    """Prepares claims, and takes that back."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims

    async def node_prepare_resources(
        self, message: api.NodePrepareResourcesRequest
    ) -> api.NodePrepareResourcesResponse:
        answers: dict[str, api.NodePrepareResourceResponse] = {}

        async def answer(claim: api.Claim) -> None:
            answers[claim.uid] = await self._prepare(claim)

        async with anyio.create_task_group() as tasks:
            for claim in message.claims:
                tasks.start_soon(answer, claim)
        return api.NodePrepareResourcesResponse(claims=answers)

    async def _prepare(self, claim: api.Claim) -> api.NodePrepareResourceResponse:
        started = time.perf_counter()
        try:
            prepared = await self._claims.prepare(claim.namespace, claim.name, claim.uid)
        except Exception as error:
            # Of one claim, whatever it is: the others get their answers.
            return api.NodePrepareResourceResponse(error=_told(claim, "prepared", error))
        taken = 1000 * (time.perf_counter() - started)
        names = ", ".join(each.name for each in prepared.devices)
        _log.debug("claim %s: prepared %s in %.1f ms", prepared.key.claim, names, taken)
        return api.NodePrepareResourceResponse(devices=[*self._devices(prepared)])

    def _devices(self, prepared: PreparedClaim) -> Iterable[api.Device]:
        told: set[str] = set()
        for each, cdi in zip(prepared.devices, self._claims.cdi_ids(prepared), strict=True):
            # Once for all devices of a request: the runtime would do twice what it is told twice.
            own = [cdi] if cdi and cdi not in told else []
            told.update(own)
            yield api.Device(
                request_names=[each.request],
                pool_name=each.pool,
                device_name=each.name,
                cdi_device_ids=own,
                share_id=each.share or None,
            )

    async def node_unprepare_resources(
        self, message: api.NodeUnprepareResourcesRequest
    ) -> api.NodeUnprepareResourcesResponse:
        answers = {}
        for claim in message.claims:
            answers[claim.uid] = api.NodeUnprepareResourceResponse()
            try:
                await self._claims.unprepare(claim.uid)
            except Exception as error:
                answers[claim.uid].error = _told(claim, "unprepared", error)
        return api.NodeUnprepareResourcesResponse(claims=answers)


def _told(claim: api.Claim, done: str, error: Exception) -> str:
    reason = reason_of(error)
    name = cut(f"{claim.namespace}/{claim.name}")
    _log.warning("claim %s can't be %s: %s", name, done, reason)
    _log.debug("claim %s", name, exc_info=error)
    return reason


class HealthService:
    """Streams the health of all devices: now, at each change, and before the kubelet forgets it."""

    PATHS = ("/v1.DRAResourceHealth/NodeWatchResources",
             "/v1alpha1.DRAResourceHealth/NodeWatchResources")  # fmt: skip

    def __init__(self, pool: Pool) -> None:
        self._state = pool.state
        self._pool = pool
        self._ending = anyio.Event()
        self.end_streams = self._ending.set

    def __mapping__(self) -> Mapping[str, Handler]:
        """Map the call of both versions, whose messages are the same, to our own handler.

        A generated one drives an async generator, whose `finally` doesn't run in time when the
        kubelet goes away in the middle of a send.
        """
        request, response = (
            health_api.NodeWatchResourcesRequest,
            _Healths,
        )
        kinds = (Cardinality.UNARY_STREAM, request, response)
        return {path: Handler(self._watch, *kinds) for path in self.PATHS}

    async def _watch(
        self,
        stream: "Stream[health_api.NodeWatchResourcesRequest, _Healths]",
    ) -> None:
        await stream.recv_message()
        while not self._ending.is_set():
            change = self._state.changes.next()
            shown = self._shown()
            await stream.send_message(_response(self._pool.name, shown))
            with anyio.move_on_after(_HEALTH_SECONDS / 3):
                while self._shown() == shown and not self._ending.is_set():
                    await first_of(change.wait, self._ending.wait)
                    change = self._state.changes.next()

    def _shown(self) -> dict[str, tuple[bool, str]]:
        return {
            name: (each.health.is_usable, "; ".join(each.health.reasons))
            for name, each in self._pool.devices.items()
        }


def _response(pool: str, shown: Mapping[str, tuple[bool, str]]) -> _Healths:
    now = int(time.time())
    healths = health_api.HealthStatus
    return _Healths(
        devices=[
            health_api.DeviceHealth(
                device=health_api.DeviceIdentifier(pool_name=pool, device_name=name),
                health=healths.HEALTHY if is_usable else healths.UNHEALTHY,
                last_updated_time=now,
                health_check_timeout_seconds=_HEALTH_SECONDS,
                message=cut(reasons, _LONGEST_MESSAGE),
            )
            for name, (is_usable, reasons) in shown.items()
        ]
    )
