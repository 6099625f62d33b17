"""A kubelet's side of DRA made of grpcio and google's protobuf, without code of the agent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import grpc

PATIENCE = 20.0
_CLAIMS = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"


class DraKubelet:
    """Finds drivers in its folder of registrations, and calls them."""

    def __init__(self, registry: Path, messages: tuple[ModuleType, ...]) -> None:
        self.registry = registry
        self.claims, self.health, self.registration = messages
        self.info: Any = None

    async def register(self, *, error: str = "") -> Any:
        """Wait for a driver, ask it who it is, and tell it whether it is taken; return its info."""
        with anyio.fail_after(PATIENCE):
            while not (found := [*self.registry.glob("*-reg.sock")]):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        path = f"unix:{found[0]}"
        asked, told = self.registration.InfoRequest(), self.registration.RegistrationStatus
        method = "/pluginregistration.Registration"
        self.info = await _call(path, f"{method}/GetInfo", asked, self.registration.PluginInfo)
        status = told(plugin_registered=not error, error=error)
        answer = self.registration.RegistrationStatusResponse
        await _call(path, f"{method}/NotifyRegistrationStatus", status, answer)
        return self.info

    async def prepare(self, *claims: tuple[str, str]) -> dict[str, Any]:
        """Let claims be prepared, by name and UID; return the answers by UID."""
        request = self.claims.NodePrepareResourcesRequest(claims=[*self._claims(claims)])
        answer = self.claims.NodePrepareResourcesResponse
        return dict((await self._ask("NodePrepareResources", request, answer)).claims)

    async def unprepare(self, *claims: tuple[str, str]) -> dict[str, Any]:
        request = self.claims.NodeUnprepareResourcesRequest(claims=[*self._claims(claims)])
        answer = self.claims.NodeUnprepareResourcesResponse
        return dict((await self._ask("NodeUnprepareResources", request, answer)).claims)

    def _claims(self, claims: tuple[tuple[str, str], ...]) -> Any:
        return (self.claims.Claim(namespace="default", name=name, uid=uid) for name, uid in claims)

    async def _ask(self, method: str, request: Any, answer: Any) -> Any:
        return await _call(f"unix:{self.info.endpoint}", f"{_CLAIMS}/{method}", request, answer)

    @asynccontextmanager
    async def watch_health(self, version: str = "v1") -> AsyncIterator[AsyncIterator[Any]]:
        """Yield the lists of the devices' health, each as name → (is healthy, message)."""
        async with grpc.aio.insecure_channel(f"unix:{self.info.endpoint}") as channel:
            call = channel.unary_stream(
                f"/{version}.DRAResourceHealth/NodeWatchResources",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=self.health.NodeWatchResourcesResponse.FromString,
            )(self.health.NodeWatchResourcesRequest())

            async def lists() -> AsyncIterator[Any]:
                async for response in call:
                    assert all(each.last_updated_time for each in response.devices)
                    yield {
                        each.device.device_name: (each.health, each.message)
                        for each in response.devices
                    }

            yield lists()
            call.cancel()


async def _call(path: str, method: str, request: Any, answer: Any) -> Any:
    async with grpc.aio.insecure_channel(path) as channel:
        return await channel.unary_unary(
            method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )(request, timeout=PATIENCE, wait_for_ready=True)
