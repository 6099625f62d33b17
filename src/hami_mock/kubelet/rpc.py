"""Calls to the kubelet, and how their messages become bytes."""

from pathlib import Path
from typing import Any

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.encoding.proto import ProtoCodec
from grpclib.exceptions import GRPCError, StreamTerminatedError

from hami_mock.errors import KubeletAbsent, Refused
from hami_mock.kubelet._proto.v1beta1 import AllocateRequest, ContainerAllocateRequest
from hami_mock.kubelet.wire import read_allocate_request


class Codec(ProtoCodec):
    """Leaves bytes as they are, and takes large requests past betterproto2's machinery."""

    def encode(self, message: Any, message_type: Any) -> bytes:
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> Any:
        if message_type is bytes:
            return data
        if message_type is AllocateRequest:
            return AllocateRequest([*map(ContainerAllocateRequest, read_allocate_request(data))])
        return super().decode(data, message_type)


async def call(socket: Path, method: str, request: Any, seconds: float | None = None) -> bytes:
    """Make one call on a connection of its own and return the answer's bytes.

    Raises KubeletAbsent if nobody listens, Refused with the kubelet's own words if it says no.
    """
    channel = Channel(path=str(socket), codec=Codec())
    try:
        return await UnaryUnaryMethod(channel, method, bytes, bytes)(request, timeout=seconds)
    except GRPCError as error:
        raise Refused(f"the kubelet refused: {error.message or error.status.name}") from error
    except TimeoutError as error:
        raise Refused(f"no answer from the kubelet in {seconds:.0f} s") from error
    except (OSError, StreamTerminatedError) as error:
        raise KubeletAbsent(f"no kubelet listens at {socket}") from error
    finally:
        channel.close()
