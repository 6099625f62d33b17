"""Who holds cards by devices that a real plugin on our driver has given."""

from collections.abc import Mapping, Sequence

import pytest

from hami_mock.kubelet.holder import Holder
from hami_mock.node.holders import Holding
from hami_mock.node.instances import Cutter
from hami_mock.node.state import NodeState
from tests.unit.builders import laid_out

GPU, SMALL, LARGE = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
WHO = ("default", "train", "main")
FLAGS = {"vendors": "nvidia", "nvidia_model": "A100-SXM4-40GB", "device_plugins": "off"}


@pytest.fixture
def state() -> NodeState:
    return NodeState(laid_out(None, **FLAGS))


def held(state: NodeState, devices: Mapping[str, Sequence[str]]) -> dict[int, Holding]:
    """Card → what one container holds of it."""
    state.holders.name([Holder(WHO, devices)])
    return {state.cards[uuid].index: each for uuid, (each,) in state.holdings().items()}


def test_without_device_plugins_a_node_offers_nothing(state: NodeState) -> None:
    assert (len(state.node.cards), state.node.resources) == (2, ())


@pytest.mark.parametrize("form", ["{}", "{}::0", "{}::17", "{}-3"])
@pytest.mark.parametrize("resource", [GPU, "nvidia.com/gpu.shared"])
def test_a_card_is_called_by_its_uuid(state: NodeState, form: str, resource: str) -> None:
    card = state.node.cards[1]
    found = held(state, {resource: [form.format(card.uuid)]})
    assert found == {1: Holding(WHO, {resource: 1}, memory=card.memory, cores=100, slots=1)}


def test_several_cards_and_several_turns_on_one(state: NodeState) -> None:
    first, second = (card.uuid for card in state.node.cards)
    found = held(state, {GPU: [f"{first}::0", f"{second}::1", f"{second}::2"]})
    assert {index: each.slots for index, each in found.items()} == {0: 1, 1: 2}


@pytest.mark.parametrize(
    "device", ["GPU-0", "{}::", "{}::x", "{}x", "::{}", "{}-1-2", "{}::1::2", ""]
)
def test_what_is_called_otherwise_is_none_of_ours(state: NodeState, device: str) -> None:
    assert held(state, {GPU: [device.format(state.node.cards[0].uuid)]}) == {}


@pytest.mark.parametrize("form", ["{}", "{}::1"])
def test_an_instance_is_a_part_of_its_card(form: str) -> None:
    state = NodeState(laid_out(None, **FLAGS, nvidia_mig="3g.20gb,1g.5gb,1g.5gb"))
    card = state.node.cards[0]
    by_profile = {each.profile: each for each in state.cut_out_of(card)}
    small, large = by_profile["1g.5gb"], by_profile["3g.20gb"]
    found = held(state, {SMALL: [form.format(small.uuid)], LARGE: [form.format(large.uuid)]})
    assert found == {
        0: Holding(
            WHO,
            {SMALL: 1, LARGE: 1},
            memory=small.memory + large.memory,
            cores=small.cores + large.cores,
            slots=2,
            instances=(small, large),
        )
    }
    assert len(state.instances(card)) == 3, "a part that is held is no other one"


def test_an_instance_that_somebody_makes_now_can_be_held(state: NodeState) -> None:
    card = state.node.cards[0]
    cut = Cutter(card.vendor, card.model, card.uuid).cut_into(["1g.5gb"])
    state.holders.name([Holder(WHO, {SMALL: [cut.parts[0].computes[0].uuid]})])
    assert state.holdings() == {}
    state.cut(card, cut)
    ((holding,),) = state.holdings().values()
    assert [each.profile for each in holding.instances] == ["1g.5gb"]


def test_our_own_devices_count_as_they_do_without_others() -> None:
    state = NodeState(laid_out(None, **{**FLAGS, "device_plugins": "on"}))
    card = state.node.cards[0]
    assert held(state, {GPU: [card.uuid]}) == {}, "that is no slot of ours"
    assert held(state, {GPU: [f"{card.uuid}-0"]})[0].slots == 1
