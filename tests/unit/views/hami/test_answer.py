import pytest

from hami_mock.errors import UnknownDevice
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import LOST
from hami_mock.node.resources import Resource
from hami_mock.views.hami.answer import answer, vendors_of
from hami_mock.views.hami.waiting import WaitingPod, takes_part
from tests.makers import BY_WORD, CAMBRICON
from tests.unit.builders import unit_resource
from tests.unit.views.hami.rig import cards_of, count_resource, pod, segment, state_with


def waiting(**to_allocate: str) -> WaitingPod:
    bound = pod(words=to_allocate)
    bound["metadata"]["resourceVersion"] = "1"
    return WaitingPod.of(bound)


def test_oversubscribed_memory_is_said() -> None:
    gpu = count_resource(memory_scaling=1.5)
    assert gpu.hami is not None
    (card, _) = gpu.cards
    found = answer(waiting(vgpu=segment(card.uuid)), gpu, gpu.hami, [1], state_with(gpu))
    assert found.allotted[0].variables["CUDA_OVERSUBSCRIBE"] == "true"


def test_a_limit_for_each_device_and_a_card_that_holds_two_is_named_once() -> None:
    gpu = count_resource()
    assert gpu.hami is not None
    (card, _) = gpu.cards
    both = waiting(vgpu=segment(card.uuid, card.uuid))
    (allotted,) = answer(both, gpu, gpu.hami, [2], state_with(gpu)).allotted
    variables = allotted.variables
    assert variables["NVIDIA_VISIBLE_DEVICES"] == card.uuid
    assert {name for name in variables if "LIMIT_" in name} == {
        "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_DEVICE_MEMORY_LIMIT_1",
    }  # fmt: skip


def test_reckoned_cards_are_numbered_without_lost_ones() -> None:
    mlu = count_resource(BY_WORD["MLU"], cards_of(CAMBRICON, 3))
    assert mlu.hami is not None
    state = state_with(mlu)
    state.begin_faults(Fault(LOST, frozenset({mlu.cards[0].uuid})))

    def visible(card: str) -> str:
        assert mlu.hami is not None
        one = waiting(cambricon_mlu=segment(card, word="MLU"))
        return answer(one, mlu, mlu.hami, [1], state).allotted[0].variables["MLU_VISIBLE_DEVICES"]

    assert visible("n1-cambricon-mlu-0") == "1"
    assert visible("n1-cambricon-mlu-1") == "2"
    for unknown in ("n1-cambricon-mlu-2", "n1-cambricon-mlu-x", "n1-cambricon-mlu-²", ""):
        with pytest.raises(UnknownDevice):
            visible(unknown)


def test_only_slots_that_hami_locks_the_node_for_take_part() -> None:
    plain: list[Resource] = [
        count_resource(BY_WORD[word])
        for word in ("kunlun", "GCU", "Mthreads", "Metax-GPU", "AWSNeuron")
    ]
    assert not any(takes_part(resource) for resource in plain)
    assert not takes_part(unit_resource([10]))
    assert takes_part(count_resource(BY_WORD["XPU"]))
    assert vendors_of(state_with(*plain, count_resource())) == [BY_WORD["NVIDIA"]]
