"""The five calls that the kubelet makes to a device plugin."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from hami_mock._proto.v1beta1 import (
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
from hami_mock.concurrency import first_of
from hami_mock.deviceplugin.preference import prefer
from hami_mock.deviceplugin.server import EncodedList
from hami_mock.errors import DeviceError, UnhealthyDevice
from hami_mock.inventory import Card
from hami_mock.resources import Resource
from hami_mock.state import NodeState
from hami_mock.telemetry.counters import ResourceCounters

if TYPE_CHECKING:
    from grpclib.server import Stream

# A pod may take 80,000 units; the event loop gets a turn after each so many.
_AT_ONCE = 8192

_LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch"


class DevicePluginService(DevicePluginBase):
    """One resource's device plugin, for the length of one registration."""

    def __init__(self, resource: Resource, state: NodeState, counters: ResourceCounters) -> None:
        self._resource = resource
        self._state = state
        self._counters = counters
        self._streams = 0
        self._ending = anyio.Event()
        self.watched = anyio.Event()
        """Set when a stream has got its first list."""
        self.abandoned = anyio.Event()
        """Set when the last stream has ended."""

    def end_streams(self) -> None:
        """Let all streams end."""
        self._ending.set()

    async def get_device_plugin_options(self, message: Empty) -> DevicePluginOptions:
        """Say which of the optional calls the kubelet should make.

        Preferences are for slots alone: the request carries every free ID, and a preference among
        a quarter of a million equal units is worth nothing.
        """
        return DevicePluginOptions(get_preferred_allocation_available=self._resource.has_slots)

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
            with _as_grpc_errors():
                responses = [await self._allocate(device_ids) for device_ids in requests]
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
        with _as_grpc_errors():
            self._resource.cards_of(message.device_ids, self._state.unhealthy)
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
        try:
            sent: frozenset[str] | None = None
            while not self._ending.is_set():
                change = self._state.next_change()
                unhealthy = self._own(self._state.unhealthy)
                if unhealthy != sent:
                    await self._send_list(stream, unhealthy)
                    sent = unhealthy
                await first_of(change.wait, self._ending.wait)
        finally:
            self._streams -= 1
            if not self._streams:
                self.abandoned.set()

    async def _send_list(
        self, stream: "Stream[Empty, ListAndWatchResponse]", unhealthy: frozenset[str]
    ) -> None:
        payload = self._resource.encode_list(unhealthy)
        await stream.send_message(EncodedList(payload))
        self._counters.lists += 1
        self._counters.list_bytes += len(payload)
        self.watched.set()

    def _own(self, unhealthy: frozenset[str]) -> frozenset[str]:
        return unhealthy.intersection(card.uuid for card in self._resource.cards)

    async def _allocate(self, device_ids: Sequence[str]) -> ContainerAllocateResponse:
        cards: set[Card] = set()
        for start in range(0, len(device_ids), _AT_ONCE):
            some = device_ids[start : start + _AT_ONCE]
            cards.update(self._resource.cards_of(some, self._state.unhealthy))
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
    except UnhealthyDevice as error:
        raise GRPCError(Status.FAILED_PRECONDITION, str(error)) from error
    except DeviceError as error:
        raise GRPCError(Status.INVALID_ARGUMENT, str(error)) from error
