"""Who holds how much of which card: by the kubelet's IDs, and by HAMi's word."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hami_mock.hami.kinds import MIG_ALLOCATIONS
from hami_mock.kubelet.holder import Container, Holder
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import LOST
from hami_mock.node.holders import Holding, Load
from hami_mock.node.pods import Pod
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.vendors import Role
from tests.makers import BY_WORD
from tests.unit.builders import laid_out, resource_named, unit_resource
from tests.unit.views.hami.rig import count_resource, segment, state_with

GPU, GPUMEM, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
PERCENT = "nvidia.com/gpumem-percentage"
ALLOCATED = "hami.io/vgpu-devices-allocated"
ONE: Container = ("default", "a", "main")
NVIDIA = {"nvidia_memory": 1000, "mlu_cards": 0, "iluvatar_cards": 0, "ascend_cards": 0}


@pytest.fixture
def state() -> NodeState:
    return NodeState(laid_out(None, hami="on", **NVIDIA))


def slots(state: NodeState, *indexes: int, first: int = 0, resource: str = GPU) -> list[str]:
    of = resource_named(state.node, resource).cards
    return [f"{of[index].uuid}-{first + i}" for i, index in enumerate(indexes)]


def units(state: NodeState, name: str, count: int, card: int = 0) -> list[str]:
    resource = resource_named(state.node, name)
    return [*resource.devices.ids(resource.cards[card])][:count]


def hold(state: NodeState, devices: Mapping[str, Sequence[str]], who: Container = ONE) -> None:
    before = [held for held in state.holders.all or () if held.container != who]
    state.holders.name([*before, Holder(who, devices)])


def assign(
    state: NodeState,
    text: str,
    *containers: str,
    name: str = "a",
    init: Sequence[str] = (),
    asking: Sequence[str] | None = None,
    annotation: str = ALLOCATED,
    resource: str = GPU,
) -> None:
    """Let HAMi assign; those that aren't `asking` want nothing (None: all ask)."""
    names = containers or ("main",)
    wanting = (*init, *names) if asking is None else asking
    state.pods["default", name] = Pod(
        "default",
        name,
        annotations={annotation: text},
        init_containers=tuple(init),
        containers=names,
        requests={each: {resource: 1} for each in wanting},
    )


def held(state: NodeState) -> dict[int, list[tuple[str, int, int, int]]]:
    """Card → container, memory, cores and slots of each holder."""
    return {
        card.index: [
            (usage.container[2], usage.memory_limit, usage.cores_limit, usage.slots)
            for usage in state.usages(card)
        ]
        for card in state.node.cards
        if state.usages(card)
    }


# By the kubelet's IDs.


def test_slots_alone_are_the_whole_card(state: NodeState) -> None:
    hold(state, {GPU: slots(state, 1)})
    assert held(state) == {1: [("main", 1000, 100, 1)]}


def test_units_say_how_much_wherever_the_kubelet_found_them(state: NodeState) -> None:
    on_both = [*units(state, GPUMEM, 200), *units(state, GPUMEM, 100, card=1)]
    hold(state, {GPU: slots(state, 1), GPUMEM: on_both, CORES: units(state, CORES, 30)})
    assert held(state) == {1: [("main", 300, 30, 1)]}
    (holding,) = state.holdings()[state.node.cards[1].uuid]
    assert holding.devices == {GPU: 1, GPUMEM: 300, CORES: 30}


def test_two_cards_have_as_much_each(state: NodeState) -> None:
    hold(state, {GPU: slots(state, 0, 1), GPUMEM: units(state, GPUMEM, 300)})
    assert held(state) == {0: [("main", 300, 100, 1)], 1: [("main", 300, 100, 1)]}


def test_two_slots_of_a_card_have_twice_as_much_but_no_more_than_there_is(
    state: NodeState,
) -> None:
    hold(state, {GPU: slots(state, 0, 0), GPUMEM: units(state, GPUMEM, 300)})
    assert held(state) == {0: [("main", 600, 100, 2)]}
    hold(state, {GPU: slots(state, 0, 0), GPUMEM: units(state, GPUMEM, 700)})
    assert held(state) == {0: [("main", 1000, 100, 2)]}


