"""The five calls that the kubelet makes to a device plugin."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING
from weakref import ref

import anyio
from grpclib.const import Cardinality, Handler, Status

from hami_mock.errors import UnhealthyCard
from hami_mock.kit.concurrency import first_of
from hami_mock.kubelet._proto import v1beta1 as api
from hami_mock.kubelet.rpc import Refusal
from hami_mock.node.cards import Card
from hami_mock.node.fault import Call
from hami_mock.node.resources import Resource
from hami_mock.node.slot_cards import container_cards, stand_ins
from hami_mock.node.state import NodeState
from hami_mock.views.deviceplugin.allocation import (
    Allocation,
    Assigner,
    apply_call_faults,
    as_grpc_errors,
)
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.deviceplugin.preference import prefer
from hami_mock.views.deviceplugin.server import SharedMessage

if TYPE_CHECKING:
    from grpclib.server import Stream

GivesWith = Callable[[Sequence[Card]], tuple[Iterable[tuple[str, str]], Iterable[tuple[str, str]]]]
"""Tells what a container gets with cards: mounts and devices, each with its path on the host and in
the container."""

LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch"


class DevicePluginService(api.DevicePluginBase):
    """One resource's device plugin, for the length of one registration."""

    def __init__(
        self,
        resource: Resource,
        state: NodeState,
        counters: ResourceCounters,
        assigner: Assigner | None = None,
        gives: GivesWith | None = None,
    ) -> None:
        self._at_first = resource
        self._state = state
        self._counters = counters
        self._assigner = assigner
        self._gives = gives
        self._streams = 0
        self._newest: Callable[[], SharedMessage | None] = lambda: None
        self._ending = anyio.Event()
        self.end_streams = self._ending.set
        self.watched = anyio.Event()
        """Set when a stream has got its first list."""
        self.abandoned = anyio.Event()
        """Set when the last stream has ended."""
        self.dropped = False
        """Whether a stream was broken off on command."""

    @property
    def _resource(self) -> Resource:
        return self._state.current(self._at_first)

    async def get_device_plugin_options(self, message: api.Empty) -> api.DevicePluginOptions:
        # Preferences are for slots alone: the request carries every free ID, and a preference among
        # a quarter of a million equal units is worth nothing. PreStartContainer looks at the card,
        # or fails on command; slots are enough for that.
        has_slots = self._resource.has_slots
        return api.DevicePluginOptions(
            pre_start_required=has_slots, get_preferred_allocation_available=has_slots
        )

    async def get_preferred_allocation(
        self, message: api.PreferredAllocationRequest
    ) -> api.PreferredAllocationResponse:
        resource = self._resource
        if not resource.has_slots:
            raise Refusal(Status.UNIMPLEMENTED, f"{resource.name}: any unit will do")
        requests = message.container_requests
        assigned: Sequence[Collection[str]] = [()] * len(requests)
        if self._assigner is not None and self._is_assigned(resource):
            sizes = [request.allocation_size for request in requests]
            assigned = await self._assigner.cards_for(resource, sizes)
        with as_grpc_errors():
            chosen = [
                prefer(
                    resource,
                    each.available_device_ids,
                    each.must_include_device_ids,
                    each.allocation_size,
                    cards,
                )
                for each, cards in zip(requests, assigned, strict=True)
            ]
        answers = [api.ContainerPreferredAllocationResponse(device_ids=ids) for ids in chosen]
        return api.PreferredAllocationResponse(container_responses=answers)

    async def allocate(self, message: api.AllocateRequest) -> api.AllocateResponse:
        allocation = Allocation(self._resource, self._state, self._assigner)
        requests = [request.device_ids for request in message.container_requests]
        answers = await allocation.run(requests, self._counters)
        return api.AllocateResponse(
            container_responses=[self._response(*answer) for answer in answers]
        )

    def _response(
        self, variables: Mapping[str, str], cards: Sequence[Card]
    ) -> api.ContainerAllocateResponse:
        response = api.ContainerAllocateResponse(envs=dict(variables))
        if self._gives and cards:
            mounts, devices = self._gives([*dict.fromkeys(cards)])
            response.mounts = [
                api.Mount(target, source, read_only=True) for source, target in mounts
            ]
            response.devices = [api.DeviceSpec(target, source, "rw") for source, target in devices]
        return response

    async def pre_start_container(
        self, message: api.PreStartContainerRequest
    ) -> api.PreStartContainerResponse:
        """Check the devices; there is nothing to prepare."""
        await apply_call_faults(self._state, self._at_first.name, Call.PRESTART)
        resource, bad = self._resource, self._state.unhealthy | self._state.lost
        with as_grpc_errors():
            cards = self._assigned_cards(resource, message.device_ids)
            if broken := sorted(cards & bad):
                raise UnhealthyCard(resource.name, broken[0])
            if not cards:
                resource.cards_of(message.device_ids, bad)
        return api.PreStartContainerResponse()

    def _assigned_cards(self, resource: Resource, device_ids: Collection[str]) -> set[str]:
        """Return the UUIDs of the cards that a container was assigned; none: its slots decide."""
        if not self._is_assigned(resource):
            return set()
        return container_cards(self._state, resource, device_ids)

    def _is_assigned(self, resource: Resource) -> bool:
        return self._assigner is not None and self._assigner.handles(resource)

    def __mapping__(self) -> dict[str, Handler]:
        """Map the calls, ListAndWatch to our own handler.

        The generated one drives an async generator, whose `finally` doesn't run in time when the
        kubelet goes away in the middle of a send.
        """
        kinds = (Cardinality.UNARY_STREAM, api.Empty, bytes)
        return super().__mapping__() | {LIST_AND_WATCH: Handler(self._list_and_watch, *kinds)}

    async def _list_and_watch(self, stream: "Stream[api.Empty, bytes]") -> None:
        """Send the list now, and again whenever it has changed."""
        await stream.recv_message()
        self._streams += 1
        drops = self._state.drops[self._at_first.name]
        try:
            sent: object = None
            while not self._ending.is_set():
                changes = self._next_changes()
                if self._state.drops[self._at_first.name] != drops:
                    self.dropped = True
                    raise Refusal(Status.UNAVAILABLE, "the list was dropped on command")
                resource = self._resource
                own = {card.uuid for card in resource.cards}
                unhealthy, lost = self._state.unhealthy & own, self._state.lost & own
                moved = self._stand_ins(resource, unhealthy | lost)
                shown = (resource.devices.key, unhealthy, lost, moved)
                # A resource that is gone has nothing more to say: its plugin is about to end.
                if shown != sent and self._state.offers(self._at_first):
                    await self._send(stream, self._encoded(shown, resource, unhealthy, lost, moved))
                    sent = shown
                    self.watched.set()
                await first_of(*(each.wait for each in changes), self._ending.wait)
        finally:
            self._streams -= 1
            if not self._streams:
                self.abandoned.set()

    def _next_changes(self) -> list[anyio.Event]:
        """Return the events of which one comes before the list changes."""
        changes = [self._state.changes]
        if self._is_assigned(self._resource):
            changes += [self._state.holders.changes, self._state.pod_changes]
        return [each.next() for each in changes]

    def _stand_ins(self, resource: Resource, bad: Set[str]) -> dict[str, str]:
        """Return the slots whose health isn't their card's, with the card whose health it is."""
        # Nobody sees which card a slot stands for while all are well.
        if not bad or not self._is_assigned(resource):
            return {}
        return {
            slot: card
            for slot, card in stand_ins(self._state, resource).items()
            if not bad.isdisjoint((card, resource.devices.card_of(slot)))
        }

    async def _send(self, stream: "Stream[api.Empty, bytes]", message: SharedMessage) -> None:
        # Apart from the loop, which would hold the message while it waits for a change.
        await message.send(stream)
        self._counters.lists += 1
        self._counters.list_bytes += message.size

    def _encoded(
        self,
        shown: object,
        resource: Resource,
        unhealthy: Set[str],
        lost: Set[str],
        moved: Mapping[str, str],
    ) -> SharedMessage:
        """Return the list; one for all streams that send it now."""
        message = self._newest()
        if message is None or message.key != shown:
            message = SharedMessage(shown, resource.list_pieces(unhealthy, lost, stand_ins=moved))
            self._newest = ref(message)
        return message
