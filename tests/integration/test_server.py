"""The wrapper around grpclib's server, and the quirk that it is there for."""

import gc
import os
import socket
import stat
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from grpclib.client import Channel
from grpclib.exceptions import StreamTerminatedError
from grpclib.server import Server

from hami_mock.kubelet._proto.v1beta1 import DevicePluginStub, Empty
from hami_mock.kubelet.rpc import Codec
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.deviceplugin.server import serve
from hami_mock.views.deviceplugin.service import DevicePluginService


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def make_service() -> DevicePluginService:
    node = configured_node(load({}), None)
    return DevicePluginService(node.resources[0], NodeState(node), ResourceCounters())


async def is_closed_by_peer(connection: socket.socket) -> bool:
    """Tell whether the other side closes the connection soon."""
    connection.setblocking(False)
    with anyio.move_on_after(1):
        while True:
            await anyio.wait_readable(connection)
            try:
                if not connection.recv(65536):
                    return True
            except ConnectionResetError:
                # It was closed before anybody had accepted it.
                return True
    return False


def connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return connection


@pytest.mark.anyio
async def test_grpclib_alone_leaves_connections_open(socket_folder: Path) -> None:
    """When this fails, grpclib has mended it and our wrapper can shrink."""
    path = socket_folder / "plain.sock"
    server = Server([make_service()])
    await server.start(path=str(path))
    with connect(path) as connection:
        await anyio.wait_readable(connection)
        server.close()
        assert not await is_closed_by_peer(connection)


@pytest.mark.anyio
async def test_our_server_closes_connections_and_removes_its_socket(socket_folder: Path) -> None:
    path = socket_folder / "ours.sock"
    service = make_service()
    async with serve(service, path, service.end_streams):
        connection = connect(path)
        await anyio.wait_readable(connection)
    with connection:
        assert await is_closed_by_peer(connection)
    assert not path.exists()


@pytest.mark.anyio
async def test_a_stream_ends_cleanly_when_the_server_stops(socket_folder: Path) -> None:
    path = socket_folder / "ours.sock"
    service = make_service()
    received = 0
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            nonlocal received
            async with Channel(path=str(path), codec=Codec()) as channel:
                async for _ in DevicePluginStub(channel).list_and_watch(Empty()):
                    received += 1

        async with serve(service, path, service.end_streams):
            tasks.start_soon(watch)
            await service.watched.wait()
        # Had the stream been cut, `watch` would have raised StreamTerminatedError.
    assert received == 1
    assert service.abandoned.is_set()


@pytest.mark.anyio
async def test_a_socket_that_can_not_be_bound_leaves_nothing(socket_folder: Path) -> None:
    service = make_service()
    with pytest.raises(FileNotFoundError):
        async with serve(service, socket_folder / "no" / "such.sock", service.end_streams):
            raise AssertionError("it can't be served")
    assert list(socket_folder.iterdir()) == []


def test_stream_terminated_is_not_a_grpc_error() -> None:
    """The lifecycle catches both by name because of this."""
    from grpclib.exceptions import GRPCError

    assert not issubclass(StreamTerminatedError, GRPCError)


@pytest.mark.anyio
@pytest.mark.parametrize("turns", range(5))
async def test_a_connection_that_comes_in_while_the_server_stops_is_closed_too(
    socket_folder: Path, turns: int
) -> None:
    """At any turn of the event loop; a leak is a ResourceWarning, which fails the test."""
    path = socket_folder / "ours.sock"
    service = make_service()
    async with serve(service, path, service.end_streams):
        connection = connect(path)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
    gc.collect()
    with connection:
        assert await is_closed_by_peer(connection)


@pytest.mark.anyio
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
async def test_a_socket_is_the_owners_alone_whatever_the_umask(
    socket_folder: Path, mask: int
) -> None:
    path = socket_folder / "ours.sock"
    service = make_service()
    before = os.umask(mask)
    try:
        async with serve(service, path, service.end_streams):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.anyio
async def test_what_took_the_place_of_a_socket_is_not_removed(socket_folder: Path) -> None:
    path = socket_folder / "ours.sock"
    service = make_service()
    async with serve(service, path, service.end_streams):
        connection = connect(path)
        await anyio.wait_readable(connection)
        path.unlink()
        path.mkdir()
    assert path.is_dir()
    with connection:
        assert await is_closed_by_peer(connection)
