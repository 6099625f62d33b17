"""The embedded kubelet: what the demo relies on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from grpclib.exceptions import GRPCError

from hami_mock.agent import Agent
from hami_mock.cli.embedded_kubelet import EmbeddedKubelet, Insufficient
from hami_mock.errors import KubeletAbsent, Refused
from hami_mock.faults.actions import Action, perform
from hami_mock.kubelet._proto.v1beta1 import RegisterRequest
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.deviceplugin.lifecycle import register


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def node(folder: Path, **flags: str) -> AsyncIterator[tuple[EmbeddedKubelet, Agent]]:
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    settings = replace(load(named), socket_dir=str(folder), http_listen="")
    agent = Agent(settings, configured_node(settings, None))
    kubelet = EmbeddedKubelet(folder)
    async with anyio.create_task_group() as tasks:
        await tasks.start(kubelet.run)
        await tasks.start(agent.run)
        await kubelet.wait_until(
            lambda: all(
                r.name in kubelet.devices and kubelet.devices[r.name].allocatable == r.count
                for r in agent.node.resources
            )
        )
        yield kubelet, agent
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_admits_until_a_resource_runs_out_and_takes_back(socket_folder: Path) -> None:
    async with node(socket_folder, nvidia_memory="100") as (kubelet, _):
        requests = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 90}
        environment = await kubelet.admit("a", requests)
        assert len(environment["NVIDIA_VISIBLE_DEVICES"].split(",")) == 2
        await kubelet.admit("b", requests)
        with pytest.raises(Insufficient, match=r"1 Insufficient nvidia.com/gpumem\."):
            await kubelet.admit("c", requests)
        assert len(kubelet.devices["nvidia.com/gpu"].free) == 16
        kubelet.release("a")
        await kubelet.admit("c", requests)


@pytest.mark.anyio
async def test_an_unhealthy_card_leaves_allocatable_and_capacity_stays(socket_folder: Path) -> None:
    async with node(socket_folder, nvidia_memory="100") as (kubelet, agent):
        devices = kubelet.devices["nvidia.com/gpumem"]
        perform(Action("fail", ("nvidia/0",)), agent.state)
        await kubelet.wait_until(lambda: devices.allocatable == 100)
        assert devices.capacity == 200


@pytest.mark.anyio
async def test_pods_keep_their_devices_when_a_plugin_registers_again(socket_folder: Path) -> None:
    async with node(socket_folder, nvidia_memory="100") as (kubelet, _):
        await kubelet.admit("a", {"nvidia.com/gpumem": 150})
        before = kubelet.devices["nvidia.com/gpumem"]
        (socket_folder / before.endpoint).unlink()
        await kubelet.wait_until(
            lambda: (
                kubelet.devices["nvidia.com/gpumem"] is not before
                and len(kubelet.devices["nvidia.com/gpumem"].free) == 50
            )
        )


@pytest.mark.anyio
async def test_a_pod_that_a_plugin_refuses_holds_nothing(socket_folder: Path) -> None:
    async with node(socket_folder, nvidia_memory="100") as (kubelet, _):
        kubelet.devices["nvidia.com/gpumem"].healthy.add("never-listed")
        with pytest.raises(GRPCError, match="there is no device 'never-listed'"):
            await kubelet.admit("a", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 201})
        assert not kubelet.devices["nvidia.com/gpu"].held
        assert not kubelet.devices["nvidia.com/gpumem"].held


@pytest.mark.anyio
async def test_refuses_what_the_real_kubelet_refuses(socket_folder: Path) -> None:
    kubelet = EmbeddedKubelet(socket_folder)
    for name in ("gpumem", "kubernetes.io/gpu", "requests.nvidia.com/gpu"):
        with pytest.raises(GRPCError, match=f'the ResourceName "{name}" is invalid'):
            await kubelet.register(RegisterRequest(version="v1beta1", resource_name=name))
    with pytest.raises(GRPCError, match='requested API version "v1alpha" is not supported'):
        await kubelet.register(RegisterRequest(version="v1alpha", resource_name="a.b/c"))


@pytest.mark.anyio
async def test_register_tells_absence_from_refusal(socket_folder: Path) -> None:
    socket = socket_folder / "kubelet.sock"
    with pytest.raises(KubeletAbsent, match="no kubelet listens at"):
        await register(socket, "x.sock", "nvidia.com/gpu")
    kubelet = EmbeddedKubelet(socket_folder)
    async with anyio.create_task_group() as tasks:
        await tasks.start(kubelet.run)
        with pytest.raises(Refused, match='the kubelet refused: the ResourceName "x" is invalid'):
            await register(socket, "x.sock", "x")
        tasks.cancel_scope.cancel()
