"""What `kubelet.rpc` wraps grpclib for. When one of these fails, grpclib has mended it."""

import asyncio
from pathlib import Path

import anyio
import pytest
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.exceptions import StreamTerminatedError
from grpclib.protocol import H2Protocol
from grpclib.server import Server

from hami_mock.cli.embedded_kubelet import EmbeddedKubelet
from hami_mock.errors import Refused
from hami_mock.kubelet.rpc import Codec, call
from tests.integration.evil_kubelet import MISBEHAVIOURS, evil_kubelet, full_queue
from tests.integration.raw_client import RawClient

METHOD = "/v1beta1.Registration/Register"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def plain_call(path: Path) -> None:
    async with Channel(path=str(path), codec=Codec()) as channel:
        await UnaryUnaryMethod(channel, METHOD, bytes, bytes)(b"")


@pytest.mark.anyio
async def test_a_connection_that_is_lost_has_no_transport_any_more(socket_folder: Path) -> None:
    path = socket_folder / "kubelet.sock"
    with evil_kubelet(path, MISBEHAVIOURS["closes at once"][0]):
        async with Channel(path=str(path)) as channel:
            protocol = await channel._create_connection()
            with anyio.fail_after(10):
                while not protocol.handler.connection_lost:  # type: ignore[attr-defined]  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            with pytest.raises(AttributeError):
                protocol.connection.create_stream()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("gives no :status", KeyError),
        ("compresses", NotImplementedError),
        ("cuts off", AssertionError),
        ("gives no message", AssertionError),
    ],
)
async def test_an_odd_answer_raises_anything(
    socket_folder: Path, name: str, error: type[Exception]
) -> None:
    path = socket_folder / "kubelet.sock"
    with evil_kubelet(path, MISBEHAVIOURS[name][0]), pytest.raises(error):
        await plain_call(path)


@pytest.mark.anyio
async def test_asyncio_takes_a_full_queue_for_a_connection(socket_folder: Path) -> None:
    path = socket_folder / "kubelet.sock"
    with full_queue(path):
        async with Channel(path=str(path)) as channel:
            protocol = await channel._create_connection()
            protocol.processor.close()
        with pytest.raises(Refused, match="too many wait for it"):
            await call(path, METHOD, b"", 10)


@pytest.mark.anyio
async def test_trailers_that_do_not_come_are_waited_for(socket_folder: Path) -> None:
    path = socket_folder / "kubelet.sock"
    with (
        evil_kubelet(path, MISBEHAVIOURS["gives no trailers"][0]),
        anyio.move_on_after(0.5) as patience,
    ):
        await plain_call(path)
    assert patience.cancelled_caught


@pytest.mark.anyio
async def test_a_stream_that_breaks_leaves_its_task_cancelled_and_our_call_does_not(
    socket_folder: Path,
) -> None:
    """With such a task, a cancel scope around it lets its own cancellation out: nobody ends."""
    path = socket_folder / "kubelet.sock"
    task = asyncio.current_task()
    assert task is not None
    with evil_kubelet(path, MISBEHAVIOURS["resets the stream"][0]):
        with pytest.raises(Refused, match="closed the connection"):
            await call(path, METHOD, b"", 10)
        assert task.cancelling() == 0
        with pytest.raises(StreamTerminatedError):
            await plain_call(path)
        assert task.cancelling() == 1
        task.uncancel()


@pytest.mark.anyio
async def test_a_stream_that_is_reset_before_its_call_began_is_never_released(
    socket_folder: Path,
) -> None:
    """The reason for `_Calls` in views/deviceplugin/server.py."""
    path = socket_folder / "plain.sock"
    protocols: list[H2Protocol] = []

    class PlainServer(Server):
        def _protocol_factory(self) -> H2Protocol:
            protocols.append(super()._protocol_factory())
            return protocols[-1]

    server = PlainServer([EmbeddedKubelet(socket_folder)])
    await server.start(path=str(path))
    with RawClient(path) as client:
        client.open_and_reset(METHOD)
        with anyio.fail_after(10):
            while not (protocols and protocols[0].connection.streams_failed):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        await anyio.sleep(0.1)
        assert len(protocols[0].processor.streams) == 1
        protocols[0].processor.close()
    server.close()
