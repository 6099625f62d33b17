"""A kubelet made of grpcio and google's protobuf: it shares no code with the agent.

It does what the real one does: dials the plugin inside of Register, then watches its list; on a
restart it deletes every socket in its folder.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc

PATIENCE = 20.0
_UNLIMITED = [("grpc.max_receive_message_length", -1)]


@dataclass
class Registration:
    resource: str
    endpoint: str
    version: str
    options: Any
    lists: list[bytes] = field(default_factory=list)
    ended: bool = False
    stream: Any = None


class Plugin:
    """A client of one plugin's socket."""

    def __init__(self, path: Path, messages: ModuleType) -> None:
        self._messages = messages
        self.channel = grpc.insecure_channel(f"unix:{path}", options=_UNLIMITED)

    def call(self, method: str, request: Any, response: str) -> Any:
        return self.channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=getattr(self._messages, response).FromString,
        )(request, timeout=PATIENCE, wait_for_ready=True)

    def options(self) -> Any:
        return self.call("GetDevicePluginOptions", self._messages.Empty(), "DevicePluginOptions")

    def open_list(self) -> Any:
        """Open ListAndWatch; the messages come as bytes."""
        return self.channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch")(b"")

    def allocate(self, *containers: list[str]) -> Any:
        request = self._messages.AllocateRequest(
            container_requests=[
                self._messages.ContainerAllocateRequest(device_ids=ids) for ids in containers
            ]
        )
        return self.call("Allocate", request, "AllocateResponse").container_responses

    def prefer(self, available: list[str], size: int, must_include: list[str] | None = None) -> Any:
        container = self._messages.ContainerPreferredAllocationRequest(
            available_device_ids=available,
            must_include_device_ids=must_include or [],
            allocation_size=size,
        )
        request = self._messages.PreferredAllocationRequest(container_requests=[container])
        answer = self.call("GetPreferredAllocation", request, "PreferredAllocationResponse")
        return list(answer.container_responses[0].device_ids)

    def pre_start(self, ids: list[str]) -> Any:
        request = self._messages.PreStartContainerRequest(device_ids=ids)
        return self.call("PreStartContainer", request, "PreStartContainerResponse")


class GrpcioKubelet:
    def __init__(self, folder: Path, messages: ModuleType) -> None:
        self.folder = folder
        self.messages = messages
        self.refused: set[str] = set()
        self.registrations: list[Registration] = []
        self.events: list[tuple[str, str]] = []
        self._changed = threading.Condition()
        self._plugins: list[Plugin] = []
        self._server: grpc.Server | None = None

    def __enter__(self) -> "GrpcioKubelet":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._server = grpc.server(ThreadPoolExecutor(max_workers=16))
        handler = grpc.unary_unary_rpc_method_handler(
            self._register,
            request_deserializer=self.messages.RegisterRequest.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": handler}),)
        )
        self._server.add_insecure_port(f"unix:{self.folder / 'kubelet.sock'}")
        self._server.start()

    def kill(self) -> None:
        """End the server and all streams, as the death of the process would."""
        if self._server is not None:
            self._server.stop(None).wait()
            self._server = None
        for plugin in self._plugins:
            plugin.channel.close()
        self._plugins.clear()

    def restart(self) -> None:
        self.kill()
        for path in self.folder.glob("*.sock"):
            path.unlink(missing_ok=True)
        self.start()

    def plugin(self, resource: str) -> Plugin:
        """Return a client of the plugin that registered a resource last."""
        plugin = Plugin(self.folder / self.current(resource).endpoint, self.messages)
        self._plugins.append(plugin)
        return plugin

    def current(self, resource: str) -> Registration:
        return [r for r in self.registrations if r.resource == resource][-1]

    def devices(self, resource: str) -> dict[str, str]:
        """Return ID → health of a resource's last list."""
        message = self.messages.ListAndWatchResponse.FromString(self.current(resource).lists[-1])
        devices = {device.id: device.health for device in message.devices}
        assert len(devices) == len(message.devices), "an ID stands twice"
        return devices

    def wait_until(self, condition: Callable[[], bool], what: str = "") -> None:
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                assert left > 0, f"waited {PATIENCE} s in vain for {what}; events: {self.events}"
                self._changed.wait(min(left, 0.2))

    def wait_for_lists(self, resources: set[str], registrations: int = 1) -> None:
        """Wait until each resource was registered that often and its last list is there."""

        def complete() -> bool:
            for resource in resources:
                found = [r for r in self.registrations if r.resource == resource]
                if len(found) < registrations or not found[-1].lists:
                    return False
            return True

        self.wait_until(complete, f"lists of {sorted(resources)}")

    def _register(self, request: Any, context: grpc.ServicerContext) -> Any:
        if request.resource_name in self.refused:
            self._note("refuse", request.resource_name)
            context.abort(
                grpc.StatusCode.UNKNOWN, f'the ResourceName "{request.resource_name}" is invalid'
            )
        plugin = Plugin(self.folder / request.endpoint, self.messages)
        self._plugins.append(plugin)
        registration = Registration(
            request.resource_name, request.endpoint, request.version, plugin.options()
        )
        registration.stream = plugin.open_list()
        self.registrations.append(registration)
        self._note("register", registration.resource)
        threading.Thread(target=self._watch, args=(registration,), daemon=True).start()
        return self.messages.Empty()

    def _watch(self, registration: Registration) -> None:
        try:
            for payload in registration.stream:
                registration.lists.append(payload)
                self._note("list", registration.resource)
        except grpc.RpcError:
            pass  # the stream is over, however it ended
        registration.ended = True
        self._note("end", registration.resource)

    def _note(self, event: str, resource: str) -> None:
        with self._changed:
            self.events.append((event, resource))
            self._changed.notify_all()
