"""What a kubelet makes of a second registration: why the agent takes a fresh socket name each time.

This comes late: the kubelet goes on showing the resource, with 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import grpc
import pytest

from hami_mock.kubelet._proto.v1beta1 import (
    AllocateResponse,
    ContainerAllocateResponse,
    Device,
    DevicePluginOptions,
    ListAndWatchResponse,
    RegisterRequest,
)

from .harness import Cluster
from .mock import TIMEOUT_S, container, pod

NAME = "example.com/registered"
SERVICE = "v1beta1.DevicePlugin"
ONE_DEVICE = bytes(ListAndWatchResponse(devices=[Device(id="a", health="Healthy")]))
EMPTY_ANSWER = bytes(AllocateResponse(container_responses=[ContainerAllocateResponse()]))


@contextmanager
def plugin(folder: Path, endpoint: str) -> Iterator[Event]:
    """A plugin of one device, of grpcio and not ours; tells when its list is watched."""
    watched, ended = Event(), Event()

    def list_and_watch(_request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        context.add_callback(ended.set)
        yield ONE_DEVICE
        watched.set()
        ended.wait()

    handlers = {
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(
            lambda *_: bytes(DevicePluginOptions())
        ),
        "Allocate": grpc.unary_unary_rpc_method_handler(lambda *_: EMPTY_ANSWER),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(list_and_watch),
    }
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    server.add_insecure_port(f"unix:{folder / endpoint}")
    server.start()
    try:
        yield watched
    finally:
        ended.set()
        server.stop(grace=None).wait()


def register(folder: Path, endpoint: str) -> None:
    request = RegisterRequest(version="v1beta1", endpoint=endpoint, resource_name=NAME)
    with grpc.insecure_channel(f"unix:{folder / 'kubelet.sock'}") as channel:
        call = channel.unary_unary("/v1beta1.Registration/Register")
        call(bytes(request), timeout=TIMEOUT_S, wait_for_ready=True)


@pytest.fixture
def folder(cluster: Cluster) -> Path:
    return cluster.device_plugin_dir


def wait_for(cluster: Cluster, count: int) -> None:
    cluster.wait(
        f"{count} of {NAME}",
        lambda: cluster.allocatable().get(NAME, 0),
        lambda shown: shown == count,
        timeout=TIMEOUT_S,
    )


def test_two_sockets_of_a_resource_and_the_older_one_ends(cluster: Cluster, folder: Path) -> None:
    with plugin(folder, "newer.sock") as newer:
        with plugin(folder, "older.sock") as older:
            register(folder, "older.sock")
            assert older.wait(TIMEOUT_S)
            register(folder, "newer.sock")
            assert newer.wait(TIMEOUT_S)
            wait_for(cluster, 1)
        if cluster.version.minor < 37:
            wait_for(cluster, 0)
            return
        cluster.wait(
            "the kubelet noticed",
            cluster.kubelet_log,
            lambda log: "older.sock" in log.partition("Deregistered client")[2],
            timeout=TIMEOUT_S,
        )
        cluster.apply(pod("taker", container("main", {NAME: 1})))
        cluster.wait(
            "the pod runs",
            lambda: cluster.get("pod", "taker")["status"]["phase"],
            lambda phase: phase == "Running",
            timeout=TIMEOUT_S,
        )
        cluster.kubectl("delete", "pod", "taker")
    wait_for(cluster, 0)


@pytest.mark.minors(range(37, 100))
def test_a_socket_that_is_connected_is_refused_and_so_is_its_name_ever_after(
    cluster: Cluster, folder: Path
) -> None:
    with ExitStack() as first:
        watched = first.enter_context(plugin(folder, "again.sock"))
        register(folder, "again.sock")
        assert watched.wait(TIMEOUT_S)
        with pytest.raises(grpc.RpcError, match="already connected"):
            register(folder, "again.sock")
    with plugin(folder, "again.sock"), pytest.raises(grpc.RpcError, match="already connected"):
        register(folder, "again.sock")
    with plugin(folder, "fresh.sock") as watched:
        register(folder, "fresh.sock")
        assert watched.wait(TIMEOUT_S)
        wait_for(cluster, 1)
    cluster.restart_kubelet()  # the only way to make it forget the name
    cluster.wait_node_ready(timeout=TIMEOUT_S)
    wait_for(cluster, 0)
