"""What a node's state makes of the state file."""

import json
from pathlib import Path
from typing import Any

import pytest

from hami_mock.hami.kinds import MIG_ALLOCATIONS
from hami_mock.kubelet.holder import Holder
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import DEGRADED, LOST, UNHEALTHY
from hami_mock.node.holders import Load
from hami_mock.node.pods import Pod
from hami_mock.node.readings import Throttle
from hami_mock.node.state import NodeState
from hami_mock.node.xid import describe
from hami_mock.views.driver.card_records import pid_of
from hami_mock.views.driver.messages import OPERATIONS
from hami_mock.views.driver.setters import Setters
from tests.unit.builders import laid_out
from tests.unit.views.driver.reading import (
    card,
    driver_cards,
    events,
    header,
    live,
    node_state,
    sequences,
    shown_in,
)
from tests.unit.views.exporters.rig import reading
from tests.unit.views.hami.rig import segment

MIB = 2**20
POD = ("ns", "train-0", "main")
ALLOCATED = "hami.io/vgpu-devices-allocated"


def read(state: NodeState, **values: Any) -> None:
    state.readings = {each.uuid: reading(each, **values) for each in state.node.cards}


def hold(state: NodeState, container: tuple[str, str, str], index: int, slot: int = 0) -> str:
    """Let a container hold a slot of a card; return the card's UUID."""
    uuid = state.node.cards[index].uuid
    holders = [each for each in state.holders.all or () if each.container != container]
    held = Holder(container, {"nvidia.com/gpu": (f"{uuid}-{slot}",)})
    state.holders.name([*holders, held])
    return uuid


def test_numbers_are_those_of_the_reading(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=1)
    numbers = {"busy": 63.4, "tensor": 0.1234, "dram": 0.00005, "temperature": 61.6}
    read(state, **numbers, power=251.25, last_xid=31, energy=123_456)
    shown_in(tmp_path, state)
    found, now = live(tmp_path, 0), state.readings[state.node.cards[0].uuid]
    assert (found["gpu"], found["power"], found["temperature"]) == (63, 251_250, 62)
    assert (found["last_xid"], found["energy"]) == (31, 123_456)
    assert (found["tensor"], found["dram"]) == (1234, 0)
    memory = found["memory_used"], found["memory_reserved"], found["memory_free"]
    assert memory == tuple(
        mib * MIB for mib in (now.memory_used, now.memory_reserved, now.memory_free)
    )
    assert sum(memory) == card(tmp_path, 0)["identity"]["memory_total"]
    assert (found["sm_clock"], found["memory_clock"]) == (now.sm_clock, now.memory_clock)
    assert (found["lost"], found["recovery_action"], found["process_count"]) == (0, 0, 0)


def test_a_card_that_was_not_read_yet_is_idle(tmp_path: Path) -> None:
    shown_in(tmp_path, node_state(nvidia_cards=1, nvidia_model="T4"))
    found = live(tmp_path, 0)
    assert (found["gpu"], found["memory_used"], found["performance_state"]) == (0, 0, 8)
    assert found["power"] == 9100
    assert found["clock_reasons"] == 1


def test_reasons_of_low_clocks_are_bits(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=1)
    throttles = frozenset({Throttle.HARDWARE_THERMAL, Throttle.POWER_CAP})
    read(state, throttles=throttles)
    shown_in(tmp_path, state)
    assert live(tmp_path, 0)["clock_reasons"] == 0x4C


def test_policies_count_the_time_that_they_held_clocks_back(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=1)
    held = {
        frozenset({Throttle.POWER_CAP}): 1.5,
        frozenset({Throttle.SOFTWARE_THERMAL, Throttle.HARDWARE}): 2.0,
        frozenset({Throttle.IDLE}): 4.0,
    }
    read(state, held=held)
    shown_in(tmp_path, state)
    seconds = [each / 1e9 for each in live(tmp_path, 0)["violations"]]
    # Power, heat, -, the board, low use; and in all, below the clocks of applications and of base.
    assert seconds == [1.5, 2.0, 0, 2.0, 4.0, 0, 0, 0, 0, 0, 7.5, 6.0]


