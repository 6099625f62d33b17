"""The embedded kubelet: takes registrations, watches lists, admits pods."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus
from grpclib.client import Channel
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from hami_mock.errors import HamiMockError
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kubelet._proto.v1beta1 import (
    AllocateRequest,
    ContainerAllocateRequest,
    ContainerPreferredAllocationRequest,
    DevicePluginOptions,
    DevicePluginStub,
    Empty,
    ListAndWatchResponse,
    PreferredAllocationRequest,
    RegisterRequest,
    RegistrationBase,
)
from hami_mock.kubelet.limits import fits
from hami_mock.kubelet.wire import pod_resources, read_devices
from hami_mock.views.deviceplugin.directory import KUBELET_SOCKET
from hami_mock.views.deviceplugin.lifecycle import API_VERSION
from hami_mock.views.deviceplugin.server import EncodedList, PluginCodec, serve

if TYPE_CHECKING:
    from grpclib._typing import IServable
    from grpclib.server import Stream

_T = TypeVar("_T")


class Insufficient(HamiMockError):
    """A pod doesn't fit. The text is the scheduler's."""

    def __init__(self, resource: str) -> None:
        self.resource = resource
        super().__init__(f"0/1 nodes are available: 1 Insufficient {resource}.")


@dataclass
class DeviceSet:
    """What the kubelet knows of one resource."""

    endpoint: str
    options: DevicePluginOptions
    healthy: set[str] = field(default_factory=set)
    unhealthy: set[str] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)
    """Device ID → the pod that holds it."""

    @property
    def capacity(self) -> int:
        """All devices, healthy or not."""
        return len(self.healthy) + len(self.unhealthy)

    @property
    def allocatable(self) -> int:
        """The healthy devices."""
        return len(self.healthy)

    @property
    def free(self) -> set[str]:
        """The healthy devices that no pod holds."""
        return self.healthy - self.held.keys()


class EmbeddedKubelet(RegistrationBase):
    """A kubelet that knows devices, and pods as names that hold them."""

    def __init__(self, folder: Path, pods_socket: Path | None = None) -> None:
        """Make a kubelet for a folder; on `pods_socket` it says which pod holds what."""
        self.devices: dict[str, DeviceSet] = {}
        self._folder = folder
        self._pods_socket = pods_socket
        self._tasks: TaskGroup | None = None
        self._changes = Broadcast()

    @property
    def pods(self) -> set[str]:
        """The pods that hold devices."""
        return {pod for devices in self.devices.values() for pod in devices.held.values()}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Take registrations until cancelled."""
        async with AsyncExitStack() as stack:
            self._tasks = await stack.enter_async_context(anyio.create_task_group())
            served: dict[Path, IServable] = {self._folder / KUBELET_SOCKET: self}
            if self._pods_socket is not None:
                served[self._pods_socket] = _PodResources(self)
            for path, service in served.items():
                await stack.enter_async_context(serve(service, path, end_streams=lambda: None))
            task_status.started()
            await anyio.sleep_forever()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on `devices` holds."""
        await self._changes.wait_until(condition)

    async def register(self, message: RegisterRequest) -> Empty:
        """Take a registration after the checks that the real kubelet makes, in its words."""
        name = message.resource_name
        if message.version != API_VERSION:
            raise GRPCError(
                Status.UNKNOWN,
                f'requested API version "{message.version}" is not supported by kubelet. '
                f'Supported version is ["{API_VERSION}"]',
            )
        if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
            raise GRPCError(Status.UNKNOWN, f'the ResourceName "{name}" is invalid')
        options = await self._call(message.endpoint, lambda p: p.get_device_plugin_options(Empty()))
        known = self.devices.get(name)
        # A plugin that comes back finds its pods' devices still held.
        held = known.held if known else {}
        devices = self.devices[name] = DeviceSet(message.endpoint, options, held=held)
        assert self._tasks is not None
        self._tasks.start_soon(self._watch, devices)
        return Empty()

    async def admit(self, pod: str, requests: Mapping[str, int]) -> dict[str, str]:
        """Give a pod its devices, all or none; return the environment that its container gets.

        Raises Insufficient if a resource runs short, GRPCError if a plugin refuses.
        """
        for resource, count in requests.items():
            if resource not in self.devices or len(self.devices[resource].free) < count:
                raise Insufficient(resource)
        environment: dict[str, str] = {}
        try:
            for resource, count in requests.items():
                devices = self.devices[resource]
                chosen = await self._choose(devices, count)
                devices.held |= dict.fromkeys(chosen, pod)
                environment |= await self._allocate(devices, chosen)
        except BaseException:
            self.release(pod)
            raise
        self._changes.send()
        return environment

    def release(self, pod: str) -> None:
        """Take back all that a pod holds."""
        for devices in self.devices.values():
            devices.held = {i: holder for i, holder in devices.held.items() if holder != pod}
        self._changes.send()

    async def _choose(self, devices: DeviceSet, count: int) -> list[str]:
        free = sorted(devices.free)
        if not devices.options.get_preferred_allocation_available:
            return free[:count]
        request = PreferredAllocationRequest(
            container_requests=[
                ContainerPreferredAllocationRequest(
                    available_device_ids=free, allocation_size=count
                )
            ]
        )
        answer = await self._call(devices.endpoint, lambda p: p.get_preferred_allocation(request))
        return answer.container_responses[0].device_ids

    async def _allocate(self, devices: DeviceSet, chosen: list[str]) -> dict[str, str]:
        request = AllocateRequest(container_requests=[ContainerAllocateRequest(device_ids=chosen)])
        answer = await self._call(devices.endpoint, lambda p: p.allocate(request))
        return answer.container_responses[0].envs

    async def _watch(self, devices: DeviceSet) -> None:
        """Follow a list; when it ends, all devices are unhealthy, as with the real kubelet."""
        channel = self._dial(devices.endpoint)
        try:
            # However it ends, it is over: the plugin must register again.
            with suppress(GRPCError, StreamTerminatedError, OSError):
                async for message in DevicePluginStub(channel).list_and_watch(Empty()):
                    assert isinstance(message, EncodedList)
                    if not fits(len(message.payload)):
                        break
                    known = dict(read_devices(message.payload))
                    devices.healthy = {i for i, health in known.items() if health == "Healthy"}
                    devices.unhealthy = known.keys() - devices.healthy
                    self._changes.send()
        finally:
            channel.close()
            devices.unhealthy |= devices.healthy
            devices.healthy = set()
            self._changes.send()

    async def _call(self, endpoint: str, call: Callable[[DevicePluginStub], Awaitable[_T]]) -> _T:
        channel = self._dial(endpoint)
        try:
            return await call(DevicePluginStub(channel))
        finally:
            channel.close()

    def _dial(self, endpoint: str) -> Channel:
        return Channel(path=str(self._folder / endpoint), codec=PluginCodec())


class _PodResources:
    """The kubelet's pod-resources API, as far as the agent asks it."""

    def __init__(self, kubelet: EmbeddedKubelet) -> None:
        self._kubelet = kubelet

    async def list(self, stream: "Stream[Empty, ListAndWatchResponse]") -> None:
        await stream.recv_message()
        pods: dict[str, dict[str, list[str]]] = {}
        for resource, devices in self._kubelet.devices.items():
            for device_id, pod in devices.held.items():
                pods.setdefault(pod, {}).setdefault(resource, []).append(device_id)
        await stream.send_message(EncodedList(pod_resources(pods)))

    def __mapping__(self) -> dict[str, Handler]:
        # Bytes that are ready go through whatever type is named here.
        kinds = (Cardinality.UNARY_UNARY, Empty, ListAndWatchResponse)
        return {"/v1.PodResourcesLister/List": Handler(self.list, *kinds)}