def test_a_percentage_is_of_the_card_and_mib_count_more() -> None:
    state = NodeState(laid_out(None, **NVIDIA))
    half = units(state, PERCENT, 50)
    hold(state, {GPU: slots(state, 0), PERCENT: half})
    assert held(state) == {0: [("main", 500, 100, 1)]}
    hold(state, {GPU: slots(state, 0), PERCENT: half, GPUMEM: units(state, GPUMEM, 20)})
    assert held(state) == {0: [("main", 20, 100, 1)]}


def test_a_unit_may_be_many_mib() -> None:
    state = NodeState(laid_out(None, **{**NVIDIA, "nvidia_memory_factor": 100}))
    hold(state, {GPU: slots(state, 0), GPUMEM: units(state, GPUMEM, 3)})
    assert held(state) == {0: [("main", 300, 100, 1)]}


def test_without_slots_the_ids_of_units_decide(state: NodeState) -> None:
    on_both = [*units(state, GPUMEM, 200), *units(state, GPUMEM, 100, card=1)]
    hold(state, {GPUMEM: on_both, CORES: units(state, CORES, 30, card=1)})
    assert held(state) == {0: [("main", 200, 100, 0)], 1: [("main", 100, 30, 0)]}


def test_cores_that_are_no_percent_become_some() -> None:
    flags = {"mlu_cards": 0, "iluvatar_cards": 0, "nvidia_cards": 0, "ascend_cards": 0}
    state = NodeState(laid_out(None, hami="on", **{**flags, "awsneuron_cards": 1}))
    (cores,) = (r for r in state.node.resources if r.offer.role is Role.CORES)
    assert cores.offer.per_card != 100
    hold(state, {cores.name: units(state, cores.name, 1)})
    ((_, _, percent, _),) = held(state)[0]
    assert percent == -(-100 // cores.count)


def test_containers_are_sorted_and_each_is_there_once(state: NodeState) -> None:
    state.holders.name(
        [
            Holder(("default", "b", "main"), {GPU: slots(state, 0, first=1)}),
            Holder(("default", "a", "z"), {GPU: slots(state, 0, first=2)}),
            Holder(("default", "a", "b"), {GPU: slots(state, 0, first=3)}),
            Holder(("default", "a", "b"), {GPU: slots(state, 0, first=4)}),
        ]
    )
    found = [usage.container for usage in state.usages(state.node.cards[0])]
    assert found == [("default", "a", "b"), ("default", "a", "z"), ("default", "b", "main")]


def test_what_has_no_name_is_held_but_no_usage(state: NodeState) -> None:
    state.holders.name([])
    state.holders.give(GPU, slots(state, 0))
    first = state.node.cards[0]
    assert state.holdings()[first.uuid] == [Holding(None, {GPU: 1}, 1000, 100, 1)]
    assert state.usages(first) == []


def test_what_has_no_name_is_on_the_card_that_it_was_given_for(state: NodeState) -> None:
    state.holders.name([])
    first, second = state.node.cards
    state.holders.give(GPU, slots(state, 0, 0, 1), [second.uuid, second.uuid, first.uuid])
    assert state.holdings() == {
        first.uuid: [Holding(None, {GPU: 1}, 1000, 100, 1)],
        second.uuid: [Holding(None, {GPU: 2}, 1000, 100, 2)],
    }


def test_the_load_is_that_of_the_container_on_the_card(state: NodeState) -> None:
    first, second = state.node.cards
    hold(state, {GPU: slots(state, 0, 1)})
    state.loads[first.uuid, ONE] = Load(busy=30, memory=4)
    assert [usage.load for usage in state.usages(first)] == [Load(30, 4)]
    assert [usage.load for usage in state.usages(second)] == [Load()]


def test_where_the_kubelet_cannot_be_asked_nobody_holds_anything(state: NodeState) -> None:
    state.holders.name(None)
    assert state.holdings() == {}


# By HAMi's word.


def test_the_assigned_card_and_amounts_beat_the_slots(state: NodeState) -> None:
    second = state.node.cards[1].uuid
    hold(state, {GPU: slots(state, 0), GPUMEM: units(state, GPUMEM, 300), CORES: []})
    assign(state, segment(second, memory=250, cores=20))
    assert held(state) == {1: [("main", 250, 20, 1)]}
    (holding,) = state.holdings()[second]
    assert holding.devices == {GPU: 1, GPUMEM: 300, CORES: 0}


def test_no_part_is_the_whole_card(state: NodeState) -> None:
    hold(state, {GPU: slots(state, 0)})
    assign(state, segment(state.node.cards[1].uuid, memory=0, cores=0))
    assert held(state) == {1: [("main", 1000, 100, 1)]}


def test_several_cards_of_a_container(state: NodeState) -> None:
    first, second = (card.uuid for card in state.node.cards)
    hold(state, {GPU: slots(state, 0, 0, 0)})
    assign(state, segment(first, second, second, memory=100, cores=60))
    assert held(state) == {0: [("main", 100, 60, 1)], 1: [("main", 200, 100, 2)]}


def test_each_container_of_a_pod_has_its_own(state: NodeState) -> None:
    first, second = (card.uuid for card in state.node.cards)
    for number, name in enumerate(("one", "two")):
        hold(state, {GPU: slots(state, 0, first=number)}, ("default", "a", name))
    assign(state, segment(second, memory=100) + segment(first, memory=200), "one", "two")
    assert held(state) == {0: [("two", 200, 30, 1)], 1: [("one", 100, 30, 1)]}


@pytest.mark.parametrize("text", [";;{}", ";{}", "{}", ";;{};", "{};;"])
def test_containers_without_devices_may_have_a_segment_or_none(state: NodeState, text: str) -> None:
    """HAMi's scheduler writes one too few where the first container has none."""
    second = state.node.cards[1].uuid
    hold(state, {GPU: slots(state, 0)}, ("default", "a", "last"))
    assign(state, text.format(segment(second)), "plain", "other", "last", asking=["last"])
    assert held(state) == {1: [("last", 3000, 30, 1)]}


@pytest.mark.parametrize("is_there", [True, False])
def test_init_containers_come_first_and_may_be_gone(state: NodeState, is_there: bool) -> None:
    """One that has ended isn't in the kubelet's list any more; a sidecar stays."""
    first, second = (card.uuid for card in state.node.cards)
    if is_there:
        hold(state, {GPU: slots(state, 1)}, ("default", "a", "before"))
    hold(state, {GPU: slots(state, 1)})
    text = segment(first, memory=100) + segment(second, memory=200)
    assign(state, text, init=["before"])
    expected = {1: [("main", 200, 30, 1)]}
    assert held(state) == ({0: [("before", 100, 30, 1)]} if is_there else {}) | expected


def test_where_requests_are_not_known_the_place_decides(state: NodeState) -> None:
    second = state.node.cards[1].uuid
    hold(state, {GPU: slots(state, 0)}, ("default", "a", "last"))
    assign(state, f";{segment(second)}", "first", "last", asking=[])
    assert held(state) == {1: [("last", 3000, 30, 1)]}


def test_a_container_that_ended_and_runs_again_is_the_same(state: NodeState) -> None:
    assign(state, segment(state.node.cards[1].uuid))
    for _ in range(2):
        hold(state, {GPU: slots(state, 0)})
        assert held(state) == {1: [("main", 3000, 30, 1)]}
        state.holders.name([])
        assert held(state) == {}


def test_a_pod_of_the_same_name_has_its_own_assignment(state: NodeState) -> None:
    hold(state, {GPU: slots(state, 0)})
    assign(state, segment(state.node.cards[1].uuid))
    assert list(held(state)) == [1]
    assign(state, segment(state.node.cards[0].uuid))
    assert list(held(state)) == [0]
    del state.pods["default", "a"]
    assert held(state) == {0: [("main", 1000, 100, 1)]}


@pytest.mark.parametrize(
    "text", ["GPU-1,NVIDIA,x,0:;", "GPU-1:;GPU-1,NVIDIA,1:;", "{A}{A}", "x" * 300_000 + ","]
)
def test_what_cannot_be_read_is_told_once_and_passed_over(
    state: NodeState, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    text = text.replace("{A}", segment(state.node.cards[1].uuid))
    hold(state, {GPU: slots(state, 0)})
    assign(state, text)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert held(state) == {0: [("main", 1000, 100, 1)]}
            state.holders.name([])
            hold(state, {GPU: slots(state, 0)})
            assign(state, text)
    (record,) = caplog.records
    assert record.getMessage().startswith("pod default/a: ignoring what HAMi assigned: ")
    assert len(record.getMessage()) < 500


def test_a_card_that_is_not_there_is_no_assignment(state: NodeState) -> None:
    hold(state, {GPU: slots(state, 0)})
    assign(state, segment("GPU-nobody-has-this"))
    assert held(state) == {0: [("main", 1000, 100, 1)]}


def test_nobody_gets_a_card_by_writing_so_on_a_pod(state: NodeState) -> None:
    """The container holds something, but no slot of the resource that it says."""
    hold(state, {"other.com/device": ["1"]})
    assign(state, segment(state.node.cards[1].uuid))
    assert held(state) == {}


def test_without_hami_its_annotations_mean_nothing() -> None:
    state = NodeState(laid_out(None, **NVIDIA))
    hold(state, {GPU: slots(state, 0)})
    assign(state, segment(state.node.cards[1].uuid))
    assert held(state) == {0: [("main", 1000, 100, 1)]}


def test_a_vendor_that_takes_the_kubelets_word_keeps_it() -> None:
    whole = BY_WORD["Metax-GPU"]
    state = state_with(count_resource(whole, split=1))
    name = whole.resources.count
    hold(state, {name: slots(state, 0, resource=name)})
    uuid = state.node.cards[1].uuid
    assign(state, segment(uuid), annotation=whole.pods.allocated, resource=name)
    assert list(held(state)) == [0]


def test_cards_that_hami_numbers_stay_the_same_when_one_is_lost() -> None:
    mlu = BY_WORD["MLU"]
    state = state_with(count_resource(mlu))
    name = mlu.resources.count
    hold(state, {name: slots(state, 0, resource=name)})
    text = segment("node-a-cambricon-mlu-1", word="MLU")
    assign(state, text, annotation=mlu.pods.allocated, resource=name)
    assert list(held(state)) == [1]
    state.begin_faults(Fault(LOST, frozenset({state.node.cards[0].uuid})))
    assert list(held(state)) == [1]


def test_slices_of_a_card_are_one_device() -> None:
    enflame = BY_WORD["Enflame"]
    state = state_with(count_resource(enflame))
    name = enflame.resources.count
    hold(state, {name: slots(state, 0, 0, 0, resource=name)})
    device = enflame.scheduling.device_id.format(node="node-a", index=1)
    text = segment(device, word="Enflame", memory=700)
    assign(state, text, annotation=enflame.pods.allocated, resource=name)
    assert held(state) == {1: [("main", 700, 30, 3)]}


def test_compute_units_are_a_percentage_of_the_cards() -> None:
    amd = BY_WORD["AMD"]
    state = state_with(count_resource(amd))
    name = amd.resources.count
    hold(state, {name: slots(state, 0, resource=name)})
    text = segment(state.node.cards[1].uuid, word="AMD Instinct MI300X", cores=76)
    assign(state, text, annotation=amd.pods.allocated, resource=name)
    assert held(state) == {1: [("main", 3000, 25, 1)]}


def test_a_companion_knows_the_cards_from_hami_alone() -> None:
    """The slots are a real plugin's; only units are ours, and of any card."""
    memory = unit_resource([1000, 1000])
    state = NodeState(Node("node-a", memory.cards, (memory,)))
    devices: dict[str, Any] = {GPU: ["GPU-real-1"], GPUMEM: units(state, GPUMEM, 300)}
    hold(state, devices)
    assert held(state) == {0: [("main", 300, 100, 0)]}
    assign(state, segment(memory.cards[1].uuid, memory=300))
    assert held(state) == {1: [("main", 300, 30, 1)]}
    hold(state, {GPUMEM: devices[GPUMEM]})
    assert held(state) == {0: [("main", 300, 100, 0)]}, "without a slot it has no card"


def test_they_are_made_anew_only_after_a_change(state: NodeState) -> None:
    hold(state, {GPU: slots(state, 0)})
    assign(state, segment(state.node.cards[1].uuid))
    first = state.holdings()
    assert state.holdings() is first
    state.pods["default", "other"] = Pod("default", "other")
    second = state.holdings()
    assert second is not first
    state.changes.send()
    assert state.holdings() is not second


def test_cards_that_are_gone_are_held_by_nobody(state: NodeState) -> None:
    hold(state, {GPU: slots(state, 0, 1)})
    state.change(laid_out(None, hami="on", **{**NVIDIA, "nvidia_cards": 1}))
    assert held(state) == {0: [("main", 1000, 100, 1)]}


def test_a_container_is_known_by_the_name_that_hamis_library_has(state: NodeState) -> None:
    first, second = (card.uuid for card in state.node.cards)
    for number, name in enumerate(("one", "two")):
        hold(state, {GPU: slots(state, 0, first=number)}, ("default", "a", name))
    assign(state, segment(second) + segment(first), "one", "two")
    state.pods["default", "a"] = replace(state.pods["default", "a"], uid="uid-1")
    owners = {
        usage.container[2]: usage.owner for card in state.node.cards for usage in state.usages(card)
    }
    assert owners == {"one": "uid-1_0", "two": "uid-1_1"}


# Cards that are cut.


def allocation(container: int, card: str, start: int, **more: Any) -> dict[str, Any]:
    """An instance as HAMi's plugin writes it on the pod."""
    return {
        "containerIndex": container,
        "gpuUUID": card,
        "profile": "1g.5gb",
        "placement": {"start": start, "size": 1},
        "migUUID": f"MIG-{start}",
        "gpuInstanceID": start + 1,
        **more,
    }


@pytest.fixture
def cut() -> NodeState:
    return NodeState(laid_out(None, hami="on", nvidia_model="A100-SXM4-40GB", nvidia_mode="mig"))


def cut_for(state: NodeState, text: str, rows: object, *containers: str) -> dict[str, list[str]]:
    """Let HAMi cut cards for a pod; return the UUIDs of each container's instances."""
    for number, name in enumerate(containers):
        hold(state, {GPU: slots(state, 0, first=number)}, ("default", "a", name))
    assign(state, text, *containers)
    pod = state.pods["default", "a"]
    told = {**pod.annotations, MIG_ALLOCATIONS: json.dumps(rows)}
    state.pods["default", "a"] = replace(pod, annotations=told)
    return {
        usage.container[2]: [instance.uuid for instance in usage.instances]
        for card in state.node.cards
        for usage in state.usages(card)
    }


def test_each_container_has_its_instances_of_a_card_that_is_cut(cut: NodeState) -> None:
    card = next(card for card in cut.node.cards if card.vendor.has_xids).uuid
    rows = [allocation(1, card, 4), allocation(0, card, 6), allocation(1, card, 5)]
    text = segment(card) + segment(card, card)
    assert cut_for(cut, text, rows, "one", "two") == {"one": ["MIG-6"], "two": ["MIG-4", "MIG-5"]}
    (one, _) = cut.usages(cut.cards[card])
    (instance,) = one.instances
    assert (instance.memory, instance.cores) == (4864, 15)
    assert (instance.start, instance.gpu_instance, instance.compute_instance) == (6, 7, 0)


def test_what_no_card_can_be_cut_into_is_no_instance(cut: NodeState) -> None:
    card = next(card for card in cut.node.cards if card.vendor.has_xids).uuid
    rows = [
        allocation(0, card, 0, migUUID=""),
        allocation(0, card, 1, profile="9g.5gb"),
        allocation(0, "GPU-other", 2),
        allocation(5, card, 3),
    ]
    assert cut_for(cut, segment(card), rows, "main") == {"main": []}


def test_instances_that_nobody_can_read_are_passed_over(
    cut: NodeState, caplog: pytest.LogCaptureFixture
) -> None:
    card = next(card for card in cut.node.cards if card.vendor.has_xids).uuid
    assert cut_for(cut, segment(card), {"no": "list"}, "main") == {"main": []}
    assert "ignoring what HAMi assigned" in caplog.text


def test_instances_that_come_after_the_assignment_are_seen(cut: NodeState) -> None:
    """The scheduler reserves them; the plugin writes their names when it has made them."""
    card = next(card for card in cut.node.cards if card.vendor.has_xids).uuid
    assert cut_for(cut, segment(card), [allocation(0, card, 2, migUUID="")], "main") == {"main": []}
    assert cut_for(cut, segment(card), [allocation(0, card, 2)], "main") == {"main": ["MIG-2"]}


def test_instances_of_hamis_are_what_the_driver_shows(cut: NodeState) -> None:
    card = next(card for card in cut.node.cards if card.vendor.has_xids)
    assert cut.cut_of(card) is None
    cut_for(cut, segment(card.uuid), [allocation(0, card.uuid, 2)], "main")
    shown = cut.cut_of(card)
    assert shown is not None
    (part,) = shown.parts
    assert (part.id, part.profile.name, part.start) == (3, "1g.5gb", 2)
    assert [compute.uuid for compute in part.computes] == ["MIG-2"]


# By what pods ask for, where units stand in the Node's status.


@pytest.fixture
def counting() -> NodeState:
    return NodeState(laid_out(None, hami="on", units="status", **NVIDIA))


def ask(state: NodeState, name: str = "a", **requests: dict[str, int]) -> None:
    pod = Pod("default", name, containers=tuple(requests), requests=requests)
    state.pods["default", name] = pod


def test_units_in_the_status_are_as_many_as_a_container_asks_for(counting: NodeState) -> None:
    hold(counting, {GPU: slots(counting, 1)})
    ask(counting, main={GPU: 1, GPUMEM: 300, CORES: 30}, other={GPUMEM: 5})
    assert held(counting) == {1: [("main", 300, 30, 1)]}
    (holding,) = counting.holdings()[counting.node.cards[1].uuid]
    assert holding.devices == {GPU: 1, GPUMEM: 300, CORES: 30}


def test_in_the_status_too_two_cards_have_as_much_each(counting: NodeState) -> None:
    hold(counting, {GPU: slots(counting, 0, 1)})
    ask(counting, main={GPU: 2, GPUMEM: 300})
    assert held(counting) == {0: [("main", 300, 100, 1)], 1: [("main", 300, 100, 1)]}


def test_a_container_without_a_slot_is_on_no_card(counting: NodeState) -> None:
    hold(counting, {})
    ask(counting, main={GPUMEM: 300})
    assert held(counting) == {}


def test_a_pod_that_is_not_read_yet_has_the_whole_card(counting: NodeState) -> None:
    hold(counting, {GPU: slots(counting, 0)})
    assert held(counting) == {0: [("main", 1000, 100, 1)]}


def test_hamis_word_counts_more_than_what_was_asked_for(counting: NodeState) -> None:
    first, second = counting.node.cards
    hold(counting, {GPU: slots(counting, 0)})
    counting.pods["default", "a"] = Pod(
        "default",
        "a",
        annotations={ALLOCATED: segment(second.uuid, memory=200, cores=20)},
        containers=("main",),
        requests={"main": {GPU: 1, GPUMEM: 200, CORES: 20}},
    )
    assert held(counting) == {1: [("main", 200, 20, 1)]}
    (holding,) = counting.holdings()[second.uuid]
    assert holding.devices == {GPU: 1, GPUMEM: 200, CORES: 20}
    assert first.uuid not in counting.holdings()