@pytest.mark.parametrize("ever", [False, True])
def test_errors_of_memory_are_counted_anew_once_they_are_cleared(
    tmp_path: Path, ever: bool
) -> None:
    state = node_state(nvidia_cards=1)
    read(state, ecc_errors=5, corrected_errors=3)
    file, cards = shown_in(tmp_path, state)
    asked = {"operation": OPERATIONS["CLEAR_ECC_ERRORS"], "values": (int(ever), 0)}
    assert Setters(state, cards).do(state.node.cards[0], asked) == {"result": 0}
    read(state, ecc_errors=6, corrected_errors=3)
    cards.keep_up(file)
    found = live(tmp_path, 0)
    names = "ecc_dram_corrected", "ecc_dram_uncorrected"
    cleared, other = ("_ever", "") if ever else ("", "_ever")
    assert [found[name + cleared] for name in names] == [0, 1]
    assert [found[name + other] for name in names] == [3, 6]
    # Another configuration is no reason to count them again.
    after = driver_cards(state)
    after.take_over(cards)
    file.show(after.shown())
    found = live(tmp_path, 0)
    assert [found[name + cleared] for name in names] == [0, 1]


def test_a_power_limit_is_there_before_the_load_knows(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=2)
    read(state)
    file, cards = shown_in(tmp_path, state)
    state.limit_power(state.node.cards[1], 175.5)
    assert cards.keep_up(file) == 1
    found = live(tmp_path, 1)
    assert (found["power_limit"], found["power_limit_enforced"]) == (175_500, 175_500)


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=3)
    read(state)
    file, cards = shown_in(tmp_path, state)
    assert cards.keep_up(file) == 0
    second = state.node.cards[1]
    state.readings = {**state.readings, second.uuid: reading(second, busy=99.0)}
    assert cards.keep_up(file) == 1
    assert sequences(tmp_path, 3) == [0, 2, 0]
    assert [live(tmp_path, index)["gpu"] for index in range(3)].index(99) == 1


def test_each_container_is_a_process_with_its_load(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=2)
    read(state, busy=80.0, memory_busy=8.0)
    uuid = hold(state, POD, 0)
    hold(state, ("ns", "a", "b"), 0, slot=1)
    state.loads = {(uuid, POD): Load(60, 1000)}
    file, cards = shown_in(tmp_path, state)
    found = live(tmp_path, 0)
    idle, busy = found["processes"][: found["process_count"]]
    assert (busy["name"], busy["sm"], busy["memory"]) == ("ns/train-0/main", 60, 1000 * MIB)
    assert (busy["memory_busy"], busy["type"]) == (6, 1)
    assert (idle["name"], idle["sm"], idle["memory"]) == ("ns/a/b", 0, 0)
    assert live(tmp_path, 1)["process_count"] == 0
    # It ends, and its numbers go with it.
    state.holders.name([])
    cards.keep_up(file)
    assert live(tmp_path, 0)["process_count"] == 0
    assert live(tmp_path, 0)["processes"][0]["pid"] == 0


def test_a_container_has_one_pid_on_all_of_its_cards(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=2)
    uuids = [each.uuid for each in state.node.cards[:2]]
    state.holders.name([Holder(POD, {"nvidia.com/gpu": tuple(f"{u}-0" for u in uuids)})])
    shown_in(tmp_path, state)
    first, second = (live(tmp_path, index)["processes"][0] for index in range(2))
    assert first["pid"] == second["pid"] == pid_of("ns/train-0/main", set())
    assert 100_000 <= first["pid"] < 4_194_304


def test_two_containers_of_a_card_never_share_a_pid() -> None:
    taken: set[int] = set()
    assert pid_of("a", taken) + 1 == pid_of("a", taken)


@pytest.mark.parametrize(("xid", "action", "lost"), [(79, 2, 1), (119, 2, 0), (94, 1, 0)])
def test_a_xid_is_an_event_and_says_what_to_do(
    tmp_path: Path, xid: int, action: int, lost: int
) -> None:
    state = node_state(nvidia_cards=2)
    read(state)
    file, cards = shown_in(tmp_path, state)
    second = state.node.cards[1]
    state.count_xid([second], xid)
    fault = Fault(UNHEALTHY, frozenset({second.uuid}), describe(xid))
    state.begin_faults(fault)
    cards.keep_up(file)
    assert events(tmp_path) == [(1, 1, 8, xid)]
    found = live(tmp_path, 1)
    assert (found["last_xid"], found["recovery_action"], found["lost"]) == (xid, action, lost)
    assert cards.is_lost(second) == bool(lost)
    assert live(tmp_path, 0)["lost"] == 0
    state.end_faults(fault)
    cards.keep_up(file)
    assert (live(tmp_path, 1)["recovery_action"], live(tmp_path, 1)["lost"]) == (0, 0)
    assert len(events(tmp_path)) == 1


