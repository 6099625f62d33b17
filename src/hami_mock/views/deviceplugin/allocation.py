"""The kubelet's Allocate: what each container gets, written down in the state and in the log."""

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import anyio.lowlevel
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from hami_mock.errors import DeviceError, NotAssigned, UnhealthyCard, UnhealthyDevice
from hami_mock.kit.text import cut
from hami_mock.kubelet.rpc import Refusal
from hami_mock.node.cards import Card
from hami_mock.node.fault import Call
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.views.allotted import Allotted
from hami_mock.views.call_faults import held_up
from hami_mock.views.deviceplugin.counters import ResourceCounters

_AT_ONCE = 8192
"""A pod may take 80,000 units; the event loop gets a turn after each so many."""
_LONGEST = 400
"""The room that cards, an answer or an error have in a line of the log."""

_log = logging.getLogger(__name__)

Requests = Sequence[Sequence[str]]
"""The device IDs that each container shall get."""


class Assigner(Protocol):
    """Somebody else who decides which cards a container gets, whatever slots the kubelet chose."""

    def handles(self, resource: Resource) -> bool:
        """Tell whether that is so for a resource."""

    async def assign(self, resource: Resource, requests: Requests) -> list[Allotted]:
        """Return what the container of each request gets. Raises DeviceError."""

    async def cards_for(self, resource: Resource, sizes: Sequence[int]) -> list[Collection[str]]:
        """Return the UUIDs of the cards that containers of so many devices will get.

        Soon, and without an error: empty where it can't be told.
        """

    async def refuse(self, resource: Resource, requests: Requests, reason: str) -> None:
        """Hear that the kubelet gets an error in place of devices."""


class Allocation:
    """One call for a resource, as it is now."""

    def __init__(self, resource: Resource, state: NodeState, assigner: Assigner | None) -> None:
        self._resource = resource
        self._state = state
        self._assigner = assigner if assigner and assigner.handles(resource) else None

    async def run(self, requests: Requests, counters: ResourceCounters) -> list[Allotted]:
        """Return what each container gets. Raises GRPCError if it can't have its devices."""
        started = time.perf_counter()
        name, count = self._resource.name, sum(map(len, requests))
        try:
            cards = await self._check(requests)
            answers = await self._answer(requests, cards)
        except GRPCError as error:
            counters.allocation_errors += 1
            reason = cut(error.message or error.status.name, _LONGEST)
            _log.warning("Allocate %s: %d devices: refused: %s", name, count, reason)
            raise
        for device_ids, answer in zip(requests, answers, strict=True):
            assigned = [card.uuid for card in answer.cards] if self._assigner else ()
            self._state.holders.give(name, device_ids, assigned)
        counters.allocations += 1
        counters.allocated_devices += count
        counters.allocation_seconds.observe(time.perf_counter() - started)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("Allocate %s: %d devices%s", name, count, self._told(cards, answers))
        return answers

    async def _check(self, requests: Requests) -> list[Sequence[Card]]:
        try:
            await apply_call_faults(self._state, self._resource.name, Call.ALLOCATE)
            with as_grpc_errors():
                return [await self._cards(device_ids) for device_ids in requests]
        except GRPCError as error:
            if self._assigner is not None:
                reason = error.message or error.status.name
                await self._assigner.refuse(self._resource, requests, reason)
            raise

    async def _cards(self, device_ids: Sequence[str]) -> list[Card]:
        # Who assigns cards knows which of them it must be; the slots may be of any.
        bad = frozenset[str]() if self._assigner else self._state.unhealthy | self._state.lost
        cards: set[Card] = set()
        for start in range(0, len(device_ids), _AT_ONCE):
            some = device_ids[start : start + _AT_ONCE]
            cards.update(self._resource.cards_of(some, bad))
            await anyio.lowlevel.checkpoint()
        return sorted(cards, key=lambda card: card.index)

    async def _answer(self, requests: Requests, cards: Iterable[Sequence[Card]]) -> list[Allotted]:
        if self._assigner is not None:
            with as_grpc_errors():
                return await self._assigner.assign(self._resource, requests)
        # Slots are the names of their cards; there is nothing to say of units.
        if not self._resource.has_slots:
            return [Allotted({}) for _ in requests]
        names = self._resource.vendor.visible_devices
        return [
            Allotted(dict.fromkeys(names, ",".join(card.visible_as for card in of)), of)
            for of in cards
        ]

    def _told(self, cards: Iterable[Iterable[Card]], answers: Iterable[Allotted]) -> str:
        # Which cards HAMi means, its variables say; the kubelet's slots are any.
        names = [] if self._assigner else [*dict.fromkeys(c.name for of in cards for c in of)]
        where = f" on {', '.join(names)}" if names else ""
        told = (
            " ".join(f"{key}={value}" for key, value in one.variables.items()) for one in answers
        )
        answer = "; ".join(filter(None, told)) or "no variables"
        return f"{cut(where, _LONGEST)}: {cut(answer, _LONGEST)}"


@contextmanager
def as_grpc_errors() -> Iterator[None]:
    """Raise GRPCError in place of DeviceError."""
    try:
        yield
    except (UnhealthyDevice, UnhealthyCard, NotAssigned) as error:
        raise Refusal(Status.FAILED_PRECONDITION, str(error)) from error
    except DeviceError as error:
        raise Refusal(Status.INVALID_ARGUMENT, str(error)) from error


async def apply_call_faults(state: NodeState, resource_name: str, call: Call) -> None:
    """Be as late as the faults of that call say. Raises GRPCError if one says that it fails."""
    faults = state.faults_of(resource_name, call)
    failing = await held_up(faults, lambda: state.faults, state.changes)
    if failing is not None:
        raise Refusal(Status.UNAVAILABLE, f"{resource_name}: {failing.text}")
