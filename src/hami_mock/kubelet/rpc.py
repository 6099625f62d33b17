"""Calls to the kubelet, how messages become bytes, and what neither side may do to us.

grpclib trusts its peer: it collects a message of any length, stumbles over an answer that isn't one
(AttributeError, KeyError, AssertionError …) and cancels the task that waits when a connection is
lost. Here whatever goes wrong is an error of ours, and a call has a task of its own. The quirks
are in tests/integration/test_grpclib_quirks.py; a test that fails there names what can go.
"""

import logging
import socket
from collections.abc import Callable
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Status
from grpclib.encoding.proto import ProtoCodec
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.protocol import H2Protocol

from hami_mock.errors import KubeletAbsent, KubeletError, Refused
from hami_mock.kit.supervision import reason_of
from hami_mock.kit.text import cut
from hami_mock.kubelet import wire
from hami_mock.kubelet._proto import v1beta1 as api

if TYPE_CHECKING:
    from grpclib.protocol import Stream

_LONGEST_ANSWER = 64 * 1024 * 1024
"""Of a node with a quarter of a million devices held, the kubelet tells in 8 MB."""
_QUIET_SECONDS = 5.0
"""After so long, and after twice as long …, whoever waits for the kubelet says so."""

_log = logging.getLogger(__name__)


# Past betterproto2's machinery: it is slow with many IDs, and takes what makes no sense for None.
_READERS: dict[type, Callable[[bytes], object]] = {
    api.AllocateRequest: lambda data: api.AllocateRequest(
        [*map(api.ContainerAllocateRequest, wire.read_allocate_request(data))]
    ),
    api.PreferredAllocationRequest: lambda data: api.PreferredAllocationRequest(
        [*starmap(api.ContainerPreferredAllocationRequest, wire.read_preference_request(data))]
    ),
    api.PreStartContainerRequest: lambda data: api.PreStartContainerRequest(wire.read_ids(data)),
}


class Codec(ProtoCodec):
    """Leaves bytes as they are where a type says so."""

    def encode(self, message: Any, message_type: Any) -> bytes:
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> Any:
        if message_type is bytes:
            return data
        try:
            return _READERS.get(message_type, message_type.parse)(data)
        except Exception as error:
            # betterproto2 raises whatever it stumbles over: ValueError, struct.error, EOFError …
            what = f"this is no {message_type.__name__}: {error}"
            raise Refusal(Status.INVALID_ARGUMENT, what) from error


class Refusal(GRPCError):
    """What we say to the other side; short, as grpclib takes quadratic time to encode it."""

    def __init__(self, status: Status, text: str) -> None:
        super().__init__(status, cut(text))


def bound(stream: "Stream", longest: int, *, is_request: bool = False) -> None:
    """Let a stream refuse messages that are too long, compressed or cut off; a request is a must.

    grpclib reads a message's head (5 bytes) and its body in turns.
    """
    read = stream.recv_data
    reads = 0

    async def recv_data(size: int) -> bytes:
        nonlocal reads
        is_head, reads = reads % 2 == 0, reads + 1
        if size > longest:
            told = f"a message of {size} bytes is too long: at most {longest} are taken"
            raise Refusal(Status.RESOURCE_EXHAUSTED, told)
        try:
            data = await read(size)
        except AssertionError as error:
            raise Refusal(Status.INVALID_ARGUMENT, "a message was cut off") from error
        if is_head and not data and is_request and reads == 1:
            raise Refusal(Status.INVALID_ARGUMENT, "there is no message in the request")
        if is_head and data and data[0]:
            raise Refusal(Status.UNIMPLEMENTED, "a message is compressed; that was never agreed")
        if not is_head and len(data) != size:
            raise Refusal(Status.INVALID_ARGUMENT, "a message was cut off")
        return data

    stream.recv_data = recv_data  # type: ignore[method-assign]


async def call(
    path: Path,
    method: str,
    request: Any,
    seconds: float,
    tell: Callable[[str], None] = lambda _: None,
) -> bytes:
    """Make one call on a connection of its own and return the answer's bytes.

    `tell` hears from time to time that there is no answer yet. Raises KubeletAbsent if nobody
    listens, Refused if the kubelet says no, says nothing or can't be understood.
    """
    outcome: list[bytes | Exception] = []

    async def ask() -> None:
        channel = _Channel(path=str(path), codec=Codec())
        try:
            outcome.append(await _ask(channel, method, request))
        except Exception as error:
            outcome.append(error)
        finally:
            channel.close()
            answered.set()

    answered = anyio.Event()
    waited, pause = 0.0, _QUIET_SECONDS
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        while waited < seconds and not answered.is_set():
            with anyio.move_on_after(min(pause, seconds - waited)):
                await answered.wait()
                break
            waited, pause = waited + pause, pause * 2
            tell(f"for {waited:.0f} s")
        tasks.cancel_scope.cancel()
    match outcome:
        case [bytes(answer)]:
            return answer
        case [Exception() as error]:
            raise _explained(error, path) from error
    raise Refused(f"no answer from the kubelet in {seconds:.0f} s")


class SafeProtocol(H2Protocol):
    """A connection that a frame which grpclib doesn't know ends, without a traceback in the log."""

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except Exception:
            _log.debug("what came in can't be understood", exc_info=True)
            self.processor.close("Protocol error")


class _Channel(Channel):
    """A channel over a unix socket.

    asyncio takes a queue that is full for a connection that is on its way. It never will be: a unix
    socket is connected at once, or not.
    """

    async def _create_connection(self) -> H2Protocol:
        end = socket.socket(socket.AF_UNIX)
        try:
            end.setblocking(False)
            end.connect(str(self._path))
            made = await self._loop.create_unix_connection(self._protocol_factory, sock=end)
        except BaseException:
            end.close()
            raise
        return made[1]

    def _protocol_factory(self) -> H2Protocol:
        plain = super()._protocol_factory()
        return SafeProtocol(plain.handler, plain.config, plain.h2_config)


async def _ask(channel: Channel, method: str, request: Any) -> bytes:
    async with UnaryUnaryMethod(channel, method, bytes, bytes).open() as stream:
        await stream.send_message(request, end=True)
        bound(stream._stream, _LONGEST_ANSWER)
        answer: bytes | None = await stream.recv_message()
        if answer is not None:
            # To the end: grpclib would wait for ever for trailers that don't come.
            await stream.recv_message()
        if stream._stream.trailers is None and not stream._trailers_only:
            raise Refusal(Status.INTERNAL, "an answer without a status")
    if answer is None:
        raise Refusal(Status.INTERNAL, "an answer without a message")
    return answer


def _explained(error: Exception, path: Path) -> KubeletError:
    match error:
        case Refusal():
            return Refused(f"the kubelet's answer can't be understood: {error.message}")
        case GRPCError():
            return Refused(cut(f"the kubelet refused: {error.message or error.status.name}"))
        case (
            StreamTerminatedError() | AttributeError() | ConnectionResetError() | BrokenPipeError()
        ):
            # AttributeError: grpclib's connection, which is lost by the time that it is used.
            return Refused("the kubelet closed the connection before it answered")
        case BlockingIOError():
            return Refused("the kubelet takes no connection: too many wait for it")
        case OSError():
            return KubeletAbsent(f"no kubelet listens at {path}")
    return Refused(f"the kubelet's answer can't be understood: {reason_of(error)}")
