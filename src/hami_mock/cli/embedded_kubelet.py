"""The embedded kubelet: takes registrations, watches lists, admits pods."""

from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus
from grpclib.client import Channel, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from hami_mock.errors import HamiMockError
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kubelet._proto import v1beta1 as api
from hami_mock.kubelet.limits import fits
from hami_mock.kubelet.pod_resources import LIST
from hami_mock.kubelet.rpc import Codec, Refusal
from hami_mock.kubelet.wire import allocate_request, pod_resources, read_devices
from hami_mock.views.deviceplugin.directory import KUBELET_SOCKET
from hami_mock.views.deviceplugin.lifecycle import API_VERSION
from hami_mock.views.deviceplugin.server import serve
from hami_mock.views.deviceplugin.service import LIST_AND_WATCH

if TYPE_CHECKING:
    from grpclib.server import Stream


class Insufficient(HamiMockError):
    """A pod doesn't fit. The text is the scheduler's."""

    def __init__(self, resource: str) -> None:
        self.resource = resource
        super().__init__(f"0/1 nodes are available: 1 Insufficient {resource}.")


@dataclass
class DeviceSet:
    """What the kubelet knows of one resource."""

    endpoint: str
    options: api.DevicePluginOptions
    healthy: set[str] = field(default_factory=set)
    unhealthy: set[str] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)
    """Device ID → the pod that holds it."""

    @property
    def capacity(self) -> int:
        return len(self.healthy) + len(self.unhealthy)

    @property
    def allocatable(self) -> int:
        return len(self.healthy)

    @property
    def free(self) -> set[str]:
        return self.healthy - self.held.keys()


class EmbeddedKubelet(api.RegistrationBase):
    """A kubelet that knows devices, and pods as names that hold them."""

    def __init__(self, folder: Path, pods_socket: Path | None = None) -> None:
        """Make a kubelet for a folder; on `pods_socket` it says which pod holds what."""
        self.devices: dict[str, DeviceSet] = {}
        self._folder = folder
        self._pods_socket = pods_socket
        self._tasks: TaskGroup | None = None
        self._changes = Broadcast()
        self.wait_until = self._changes.wait_until
        """Wait until a condition on `devices` holds."""

    @property
    def pods(self) -> set[str]:
        return {pod for devices in self.devices.values() for pod in devices.held.values()}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with AsyncExitStack() as stack:
            self._tasks = await stack.enter_async_context(anyio.create_task_group())
            for path in filter(None, (self._folder / KUBELET_SOCKET, self._pods_socket)):
                await stack.enter_async_context(serve(self, path, end_streams=lambda: None))
            task_status.started()
            await anyio.sleep_forever()

    async def register(self, message: api.RegisterRequest) -> api.Empty:
        """Take a registration after the checks that the real kubelet makes, in its words."""
        name = message.resource_name
        if message.version != API_VERSION:
            wrong = f'requested API version "{message.version}" is not supported by kubelet. '
            raise Refusal(Status.UNKNOWN, f'{wrong}Supported version is ["{API_VERSION}"]')
        if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
            raise Refusal(Status.UNKNOWN, f'the ResourceName "{name}" is invalid')
        answer = await self._call(message.endpoint, "GetDevicePluginOptions", b"")
        options = api.DevicePluginOptions.parse(answer)
        known = self.devices.get(name)
        # A plugin that comes back finds its pods' devices still held.
        held = known.held if known else {}
        devices = self.devices[name] = DeviceSet(message.endpoint, options, held=held)
        assert self._tasks is not None
        self._tasks.start_soon(self._watch, devices)
        return api.Empty()

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
                answer = await self._call(devices.endpoint, "Allocate", allocate_request([chosen]))
                environment |= api.AllocateResponse.parse(answer).container_responses[0].envs
        except BaseException:
            self.release(pod)
            raise
        self._changes.send()
        return environment

    def release(self, pod: str) -> None:
        for devices in self.devices.values():
            devices.held = {i: holder for i, holder in devices.held.items() if holder != pod}
        self._changes.send()

    def __mapping__(self) -> dict[str, Handler]:
        kinds = (Cardinality.UNARY_UNARY, bytes, bytes)
        return super().__mapping__() | {LIST: Handler(self._list_pod_resources, *kinds)}

    async def _list_pod_resources(self, stream: "Stream[bytes, bytes]") -> None:
        await stream.recv_message()
        pods: dict[str, dict[str, list[str]]] = {}
        for resource, devices in self.devices.items():
            for device_id, pod in devices.held.items():
                pods.setdefault(pod, {}).setdefault(resource, []).append(device_id)
        await stream.send_message(pod_resources(pods))

    async def _choose(self, devices: DeviceSet, count: int) -> list[str]:
        free = sorted(devices.free)
        if not devices.options.get_preferred_allocation_available:
            return free[:count]
        wish = api.ContainerPreferredAllocationRequest(free, allocation_size=count)
        request = api.PreferredAllocationRequest(container_requests=[wish])
        answer = await self._call(devices.endpoint, "GetPreferredAllocation", bytes(request))
        return api.PreferredAllocationResponse.parse(answer).container_responses[0].device_ids

    async def _watch(self, devices: DeviceSet) -> None:
        """Follow a list; when it ends, all devices are unhealthy, as with the real kubelet."""
        channel = self._dial(devices.endpoint)
        try:
            # However it ends, it is over: the plugin must register again.
            with suppress(GRPCError, StreamTerminatedError, OSError):
                async with UnaryStreamMethod(channel, LIST_AND_WATCH, bytes, bytes).open() as lists:
                    await lists.send_message(b"", end=True)
                    async for payload in lists:
                        if not fits(len(payload)):
                            await lists.cancel()
                            break
                        known = dict(read_devices(payload))
                        devices.healthy = {i for i, health in known.items() if health == "Healthy"}
                        devices.unhealthy = known.keys() - devices.healthy
                        self._changes.send()
        finally:
            channel.close()
            devices.unhealthy |= devices.healthy
            devices.healthy = set()
            self._changes.send()

    async def _call(self, endpoint: str, method: str, request: bytes) -> bytes:
        async with self._dial(endpoint) as channel:
            ask = UnaryUnaryMethod(channel, f"/v1beta1.DevicePlugin/{method}", bytes, bytes)
            return await ask(request)

    def _dial(self, endpoint: str) -> Channel:
        return Channel(path=str(self._folder / endpoint), codec=Codec())
