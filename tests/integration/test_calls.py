"""The five calls, made by grpcio."""

import random
from collections.abc import Iterator

import grpc
import pytest

from tests.integration.agents import AgentThread, agent_thread
from tests.integration.grpcio_kubelet import GrpcioKubelet

RESOURCES = {
    "nvidia.com/gpu",
    "nvidia.com/gpucores",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "cambricon.com/vmlu",
    "iluvatar.ai/vgpu",
}


@pytest.fixture
def agent(kubelet: GrpcioKubelet) -> Iterator[AgentThread]:
    with agent_thread(
        kubelet.folder, nvidia_cards="4", nvidia_memory="1000", ascend_cards="0"
    ) as agent:
        kubelet.wait_for_lists(RESOURCES)
        yield agent


def uuids(agent: AgentThread, vendor: str) -> list[str]:
    return [card.uuid for card in agent.agent.node.cards if card.vendor.prefix == vendor]


def test_the_views_that_run_say_how_it_goes(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    wanted = {"device plugins": {"resources": 7, "watched": 7}}
    kubelet.wait_until(lambda: agent.call(agent.agent.status)["views"] == wanted, "the views")


def test_slots_get_the_whole_cards_without_duplicates(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    cards = uuids(agent, "nvidia")
    wanted = [f"{cards[2]}-0", f"{cards[0]}-9", f"{cards[2]}-5"]
    (answer,) = kubelet.plugin("nvidia.com/gpu").allocate(wanted)
    assert dict(answer.envs) == {"NVIDIA_VISIBLE_DEVICES": f"{cards[0]},{cards[2]}"}


def test_every_container_request_is_answered(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    cards = uuids(agent, "nvidia")
    answers = kubelet.plugin("nvidia.com/gpu").allocate(
        [f"{cards[0]}-0"], [], [f"{cards[1]}-0", f"{cards[3]}-0"]
    )
    visible = [answer.envs.get("NVIDIA_VISIBLE_DEVICES", "") for answer in answers]
    assert visible == [cards[0], "", f"{cards[1]},{cards[3]}"]


def test_each_vendor_has_its_own_variable(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    mlu = uuids(agent, "mlu")
    (answer,) = kubelet.plugin("cambricon.com/vmlu").allocate([f"{mlu[1]}-3", f"{mlu[0]}-3"])
    assert answer.envs["MLU_VISIBLE_DEVICES"] == "0,1"
    iluvatar = uuids(agent, "iluvatar")
    (answer,) = kubelet.plugin("iluvatar.ai/vgpu").allocate([f"{iluvatar[1]}-3"])
    assert answer.envs["ILUVATAR_COREX_VISIBLE_DEVICES"] == iluvatar[1]


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage"]
)
def test_units_get_an_empty_response(
    kubelet: GrpcioKubelet, agent: AgentThread, resource: str
) -> None:
    ids = list(kubelet.devices(resource))
    (answer,) = kubelet.plugin(resource).allocate(random.sample(ids, len(ids)))
    assert answer.SerializeToString() == b""


@pytest.mark.parametrize("device_id", ["no-such-device", "", "GPU-1-0", "€€€"])
@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpumem"])
def test_an_unknown_device_is_an_error_and_the_plugin_lives_on(
    kubelet: GrpcioKubelet, agent: AgentThread, resource: str, device_id: str
) -> None:
    plugin = kubelet.plugin(resource)
    known = next(iter(kubelet.devices(resource)))
    with pytest.raises(grpc.RpcError) as caught:
        plugin.allocate([known, device_id])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == f"{resource}: there is no device {device_id!r}"
    assert len(plugin.allocate([known])) == 1


def test_an_unhealthy_device_is_an_error(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    card = agent.set_health("nvidia", 1, healthy=False)
    plugin = kubelet.plugin("nvidia.com/gpu")
    with pytest.raises(grpc.RpcError) as caught:
        plugin.allocate([f"{card}-0"])
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert f"'{card}-0' is on card {card}, which is unhealthy" in (caught.value.details() or "")
    agent.set_health("nvidia", 1, healthy=True)
    assert len(plugin.allocate([f"{card}-0"])) == 1


def test_preferred_slots_come_from_different_cards(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    cards = uuids(agent, "nvidia")
    plugin = kubelet.plugin("nvidia.com/gpu")
    available = list(kubelet.devices("nvidia.com/gpu"))
    must = f"{cards[3]}-7"
    answer = plugin.prefer(available, 4, [must])
    assert must in answer
    assert sorted(slot.rpartition("-")[0] for slot in answer) == sorted(cards)
    assert plugin.prefer(random.sample(available, len(available)), 4, [must]) == answer


def test_preferences_that_can_not_be_are_errors(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    card = uuids(agent, "nvidia")[0]
    with pytest.raises(grpc.RpcError) as caught:
        kubelet.plugin("nvidia.com/gpu").prefer([f"{card}-0"], 2)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_units_have_no_preference(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        kubelet.plugin("nvidia.com/gpumem").prefer(["000"], 1)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_pre_start_checks_the_devices(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    plugin = kubelet.plugin("nvidia.com/gpumem")
    assert plugin.pre_start(list(kubelet.devices("nvidia.com/gpumem"))[:10]) is not None
    with pytest.raises(grpc.RpcError) as caught:
        plugin.pre_start(["????"])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
