"""Prepared claims are holders: of parts of cards, of instances, by one container or by several."""

import pytest

from hami_mock.kubelet.holder import Holder
from hami_mock.node.claims import ClaimedDevice, ClaimKey, PreparedClaim
from hami_mock.node.holders import Holding
from hami_mock.node.instances import Instance
from hami_mock.node.state import NodeState
from tests.unit.builders import laid_out

DRIVER, GPU = "gpu.example.com", "nvidia.com/gpu"
ONE, TWO = ("default", "a", "main"), ("default", "b", "main")


@pytest.fixture
def state() -> NodeState:
    return NodeState(laid_out(mlu_cards=0, iluvatar_cards=0, ascend_cards=0))


def device(state: NodeState, index: int = 0, **more: object) -> ClaimedDevice:
    own = {"request": "gpu", "pool": "n", "name": f"gpu-{index}", "memory": 1000, "cores": 30}
    return ClaimedDevice.read({**own, "card": state.node.cards[index].uuid, **more})


def prepare(state: NodeState, *devices: ClaimedDevice, name: str = "c") -> PreparedClaim:
    claim = PreparedClaim(ClaimKey(DRIVER, f"default/{name}"), f"uid-{name}", devices)
    state.prepare_claim(claim)
    return claim


def held(state: NodeState, index: int = 0) -> list[Holding]:
    return state.holdings().get(state.node.cards[index].uuid, [])


def test_a_claim_is_held_before_anybody_knows_by_whom(state: NodeState) -> None:
    state.holders.name([])
    prepare(state, device(state))
    assert held(state) == [Holding(None, {DRIVER: 1}, 1000, 30, 1, owner="uid-c")]
    state.holders.name([Holder(ONE, {DRIVER: ["default/c"]})])
    assert held(state) == [Holding(ONE, {DRIVER: 1}, 1000, 30, 1, owner="uid-c")]


def test_nobody_holds_a_claim_that_is_unprepared(state: NodeState) -> None:
    claim = prepare(state, device(state))
    state.holders.name([Holder(ONE, {DRIVER: ["default/c"]})])
    assert held(state)
    state.unprepare_claim(claim)
    assert not held(state)
    state.unprepare_claim(claim)


def test_two_containers_share_a_claim(state: NodeState) -> None:
    prepare(state, device(state))
    state.holders.name([Holder(who, {DRIVER: ["default/c"]}) for who in (ONE, TWO)])
    assert [each.container for each in held(state)] == [ONE, TWO]


def test_whoever_shows_a_card_sees_the_claims_user(state: NodeState) -> None:
    prepare(state, device(state))
    state.holders.name([Holder(ONE, {DRIVER: ["default/c"]})])
    (usage,) = state.usages(state.node.cards[0])
    assert (usage.container, usage.memory_limit, usage.cores_limit) == (ONE, 1000, 30)


def test_parts_of_one_card_add_up(state: NodeState) -> None:
    prepare(state, device(state), device(state, cores=80, share="x"))
    state.holders.name([Holder(ONE, {DRIVER: ["default/c"]})])
    assert held(state) == [Holding(ONE, {DRIVER: 2}, 2000, 100, 2, owner="uid-c")]


def test_slots_and_claims_of_one_card_add_up(state: NodeState) -> None:
    prepare(state, device(state))
    slot = f"{state.node.cards[0].uuid}-0"
    state.holders.name([Holder(ONE, {GPU: [slot], DRIVER: ["default/c"]})])
    (holding,) = held(state)
    assert holding.devices == {GPU: 1, DRIVER: 1}
    assert holding.slots == 2


def test_cards_of_one_claim_are_held_each(state: NodeState) -> None:
    prepare(state, device(state, 0), device(state, 1))
    state.holders.name([Holder(ONE, {DRIVER: ["default/c", "default/unknown"]})])
    assert held(state, 0)
    assert held(state, 1)


def test_who_only_looks_holds_nothing(state: NodeState) -> None:
    prepare(state, device(state, is_admin=True))
    state.holders.name([Holder(ONE, {DRIVER: ["default/c"]})])
    assert not held(state)


def test_an_instance_is_cut_out_for_as_long_as_it_is_held(state: NodeState) -> None:
    instance = Instance("MIG-1", "1g.10gb", 9728, 15, 0, 7)
    claim = prepare(state, device(state, instance=list(instance)))
    state.holders.name([Holder(ONE, {DRIVER: ["default/c"]})])
    assert state.instances(state.node.cards[0]) == [instance]
    assert claim.devices[0] == ClaimedDevice.read(claim.devices[0].as_data())
    state.unprepare_claim(claim)
    assert not state.instances(state.node.cards[0])


def test_a_card_that_is_gone_is_held_by_nobody(state: NodeState) -> None:
    prepare(state, device(state, card="GPU-gone"))
    state.holders.name([Holder(ONE, {DRIVER: ["default/c"]})])
    assert not state.holdings()
