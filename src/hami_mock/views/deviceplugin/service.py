"""The five calls that the kubelet makes to a device plugin."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.lowlevel
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from hami_mock.errors import DeviceError, NotAssigned, UnhealthyDevice
from hami_mock.kit.concurrency import first_of
from hami_mock.kubelet._proto.v1beta1 import (
    AllocateRequest,
    AllocateResponse,
    ContainerAllocateResponse,
    ContainerPreferredAllocationResponse,
    DevicePluginBase,
    DevicePluginOptions,
    Empty,
    ListAndWatchResponse,
    PreferredAllocationRequest,
    PreferredAllocationResponse,
    PreStartContainerRequest,
    PreStartContainerResponse,
)
from hami_mock.node.cards import Card
from hami_mock.node.fault import Call, Fault
from hami_mock.node.fault_kinds import SLOW
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.deviceplugin.preference import prefer
from hami_mock.views.deviceplugin.server import EncodedList

if TYPE_CHECKING:
    from grpclib.server import Stream

# A pod may take 80,000 units; the event loop gets a turn after each so many.
_AT_ONCE = 8192

_LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch"


class Assigner(Protocol):
    """Somebody else who decides which cards a container gets, whatever slots the kubelet chose."""

    def handles(self, resource: Resource) -> bool:
        """Tell whether that is so for a resource."""

    async def assign(
        self, resource: Resource, requests: Sequence[Sequence[str]]
    ) -> list[dict[str, str]]:
        """Return the variables of each container request. Raises DeviceError."""

    async def refuse(
        self, resource: Resource, requests: Sequence[Sequence[str]], reason: str
    ) -> None:
        """Hear that the kubelet gets an error in place of devices."""


class DevicePluginService(DevicePluginBase):
    """One resource's device plugin, for the length of one registration."""

    def __init__(
        self,
        resource: Resource,
        state: NodeState,
        counters: ResourceCounters,
        assigner: Assigner | None = None,
    ) -> None:
        self._at_first = resource
        self._state = state
        self._counters = counters
        self._assigner = assigner
        self._streams = 0
        self._ending = anyio.Event()
        self.watched = anyio.Event()
        """Set when a stream has got its first list."""
        self.abandoned = anyio.Event()
        """Set when the last stream has ended."""
        self.dropped = False
        """Whether a stream was broken off on command."""

    @property
    def _resource(self) -> Resource:
        return self._state.current(self._at_first)

    def end_streams(self) -> None:
        """Let all streams end."""
        self._ending.set()

    async def get_device_plugin_options(self, message: Empty) -> DevicePluginOptions:
        """Say which of the optional calls the kubelet should make.

        Preferences are for slots alone: the request carries every free ID, and a preference among
        a quarter of a million equal units is worth nothing. PreStartContainer is there to be slow
        or to fail on command; slots are enough for that.
        """
        has_slots = self._resource.has_slots
        return DevicePluginOptions(
            pre_start_required=has_slots, get_preferred_allocation_available=has_slots
        )

    async def get_preferred_allocation(
        self, message: PreferredAllocationRequest
    ) -> PreferredAllocationResponse:
        """Choose slots for each container."""
        if not self._resource.has_slots:
            raise GRPCError(Status.UNIMPLEMENTED, f"{self._resource.name}: any unit is as good")
        with _as_grpc_errors():
            return PreferredAllocationResponse(
                container_responses=[
                    ContainerPreferredAllocationResponse(
                        device_ids=prefer(
                            self._resource,
                            request.available_device_ids,
                            request.must_include_device_ids,
                            request.allocation_size,
                        )
                    )
                    for request in message.container_requests
                ]
            )

    async def allocate(self, message: AllocateRequest) -> AllocateResponse:
        """Answer each container request: slots with the cards' names, units with nothing."""
        started = time.perf_counter()
        requests = [request.device_ids for request in message.container_requests]
        try:
            responses = await self._answers(requests)
        except GRPCError:
            self._counters.allocation_errors += 1
            raise
        self._counters.allocations += 1
        self._counters.allocated_devices += sum(map(len, requests))
        self._counters.allocation_seconds.observe(time.perf_counter() - started)
        return AllocateResponse(container_responses=responses)

    async def pre_start_container(
        self, message: PreStartContainerRequest
    ) -> PreStartContainerResponse:
        """Check the devices; there is nothing to prepare."""
        await self._suffer(Call.PRESTART)
        with _as_grpc_errors():
            self._resource.cards_of(message.device_ids, self._out_of_order)
        return PreStartContainerResponse()

    def __mapping__(self) -> dict[str, Handler]:
        """Map the calls, ListAndWatch to our own handler.

        The generated one drives an async generator, whose `finally` doesn't run in time when the
        kubelet goes away in the middle of a send.
        """
        return super().__mapping__() | {
            _LIST_AND_WATCH: Handler(
                self._list_and_watch, Cardinality.UNARY_STREAM, Empty, ListAndWatchResponse
            )
        }

    async def _list_and_watch(self, stream: "Stream[Empty, ListAndWatchResponse]") -> None:
        """Send the list now, and again whenever it has changed."""
        await stream.recv_message()
        self._streams += 1
        drops = self._drops
        try:
            sent: object = None
            while not self._ending.is_set():
                change = self._state.changes.next()
                if self._drops != drops:
                    self.dropped = True
                    raise GRPCError(Status.UNAVAILABLE, "the list was dropped on command")
                resource = self._resource
                own = {card.uuid for card in resource.cards}
                unhealthy, lost = self._state.unhealthy & own, self._state.lost & own
                shown = (resource.devices.key, unhealthy, lost)
                # A resource that is gone has nothing more to say: its plugin is about to end.
                if shown != sent and self._state.offers(self._at_first):
                    await self._send_list(stream, resource.encode_list(unhealthy, lost))
                    sent = shown
                await first_of(change.wait, self._ending.wait)
        finally:
            self._streams -= 1
            if not self._streams:
                self.abandoned.set()

    async def _send_list(
        self, stream: "Stream[Empty, ListAndWatchResponse]", payload: bytes
    ) -> None:
        await stream.send_message(EncodedList(payload))
        self._counters.lists += 1
        self._counters.list_bytes += len(payload)
        self.watched.set()

    @property
    def _drops(self) -> int:
        return self._state.drops[self._at_first.name]

    @property
    def _out_of_order(self) -> frozenset[str]:
        return self._state.unhealthy | self._state.lost

    async def _suffer(self, call: Call) -> None:
        """Be late, or fail, as the faults of that call will have it."""
        for fault in self._state.faults_of(self._at_first.name, call):

            def is_over(fault: Fault = fault) -> bool:
                return fault not in self._state.faults

            if fault.seconds:
                with anyio.move_on_after(fault.seconds):
                    await self._state.wait_until(is_over)
            if fault.kind is not SLOW and not is_over():
                raise GRPCError(Status.UNAVAILABLE, f"{self._at_first.name}: {fault.text}")

    async def _answers(self, requests: Sequence[Sequence[str]]) -> list[ContainerAllocateResponse]:
        resource, assigner = self._resource, self._assigner
        if assigner is None or not assigner.handles(resource):
            return await self._own_answers(requests)
        try:
            # For the checks; what the containers get isn't ours to say.
            await self._own_answers(requests)
        except GRPCError as error:
            await assigner.refuse(resource, requests, error.message or error.status.name)
            raise
        with _as_grpc_errors():
            environments = await assigner.assign(resource, requests)
        return [ContainerAllocateResponse(envs=variables) for variables in environments]

    async def _own_answers(
        self, requests: Sequence[Sequence[str]]
    ) -> list[ContainerAllocateResponse]:
        await self._suffer(Call.ALLOCATE)
        with _as_grpc_errors():
            return [await self._allocate(device_ids) for device_ids in requests]

    async def _allocate(self, device_ids: Sequence[str]) -> ContainerAllocateResponse:
        cards: set[Card] = set()
        for start in range(0, len(device_ids), _AT_ONCE):
            some = device_ids[start : start + _AT_ONCE]
            cards.update(self._resource.cards_of(some, self._out_of_order))
            await anyio.lowlevel.checkpoint()
        if not self._resource.has_slots:
            return ContainerAllocateResponse()
        in_order = sorted(cards, key=lambda card: card.index)
        visible = ",".join(card.visible_as for card in in_order)
        return ContainerAllocateResponse(
            envs=dict.fromkeys(self._resource.vendor.visible_devices, visible)
        )


@contextmanager
def _as_grpc_errors() -> Iterator[None]:
    try:
        yield
    except (UnhealthyDevice, NotAssigned) as error:
        raise GRPCError(Status.FAILED_PRECONDITION, str(error)) from error
    except DeviceError as error:
        raise GRPCError(Status.INVALID_ARGUMENT, str(error)) from error
