"""A client that asks for too much gets little, and the kubelet is served meanwhile."""

import logging
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import pytest

from hami_mock.kubelet import wire
from hami_mock.kubelet.rpc import call
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.deviceplugin.server import serve
from hami_mock.views.deviceplugin.service import DevicePluginService
from tests.integration.raw_client import (
    ALLOCATE,
    LIST,
    OPTIONS,
    PREFERENCE,
    PRESTART,
    RawClient,
    framed,
)

_T = TypeVar("_T")

MIB = 1024 * 1024
OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED = "0", "3", "8", "12"
REFUSED_STREAM = "reset 7"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def serving(path: Path, resource: str = "nvidia.com/gpu") -> AsyncIterator[ResourceCounters]:
    node = configured_node(load({"nvidia-memory": "130000"}), None)
    counters = ResourceCounters()
    wanted = next(each for each in node.resources if each.name == resource)
    service = DevicePluginService(wanted, NodeState(node), counters)
    async with serve(service, path, service.end_streams):
        yield counters
        # Whatever happened: who behaves is served.
        assert await call(path, OPTIONS, b"", 10) is not None


async def in_thread(function: Callable[[], _T]) -> _T:
    return await anyio.to_thread.run_sync(function)


@pytest.mark.anyio
@pytest.mark.parametrize("size", [2**32 - 1, 16 * MIB + 1])
async def test_a_message_that_is_too_long_is_refused_before_it_comes(
    socket_folder: Path, size: int
) -> None:
    path = socket_folder / "ours.sock"

    def announce() -> tuple[str, str]:
        with RawClient(path) as client:
            head = b"\x00" + size.to_bytes(4, "big")
            return client.answer(client.open(ALLOCATE, head, end=False))

    async with serving(path):
        status, message = await in_thread(announce)
    assert status == RESOURCE_EXHAUSTED
    assert f"{size} bytes is too long" in message


BAD_MESSAGES = {
    "invalid protobuf": (framed(b"\x0a\x7fnonsense"), INVALID_ARGUMENT),
    "a wire type that there isn't": (framed(b"\x0f"), INVALID_ARGUMENT),
    "a varint without end": (framed(b"\x0a" + b"\xff" * 20), INVALID_ARGUMENT),
    "invalid UTF-8": (framed(b"\x0a\x04\x0a\x02\xff\xfe"), INVALID_ARGUMENT),
    "cut off": (b"\x00\x00\x00\x00\x64abc", INVALID_ARGUMENT),
    "half a head": (b"\x00\x00", INVALID_ARGUMENT),
    "compressed": (b"\x01\x00\x00\x00\x00", UNIMPLEMENTED),
    "no message": (None, INVALID_ARGUMENT),
}


@pytest.mark.anyio
@pytest.mark.parametrize("method", [PREFERENCE, ALLOCATE, PRESTART])
@pytest.mark.parametrize("name", BAD_MESSAGES)
async def test_a_request_that_makes_no_sense_is_the_clients_error(
    socket_folder: Path, method: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = socket_folder / "ours.sock"
    data, wanted = BAD_MESSAGES[name]

    def ask() -> str:
        with RawClient(path) as client:
            return client.answer(client.open(method, data))[0]

    with caplog.at_level(logging.INFO):
        async with serving(path):
            status = await in_thread(ask)
    assert status == wanted
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.anyio
async def test_lists_that_nobody_reads_share_one_payload(socket_folder: Path) -> None:
    path = socket_folder / "ours.sock"
    async with serving(path, "nvidia.com/gpumem"), AsyncExitStack() as stack:
        clients = [stack.enter_context(await in_thread(lambda: RawClient(path))) for _ in range(6)]
        tracemalloc.start()
        try:
            for client in clients:
                for _ in range(10):
                    await in_thread(partial(client.open, LIST, framed(b"")))
            await call(path, OPTIONS, b"", 10)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # The list has almost 4 MiB; 60 copies of it would have 240.
    assert peak < 20 * MIB


@pytest.mark.anyio
async def test_calls_beyond_the_most_are_refused_and_may_be_tried_again(
    socket_folder: Path,
) -> None:
    path = socket_folder / "ours.sock"

    def flood(client: RawClient) -> str:
        for _ in range(64):
            client.open(LIST, framed(b""))
        return client.answer(client.open(OPTIONS, framed(b"")))[0]

    def ask(client: RawClient) -> str:
        return client.answer(client.open(OPTIONS, framed(b"")))[0]

    async with serving(path):
        greedy, modest = [await in_thread(lambda: RawClient(path)) for _ in range(2)]
        with greedy as first, modest as second:
            assert await in_thread(lambda: flood(first)) == REFUSED_STREAM
            assert await in_thread(lambda: ask(second)) == REFUSED_STREAM


@pytest.mark.anyio
async def test_connections_beyond_the_most_are_closed_and_the_others_stay(
    socket_folder: Path,
) -> None:
    path = socket_folder / "ours.sock"

    def ask(client: RawClient) -> str:
        return client.answer(client.open(OPTIONS, framed(b"")))[0]

    async with serving(path):
        async with AsyncExitStack() as stack:
            clients = []
            for _ in range(16):
                clients.append(stack.enter_context(await in_thread(lambda: RawClient(path))))
                assert await in_thread(lambda: ask(clients[-1])) == OK

            def one_more() -> None:
                with RawClient(path) as client:
                    ask(client)

            with pytest.raises(OSError, match=r"closed|reset|pipe"):
                await in_thread(one_more)
            assert await in_thread(lambda: ask(clients[0])) == OK
        with anyio.fail_after(10):
            while True:
                try:
                    assert await in_thread(lambda: _asked(path)) == OK
                    break
                except OSError:
                    # The server hears one after the other that they are gone.
                    await anyio.sleep(0.01)


def _asked(path: Path) -> str:
    with RawClient(path) as client:
        return client.answer(client.open(OPTIONS, framed(b"")))[0]


@pytest.mark.anyio
async def test_a_client_that_resets_and_resets_is_cut_off_and_leaves_nothing(
    socket_folder: Path,
) -> None:
    path = socket_folder / "ours.sock"

    def reset() -> int:
        with RawClient(path) as client:
            for number in range(20_000):
                try:
                    client.open_and_reset(LIST)
                except OSError:
                    return number
        return 20_000

    async with serving(path):
        await call(path, OPTIONS, b"", 10)
        tracemalloc.start()
        try:
            assert await in_thread(reset) < 20_000
            await call(path, OPTIONS, b"", 10)
            left, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert left < 10 * MIB


@pytest.mark.anyio
async def test_calls_that_end_well_make_up_for_resets(socket_folder: Path) -> None:
    path = socket_folder / "ours.sock"

    def live_long() -> set[str]:
        with RawClient(path) as client:
            answers = set()
            for _ in range(400):
                client.reset(client.open(LIST, framed(b"")))
                answers.add(client.answer(client.open(OPTIONS, framed(b"")))[0])
            return answers

    async with serving(path):
        assert await in_thread(live_long) == {OK}


@pytest.mark.anyio
async def test_an_error_is_short_however_long_the_id(socket_folder: Path) -> None:
    """grpclib takes quadratic time to encode its text."""
    path = socket_folder / "ours.sock"

    def ask() -> tuple[str, str]:
        with RawClient(path) as client:
            request = wire.allocate_request([["\u00e9" * 5_000]])
            return client.answer(client.open(ALLOCATE, framed(request)))

    async with serving(path):
        status, message = await in_thread(ask)
    assert status == INVALID_ARGUMENT
    assert "there is no device" in message
    assert len(message) < 3000
