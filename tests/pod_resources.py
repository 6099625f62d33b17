"""The kubelet's pod-resources API, made of grpcio and google's protobuf alone."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Message → its fields as (name, number, type): "" for a string, [X] for repeated, int for int64.
_MESSAGES: dict[str, list[tuple[str, int, Any]]] = {
    "NUMANode": [("ID", 1, int)],
    "TopologyInfo": [("nodes", 1, ["NUMANode"])],
    "ContainerDevices": [("resource_name", 1, ""), ("device_ids", 2, [""]),
                         ("topology", 3, "TopologyInfo")],
    "CDIDevice": [("name", 1, "")],
    "ClaimResource": [("cdi_devices", 1, ["CDIDevice"]), ("driver_name", 2, ""),
                      ("pool_name", 3, ""), ("device_name", 4, ""), ("share_id", 5, "")],
    "DynamicResource": [("claim_name", 2, ""), ("claim_namespace", 3, ""),
                        ("claim_resources", 4, ["ClaimResource"])],
    "ContainerResources": [("name", 1, ""), ("devices", 2, ["ContainerDevices"]),
                           ("cpu_ids", 3, [int]), ("dynamic_resources", 5, ["DynamicResource"])],
    "PodResources": [("name", 1, ""), ("namespace", 2, ""),
                     ("containers", 3, ["ContainerResources"])],
    "ListPodResourcesResponse": [("pod_resources", 1, ["PodResources"])],
}  # fmt: skip


@cache
def message(name: str) -> Any:
    """Return a class of google's protobuf for a message of podresources/v1."""
    file = descriptor_pb2.FileDescriptorProto(name="pods.proto", package="v1", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for title, fields in _MESSAGES.items():
        described = file.message_type.add(name=title)
        for field_name, number, kind in fields:
            is_many = isinstance(kind, list)
            one = kind[0] if is_many else kind
            label = kinds.LABEL_REPEATED if is_many else kinds.LABEL_OPTIONAL
            added = described.field.add(name=field_name, number=number, label=label)
            if one is int:
                added.type = kinds.TYPE_INT64
            elif one == "":
                added.type = kinds.TYPE_STRING
            else:
                added.type = kinds.TYPE_MESSAGE
                added.type_name = f".v1.{one}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"v1.{name}"))


Pods = Mapping[tuple[str, str, str], Mapping[str, list[str]]]
"""(namespace, pod, container) → the devices that it holds, by resource."""


def listing(pods: Pods) -> bytes:
    """Return a ListPodResourcesResponse as the kubelet writes it: one record for each device."""
    response = message("ListPodResourcesResponse")()
    for (namespace, pod, container), devices in pods.items():
        told = response.pod_resources.add(namespace=namespace, name=pod)
        inside = told.containers.add(name=container, cpu_ids=[0, 300])
        for resource, ids in devices.items():
            for device_id in ids:
                one = inside.devices.add(resource_name=resource, device_ids=[device_id])
                one.topology.nodes.add(ID=1)
    payload: bytes = response.SerializeToString()
    return payload


@dataclass
class FakePodResources:
    """A kubelet that says what it is told to say, and counts how often it was asked."""

    payload: bytes = b""
    asked: int = 0
    pods: dict[tuple[str, str, str], dict[str, list[str]]] = field(default_factory=dict)

    def answer(self, request: bytes, context: Any) -> bytes:
        self.asked += 1
        return self.payload or listing(self.pods)


@contextmanager
def pod_resources(path: Path) -> Iterator[FakePodResources]:
    """Serve v1.PodResourcesLister on a socket."""
    fake = FakePodResources()
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    handlers = {"List": grpc.unary_unary_rpc_method_handler(fake.answer)}
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("v1.PodResourcesLister", handlers),)
    )
    server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield fake
    finally:
        server.stop(None).wait()
