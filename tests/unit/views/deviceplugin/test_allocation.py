"""Allocate as one call: what the log and the state have of it afterwards."""

import logging

import anyio
import pytest
from grpclib.exceptions import GRPCError

from hami_mock.node.cards import Card
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import UNHEALTHY
from hami_mock.node.state import NodeState
from hami_mock.views.deviceplugin.allocation import Allocation
from hami_mock.views.deviceplugin.counters import ResourceCounters
from tests.unit.builders import laid_out, resource_named

GPU, GPUMEM = "nvidia.com/gpu", "nvidia.com/gpumem"


@pytest.fixture
def state() -> NodeState:
    state = NodeState(laid_out(None))
    state.holders.name([])
    return state


def cards_of(state: NodeState) -> tuple[Card, ...]:
    return resource_named(state.node, GPU).cards


def allocate(state: NodeState, name: str, *requests: list[str]) -> None:
    allocation = Allocation(resource_named(state.node, name), state, None)
    anyio.run(allocation.run, requests, ResourceCounters())


def test_a_call_is_one_line_with_resource_count_cards_and_answer(
    state: NodeState, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, *_ = cards_of(state)
    with caplog.at_level(logging.DEBUG, logger="hami_mock"):
        allocate(state, GPU, [f"{first.uuid}-0", f"{second.uuid}-0"], [f"{second.uuid}-1"])
        memory = resource_named(state.node, GPUMEM)
        allocate(state, GPUMEM, [*memory.devices.ids(first)][:300])
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "DEBUG",
            f"Allocate {GPU}: 3 devices on nvidia/0, nvidia/1: NVIDIA_VISIBLE_DEVICES="
            f"{first.uuid},{second.uuid}; NVIDIA_VISIBLE_DEVICES={second.uuid}",
        ),
        ("DEBUG", f"Allocate {GPUMEM}: 300 devices on nvidia/0: no variables"),
    ]


def test_a_refused_call_is_a_warning(state: NodeState, caplog: pytest.LogCaptureFixture) -> None:
    first, *_ = cards_of(state)
    state.begin_faults(Fault(UNHEALTHY, frozenset({first.uuid})))
    caplog.clear()
    with pytest.raises(GRPCError):
        allocate(state, GPU, [f"{first.uuid}-0"])
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        f"Allocate {GPU}: 1 devices: refused: {GPU}: device '{first.uuid}-0' is on card "
        f"{first.uuid}, which is unhealthy"
    )
    assert state.holders.ids == set()


def test_no_line_is_longer_than_people_read(
    state: NodeState, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(GRPCError):
        allocate(state, GPU, ["x" * 100_000])
    assert len(caplog.messages[0]) < 500


def test_devices_are_held_from_the_answer_on(state: NodeState) -> None:
    first, *_ = cards_of(state)
    allocate(state, GPU, [f"{first.uuid}-0"], [f"{first.uuid}-1"])
    assert state.holders.ids == {f"{first.uuid}-0", f"{first.uuid}-1"}
    assert [holding.devices for holding in state.holdings()[first.uuid]] == [{GPU: 1}, {GPU: 1}]
