"""Calls of the kubelet that end in an error: because they must, or because a fault says so."""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from hami_mock.errors import DeviceError, NotAssigned, UnhealthyDevice
from hami_mock.node.fault import Call, Fault
from hami_mock.node.fault_kinds import SLOW
from hami_mock.node.state import NodeState


@contextmanager
def as_grpc_errors() -> Iterator[None]:
    """Raise GRPCError in place of DeviceError."""
    try:
        yield
    except (UnhealthyDevice, NotAssigned) as error:
        raise GRPCError(Status.FAILED_PRECONDITION, str(error)) from error
    except DeviceError as error:
        raise GRPCError(Status.INVALID_ARGUMENT, str(error)) from error


async def apply_call_faults(state: NodeState, resource_name: str, call: Call) -> None:
    """Be as late as the faults of that call say. Raises GRPCError if one says that it fails."""
    for fault in state.faults_of(resource_name, call):

        def is_over(fault: Fault = fault) -> bool:
            return fault not in state.faults

        if fault.seconds:
            with anyio.move_on_after(fault.seconds):
                await state.wait_until(is_over)
        if fault.kind is not SLOW and not is_over():
            raise GRPCError(Status.UNAVAILABLE, f"{resource_name}: {fault.text}")
