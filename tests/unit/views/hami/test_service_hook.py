"""What the device plugin does with somebody who assigns."""

import re
from collections.abc import Collection, Sequence

import anyio
import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from hami_mock.errors import NotAssigned
from hami_mock.kubelet._proto.v1beta1 import (
    AllocateRequest,
    ContainerAllocateRequest,
    ContainerPreferredAllocationRequest,
    PreferredAllocationRequest,
    PreStartContainerRequest,
)
from hami_mock.node.cards import Card
from hami_mock.node.fault import Call, Fault, FaultKind
from hami_mock.node.fault_kinds import BROKEN, LOST, UNHEALTHY
from hami_mock.node.resources import Resource
from hami_mock.views.allotted import Allotted
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.deviceplugin.service import DevicePluginService
from tests.unit.views.hami.rig import count_resource, state_with

GPU = count_resource()
CARD, OTHER = (card.uuid for card in GPU.cards)


class FakeAssigner:
    """Assigns the same to all, or nothing to anybody."""

    def __init__(self, *, handles: bool = True, fails: bool = False) -> None:
        self._handles = handles
        self._fails = fails
        self.refused: list[str] = []

    def handles(self, resource: Resource) -> bool:
        return self._handles

    async def assign(self, resource: Resource, requests: Sequence[Sequence[str]]) -> list[Allotted]:
        if self._fails:
            raise NotAssigned("nothing for you")
        return [Allotted({"ASSIGNED": ",".join(ids)}, resource.cards[1:2]) for ids in requests]

    async def cards_for(self, resource: Resource, sizes: Sequence[int]) -> list[Collection[str]]:
        return [[resource.cards[1].uuid] for _ in sizes]

    async def refuse(
        self, resource: Resource, requests: Sequence[Sequence[str]], reason: str
    ) -> None:
        self.refused.append(reason)


def allocate(
    assigner: FakeAssigner, *device_ids: str, fault: Fault | None = None
) -> tuple[dict[str, str], ResourceCounters]:
    state, counters = state_with(GPU), ResourceCounters()
    if fault:
        state.begin_faults(fault)
    service = DevicePluginService(GPU, state, counters, assigner)
    request = AllocateRequest([ContainerAllocateRequest(list(device_ids))])
    (answer,) = anyio.run(service.allocate, request).container_responses
    return answer.envs, counters


@pytest.mark.parametrize(("handles", "index"), [(True, 1), (False, 0)])
def test_the_slots_of_assigned_cards_are_preferred(handles: bool, index: int) -> None:
    service = DevicePluginService(
        GPU, state_with(GPU), ResourceCounters(), FakeAssigner(handles=handles)
    )
    every = [device_id for card in GPU.cards for device_id in GPU.devices.ids(card)]
    request = PreferredAllocationRequest([ContainerPreferredAllocationRequest(every, [], 1)])
    (answer,) = anyio.run(service.get_preferred_allocation, request).container_responses
    assert answer.device_ids == [f"{GPU.cards[index].uuid}-0"]


def test_what_is_assigned_is_the_answer() -> None:
    variables, counters = allocate(FakeAssigner(), f"{CARD}-3")
    assert variables == {"ASSIGNED": f"{CARD}-3"}
    assert counters.allocations == 1


def test_resources_that_nobody_assigns_are_answered_as_ever() -> None:
    variables, _ = allocate(FakeAssigner(handles=False), f"{CARD}-3")
    assert variables == {"NVIDIA_VISIBLE_DEVICES": CARD}


def test_a_refusal_by_the_assigner_is_the_kubelets_error() -> None:
    assigner = FakeAssigner(fails=True)
    with pytest.raises(GRPCError, match="nothing for you") as caught:
        allocate(assigner, f"{CARD}-3")
    assert caught.value.status is Status.FAILED_PRECONDITION
    assert assigner.refused == []  # it knows


@pytest.mark.parametrize(
    ("device_id", "fault", "reason"),
    [
        ("GPU-x-0", None, "there is no device"),
        (
            f"{CARD}-0",
            Fault(BROKEN, frozenset({GPU.name}), "on command", {"call": Call.ALLOCATE}),
            "on command",
        ),
    ],
)
def test_the_assigner_hears_of_what_went_wrong_without_it(
    device_id: str, fault: Fault | None, reason: str
) -> None:
    assigner = FakeAssigner()
    with pytest.raises(GRPCError, match=reason):
        allocate(assigner, device_id, fault=fault)
    (heard,) = assigner.refused
    assert reason in heard


@pytest.mark.parametrize("kind", [UNHEALTHY, LOST])
def test_whose_slot_it_is_makes_no_difference_to_who_assigns(kind: FaultKind) -> None:
    failed = Fault(kind, frozenset({CARD}))
    variables, counters = allocate(FakeAssigner(), f"{CARD}-0", fault=failed)
    assert (variables, counters.allocations) == ({"ASSIGNED": f"{CARD}-0"}, 1)
    with pytest.raises(GRPCError, match="unhealthy"):
        allocate(FakeAssigner(handles=False), f"{CARD}-0", fault=failed)


@pytest.mark.parametrize("kind", [UNHEALTHY, LOST])
@pytest.mark.parametrize(
    ("handles", "failed", "reason"),
    [
        (True, 0, ""),
        (True, 1, f"the assigned card {OTHER} is unhealthy"),
        (False, 0, f"device '{CARD}-0' is on card {CARD}, which is unhealthy"),
        (False, 1, ""),
    ],
)
def test_a_container_starts_if_the_card_is_well_that_it_was_assigned(
    kind: FaultKind, handles: bool, failed: int, reason: str
) -> None:
    """Its slot is the first card's; whoever assigns has given it the second."""

    async def start(*, known: bool) -> None:
        state = state_with(GPU)
        service = DevicePluginService(GPU, state, ResourceCounters(), FakeAssigner(handles=handles))
        slot = f"{CARD}-0"
        if known:
            await service.allocate(AllocateRequest([ContainerAllocateRequest([slot])]))
        state.begin_faults(Fault(kind, frozenset({GPU.cards[failed].uuid})))
        await service.pre_start_container(PreStartContainerRequest([slot]))

    async def starts() -> None:
        if reason:
            with pytest.raises(GRPCError, match=re.escape(reason)) as caught:
                await start(known=True)
            assert caught.value.status is Status.FAILED_PRECONDITION
        else:
            await start(known=True)

    async def starts_unknown() -> None:
        if failed == 0:
            with pytest.raises(GRPCError, match=f"is on card {CARD}"):
                await start(known=False)
        else:
            await start(known=False)

    anyio.run(starts)
    anyio.run(starts_unknown)


@pytest.mark.parametrize(("handles", "index"), [(True, 1), (False, 0)])
def test_a_container_gets_what_goes_with_the_cards_that_are_assigned(
    handles: bool, index: int
) -> None:
    def gives(cards: Sequence[Card]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        return [("/root/lib", "/usr/lib")], [(f"/root/{card.minor}", "/dev/0") for card in cards]

    state, assigner = state_with(GPU), FakeAssigner(handles=handles)
    service = DevicePluginService(GPU, state, ResourceCounters(), assigner, gives)
    request = AllocateRequest([ContainerAllocateRequest([f"{GPU.cards[0].uuid}-0"])])
    (answer,) = anyio.run(service.allocate, request).container_responses
    (mount,) = answer.mounts
    assert (mount.host_path, mount.container_path) == ("/root/lib", "/usr/lib")
    assert mount.read_only
    (device,) = answer.devices
    assert (device.host_path, device.container_path) == (f"/root/{index}", "/dev/0")
    assert device.permissions == "rw"