def test_only_an_error_of_the_card_itself_loses_it(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=1)
    file, cards = shown_in(tmp_path, state)
    target = frozenset({state.node.cards[0].uuid})
    state.begin_faults(
        Fault(DEGRADED, target, "as before Xid 79"), Fault(UNHEALTHY, target, "Xid 790")
    )
    cards.keep_up(file)
    assert live(tmp_path, 0)["lost"] == 0


def test_each_of_several_xids_is_an_event(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=2)
    file, cards = shown_in(tmp_path, state)
    state.count_xid(state.node.cards[:2], 31)
    state.count_xid(state.node.cards[:1], 31)
    state.count_xid(state.node.cards[:1], 48)
    cards.keep_up(file)
    # A double bit error is an event of its own, too.
    assert [each[1:] for each in events(tmp_path)] == [
        (0, 8, 31), (0, 8, 31), (1, 8, 31), (0, 8, 48), (0, 2, 48),
    ]  # fmt: skip


def test_xids_from_before_the_view_began_are_no_news(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=1)
    state.count_xid(state.node.cards[:1], 31)
    file, cards = shown_in(tmp_path, state)
    cards.keep_up(file)
    assert events(tmp_path) == []


def test_a_lost_card_keeps_what_it_showed_last(tmp_path: Path) -> None:
    state = node_state(nvidia_cards=1)
    read(state, busy=50.0)
    uuid = hold(state, POD, 0)
    file, cards = shown_in(tmp_path, state)
    state.begin_faults(Fault(LOST, frozenset({uuid})))
    state.readings = {}
    cards.keep_up(file)
    found = live(tmp_path, 0)
    assert (found["lost"], found["gpu"], found["process_count"]) == (1, 50, 0)


def test_what_hami_has_cut_for_a_pod_is_there_while_the_pod_is(tmp_path: Path) -> None:
    state = node_state(hami="on", nvidia_model="A100-SXM4-40GB", nvidia_mode="mig")
    file, cards = shown_in(tmp_path, state)
    assert live(tmp_path, 0)["mig_mode"] == 0
    uuid = hold(state, POD, 0)
    made = {
        "containerIndex": 0, "gpuUUID": uuid, "profile": "2g.10gb", "migUUID": "MIG-of-hami",
        "placement": {"start": 2, "size": 2}, "gpuInstanceID": 5,
    }  # fmt: skip
    told = {ALLOCATED: segment(uuid), MIG_ALLOCATIONS: json.dumps([made])}
    asked = {"main": {"nvidia.com/gpu": 1}}
    state.pods[POD[:2]] = Pod(
        *POD[:2], annotations=told, containers=("main",), requests=asked
    )  # fmt: skip
    cards.keep_up(file)
    found = live(tmp_path, 0)
    assert found["mig_mode"] == 1
    (part,) = [each for each in found["gpu_instances"] if each["used"]]
    assert (part["id"], part["start"], part["size"]) == (5, 2, 2)
    (device,) = [each for each in found["compute_instances"] if each["used"]]
    assert (device["uuid"], device["gpu_instance"]) == ("MIG-of-hami", 5)
    (process,) = [each for each in found["processes"] if each["pid"]]
    assert (process["gpu_instance"], process["compute_instance"]) == (5, 0)
    state.pods.clear()
    state.holders.name([])
    cards.keep_up(file)
    found = live(tmp_path, 0)
    assert (found["mig_mode"], [each for each in found["gpu_instances"] if each["used"]]) == (0, [])


def test_cards_of_other_makers_are_not_shown(tmp_path: Path) -> None:
    state = NodeState(laid_out(None, nvidia_cards=0))
    assert state.node.cards
    file, _ = shown_in(tmp_path, state)
    file.close()
    assert header(tmp_path)["card_count"] == 0
