"""Which card a slot stands for: HAMi's word, whatever slots the kubelet has chosen."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kubelet.holder import Container, Holder
from hami_mock.node.devices import SlotDevices
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import LOST, UNHEALTHY
from hami_mock.node.pods import Pod
from hami_mock.node.sizing import Node
from hami_mock.node.slot_cards import container_cards, exchanged, stand_ins
from hami_mock.node.state import NodeState
from tests.makers import BY_WORD
from tests.unit.builders import NODE, unit_resource
from tests.unit.views.hami.rig import cards_of, count_resource, segment, state_with

SPLIT = 3
GPU = count_resource(cards=cards_of(BY_WORD["NVIDIA"].vendor, 3), split=SPLIT)
A, B, C = (card.uuid for card in GPU.cards)
ALLOCATED = "hami.io/vgpu-devices-allocated"


@pytest.fixture
def state() -> NodeState:
    return state_with(GPU)


def hold(state: NodeState, **pods: list[str]) -> None:
    """Let the kubelet say which slots the container main of each pod holds."""
    held = {("default", name, "main"): ids for name, ids in pods.items()}
    state.holders.name([Holder(container, {GPU.name: ids}) for container, ids in held.items()])


def assign(state: NodeState, name: str, *cards: str, **more: object) -> None:
    """Let HAMi say which cards the container main of a pod is on."""
    pod = Pod("default", name, annotations={ALLOCATED: segment(*cards)}, containers=("main",))
    requests = {"main": {GPU.name: len(cards)}}
    state.pods["default", name] = replace(pod, requests=requests, **more)  # type: ignore[arg-type]


def stands_for(state: NodeState) -> dict[str, str]:
    """Each slot with the card that it stands for."""
    moved = stand_ins(state, GPU)
    return {
        slot: moved.get(slot, card.uuid) for card in GPU.cards for slot in [*GPU.devices.ids(card)]
    }


def test_where_both_agree_slots_stand_for_their_own_cards(state: NodeState) -> None:
    hold(state, a=[f"{A}-0"], b=[f"{B}-0", f"{A}-1"])
    assign(state, "a", A)
    assign(state, "b", A, B)
    assert stand_ins(state, GPU) == {}


def test_a_slot_of_another_card_changes_places_with_a_free_one(state: NodeState) -> None:
    hold(state, a=[f"{A}-0"])
    assign(state, "a", B)
    assert stand_ins(state, GPU) == {f"{A}-0": B, f"{B}-2": A}


def test_two_that_have_each_others_need_nobody_else(state: NodeState) -> None:
    hold(state, a=[f"{A}-0"], b=[f"{B}-0"])
    assign(state, "a", B)
    assign(state, "b", A)
    assert stand_ins(state, GPU) == {f"{A}-0": B, f"{B}-0": A}


def test_what_is_given_counts_before_the_kubelet_names_it(state: NodeState) -> None:
    hold(state, old=[f"{A}-0"])
    assign(state, "old", C)
    # The kubelet has given this slot to another since it was asked.
    state.holders.give(GPU.name, [f"{A}-0"], [B])
    assert stand_ins(state, GPU) == {f"{A}-0": B, f"{B}-2": A}
    assert container_cards(state, GPU, [f"{A}-0"]) == {B}


def test_also_where_the_kubelet_can_not_be_asked(state: NodeState) -> None:
    state.holders.give(GPU.name, [f"{A}-0"], [B])
    assert state.holders.all is None
    assert container_cards(state, GPU, [f"{A}-0"]) == {B}
    assert stand_ins(state, GPU) == {f"{A}-0": B, f"{B}-2": A}


def test_slots_of_which_nothing_is_known_are_their_own_cards(state: NodeState) -> None:
    hold(state, a=[f"{A}-0"], b=["GPU-x-0"], c=[f"{A}-1"])
    assign(state, "b", A)
    assign(state, "c", "GPU-nobody-has-this")
    state.holders.give(GPU.name, [f"{B}-0"])
    assert stand_ins(state, GPU) == {}
    assert container_cards(state, GPU, [f"{A}-0"]) == set()
    assert container_cards(state, GPU, [f"{C}-0"]) == set()


def test_more_than_a_card_can_have_changes_places_as_far_as_it_goes(state: NodeState) -> None:
    hold(state, **{f"p{i}": [f"{A}-{i}"] for i in range(SPLIT)}, stray=[f"{B}-0"])
    for name in ("p0", "p1", "p2", "stray"):
        assign(state, name, A)
    assert stand_ins(state, GPU) == {f"{B}-0": A}


def test_retired_slots_change_places_with_nobody() -> None:
    devices = SlotDevices(GPU.cards, SPLIT).resized(GPU.cards, 1)
    assert devices.owner(f"{A}-2") == (A, True)
    assert exchanged(devices, [([f"{A}-2"], [B])], [f"{A}-2"]) == {}


def test_units_stand_for_nothing() -> None:
    units = unit_resource([10, 10])
    assert stand_ins(NodeState(Node(NODE, units.cards, (units,))), units) == {}


def test_slices_are_all_of_one_card() -> None:
    gcu = count_resource(BY_WORD["Enflame"], split=4)
    first, second = (card.uuid for card in gcu.cards)
    state = state_with(gcu)
    state.holders.give(gcu.name, [f"{first}-0", f"{second}-0", f"{second}-1"], [second])
    assert stand_ins(state, gcu) == {f"{first}-0": second, f"{second}-3": first}


def test_the_cards_of_a_container(state: NodeState) -> None:
    hold(state, a=[f"{A}-0", f"{C}-1"])
    assign(state, "a", A, B)
    assert container_cards(state, GPU, [f"{C}-1", f"{A}-0"]) == {A, B}


@pytest.mark.parametrize(
    ("has_begun", "sidecars", "expected"),
    [
        (False, frozenset[str](), {A, B}),
        (True, frozenset[str](), {B}),
        (False, frozenset({"init"}), {B}),
    ],
)
def test_init_containers_need_their_cards_until_they_have_ended(
    state: NodeState, has_begun: bool, sidecars: frozenset[str], expected: set[str]
) -> None:
    main: Container = ("default", "a", "main")
    state.holders.name([Holder(main, {GPU.name: [f"{B}-0"]})])
    state.pods["default", "a"] = Pod(
        "default",
        "a",
        annotations={ALLOCATED: segment(A) + segment(B)},
        init_containers=("init",),
        containers=("main",),
        requests={"init": {GPU.name: 1}, "main": {GPU.name: 1}},
        sidecars=sidecars,
        has_begun=has_begun,
    )
    assert container_cards(state, GPU, [f"{B}-0"]) == expected


def test_slots_are_as_well_as_the_cards_they_stand_for(state: NodeState) -> None:
    hold(state, a=[f"{A}-0"], b=[f"{B}-0"], c=[f"{C}-0"])
    for name, card in (("a", B), ("b", C), ("c", A)):
        assign(state, name, card)
    whole = GPU.encode_list()
    moved = stand_ins(state, GPU)
    assert GPU.encode_list(stand_ins=moved) == whole, "nobody sees it while all are well"
    state.begin_faults(Fault(UNHEALTHY, frozenset({A})), Fault(LOST, frozenset({B})))
    shown = GPU.encode_list(state.unhealthy, state.lost, stand_ins=moved)
    assert [
        slot for slot in [f"{A}-0", *GPU.devices.ids(GPU.cards[1])] if slot.encode() in shown
    ] == [f"{B}-0"]
    assert shown.count(b"Unhealthy") == SPLIT
    assert shown.count(b"Healthy") == SPLIT


PODS = st.lists(
    st.tuples(st.sampled_from("+++-!"), st.integers(0, 2), st.integers(0, 99)), max_size=40
)


@given(PODS)
def test_the_kubelet_never_has_fewer_slots_left_than_hami(
    steps: list[tuple[str, int, int]],
) -> None:
    """Whatever slots it chooses, and whichever pods end and cards fail or recover.

    HAMi gives no card to more pods than it has slots, and none that has failed to any.
    """
    state = state_with(GPU)
    failed: set[str] = set()
    on: dict[str, str] = {}  # pod → card
    slots: dict[str, str] = {}  # pod → slot
    for number, (what, index, choice) in enumerate(steps):
        card = GPU.cards[index].uuid
        is_well = {slot for slot, uuid in stands_for(state).items() if uuid not in failed}
        if what == "!":
            failed ^= {card}
        elif what == "-" and on:
            gone = sorted(on)[choice % len(on)]
            del on[gone], slots[gone], state.pods["default", gone]
        elif what == "+" and Counter(on.values())[card] < SPLIT and card not in failed:
            free = sorted(is_well - {*slots.values()})
            assert free, "HAMi has room on a card that is well"
            name = f"p{number}"
            on[name], slots[name] = card, free[choice % len(free)]
            assign(state, name, card)
        hold(state, **{name: [slot] for name, slot in slots.items()})
        now = stands_for(state)
        assert {name: now[slot] for name, slot in slots.items()} == on
        assert Counter(now.values()) == dict.fromkeys((A, B, C), SPLIT)
