"""The bounds of the HTTP server, one by one; `test_http_bounds` storms a whole agent."""

import logging
import resource
import socket
from collections.abc import Iterator
from contextlib import suppress

import anyio
import pytest
from anyio.abc import SocketStream

from hami_mock.views.http import condition, server
from hami_mock.views.http.server import Answer, Routes, serve_http

ASK = b"GET /x HTTP/1.1\r\n\r\n"
YES: Routes = {"/x": lambda: Answer(b"yes")}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


async def connect(address: str) -> SocketStream:
    host, _, port = address.rpartition(":")
    return await anyio.connect_tcp(host, int(port))


async def rest(stream: SocketStream) -> bytes:
    """All that still comes, until the other side closes."""
    received = b""
    try:
        while True:
            received += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return received


async def ask(address: str, request: bytes = ASK) -> bytes:
    async with await connect(address) as stream:
        await stream.send(request)
        return await rest(stream)


@pytest.mark.anyio
async def test_half_a_request_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 0.05)
    with anyio.fail_after(20):
        async with serve_http("127.0.0.1:0", YES) as address, await connect(address) as slow:
            await slow.send(ASK[:9])
            assert await rest(slow) == b""


@pytest.mark.anyio
async def test_an_answer_that_nobody_reads_is_not_kept_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = 50_000_000
    large: Routes = {"/x": lambda: Answer(b"x" * size)}
    with anyio.fail_after(20):
        async with serve_http("127.0.0.1:0", large) as address, await connect(address) as idle:
            # Only now: the listener keeps its own limit, which the kernel would hold us to.
            monkeypatch.setattr(server, "_ANSWER_SECONDS", 0.05)
            await idle.send(ASK)
            await anyio.sleep(0.2)
            assert len(await rest(idle)) < size


def test_the_kernel_keeps_little_for_a_connection_and_not_for_long() -> None:
    with server._listen("127.0.0.1", 0) as listener:
        listener.setblocking(True)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            # Linux doubles what it is asked for.
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * 8192
            milliseconds = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert milliseconds == 5000


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"GET /" + b"x" * 9000, 414),
        (b"GET /x HTTP/1.1\r\nA: " + b"a" * 9000, 431),
        (b"GET /x HTTP/1.1\r\nA: " + b"a" * 8000 + b"\r\n\r\n", 200),
        (b"GET /" + b"x" * 8000 + b" HTTP/1.1\r\n\r\n", 404),
    ],
)
async def test_a_request_has_at_most_8_kib(request_text: bytes, status: int) -> None:
    async with serve_http("127.0.0.1:0", YES) as address:
        answer = await ask(address, request_text)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert (await ask(address)).endswith(b"\r\n\r\nyes")


@pytest.mark.anyio
async def test_for_one_too_many_the_oldest_that_has_not_asked_is_closed(
    monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 3)
    large: Routes = {"/x": lambda: Answer(b"x" * 20_000_000)}
    with anyio.fail_after(20):
        async with serve_http("127.0.0.1:0", large) as address:
            reader = await connect(address)
            await reader.send(ASK)
            first = await reader.receive(4)
            idle = [await connect(address) for _ in range(3)]
            assert await rest(idle[0]) == b""
            await idle[1].send(ASK)
            assert (await idle[1].receive(4)) == first == b"HTTP"
            assert len(await rest(reader)) > 20_000_000
            for stream in (reader, *idle):
                await stream.aclose()
            # Nobody but slow readers: the oldest of them goes, not who comes to ask.
            readers = [await connect(address) for _ in range(3)]
            for stream in readers:
                await stream.send(ASK)
                assert await stream.receive(4) == b"HTTP"
            async with await connect(address) as late:
                assert len(await rest(readers[0])) < 20_000_000
                await late.send(ASK)
                assert await late.receive(4) == b"HTTP"
            for stream in readers:
                await stream.aclose()
    assert [record.message for record in log.records if "HTTP" in record.message] == [
        "HTTP: too many connections: the oldest is closed for each new one"
    ]


@pytest.mark.anyio
async def test_a_crowd_is_told_when_it_comes_and_when_it_is_gone(
    monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 2)
    with anyio.fail_after(20):
        async with serve_http("127.0.0.1:0", YES) as address:
            streams = [await connect(address) for _ in range(10)]
            for stream in streams[:8]:
                assert await rest(stream) == b""
            monkeypatch.setattr(condition, "_QUIET_SECONDS", 0.0)
            for stream in streams:
                await stream.aclose()
            assert (await ask(address)).endswith(b"yes")
            assert (await ask(address)).endswith(b"yes")
    told = [record.message for record in log.records if "HTTP" in record.message]
    what = "too many connections: the oldest is closed for each new one"
    assert told == [f"HTTP: {what}", f"HTTP: over: {what} (8 times)"]


@pytest.mark.anyio
async def test_an_answer_that_can_not_be_made_is_told_once_and_the_next_one_made(
    log: pytest.LogCaptureFixture,
) -> None:
    def fail() -> Answer:
        raise ValueError("a mistake of ours")

    async with serve_http("127.0.0.1:0", {"/fail": fail, **YES}) as address:
        for _ in range(5):
            answer = await ask(address, b"GET /fail HTTP/1.1\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert (await ask(address)).endswith(b"yes")
    told = [record.message for record in log.records if "HTTP" in record.message]
    assert told == ["HTTP: can't answer: ValueError('a mistake of ours')"]
    assert log.text.count("Traceback") == 1


@pytest.mark.anyio
@pytest.mark.parametrize(("files", "most"), [(resource.RLIM_INFINITY, 100), (4096, 100), (40, 10)])
async def test_the_rest_of_the_agent_keeps_its_files(
    monkeypatch: pytest.MonkeyPatch, files: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    with anyio.fail_after(20):
        async with serve_http("127.0.0.1:0", YES) as address:
            streams = [await connect(address) for _ in range(most + 1)]
            assert await rest(streams[0]) == b""
            await streams[1].send(ASK)
            assert (await rest(streams[1])).endswith(b"yes")
            for stream in streams:
                await stream.aclose()


@pytest.mark.anyio
async def test_who_is_let_in_last_is_closed_with_the_server() -> None:
    with socket.socket() as late:
        async with serve_http("127.0.0.1:0", YES) as address:
            host, _, port = address.rpartition(":")
            late.connect((host, int(port)))
        with suppress(ConnectionResetError):
            assert late.recv(1) == b""
