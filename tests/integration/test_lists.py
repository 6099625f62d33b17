"""ListAndWatch: what is sent, and when."""

import gc

from hami_mock.views.deviceplugin.server import SharedMessage
from tests.integration.agents import agent_thread
from tests.integration.grpcio_kubelet import GrpcioKubelet

LIMIT = 4 * 1024 * 1024
NVIDIA = {
    "nvidia.com/gpu",
    "nvidia.com/gpucores",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
}
ONLY_NVIDIA = {"mlu_cards": "0", "iluvatar_cards": "0", "ascend_cards": "0"}


def unhealthy(kubelet: GrpcioKubelet, resource: str) -> set[str]:
    return {i for i, health in kubelet.devices(resource).items() if health != "Healthy"}


def wait_for_list(kubelet: GrpcioKubelet, resource: str, number: int) -> None:
    kubelet.wait_until(
        lambda: len(kubelet.current(resource).lists) >= number, f"list {number} of {resource}"
    )


def test_a_card_takes_its_devices_in_all_of_its_resources_with_it(kubelet: GrpcioKubelet) -> None:
    with agent_thread(kubelet.folder, **ONLY_NVIDIA) as agent:
        kubelet.wait_for_lists(NVIDIA)
        before = {name: kubelet.current(name).lists[-1] for name in NVIDIA}
        card = agent.set_health("nvidia", 1, healthy=False)
        for name in NVIDIA:
            wait_for_list(kubelet, name, 2)
            assert len(unhealthy(kubelet, name)) == len(kubelet.devices(name)) / 2
            assert set(kubelet.devices(name).values()) == {"Healthy", "Unhealthy"}
        assert unhealthy(kubelet, "nvidia.com/gpu") == {f"{card}-{slot}" for slot in range(10)}
        agent.set_health("nvidia", 1, healthy=True)
        for name in NVIDIA:
            wait_for_list(kubelet, name, 3)
            assert kubelet.current(name).lists[-1] == before[name]


def test_a_list_is_sent_when_it_changed_and_only_then(kubelet: GrpcioKubelet) -> None:
    with agent_thread(kubelet.folder, ascend_cards="0", iluvatar_cards="0") as agent:
        kubelet.wait_for_lists(NVIDIA | {"cambricon.com/vmlu"})
        agent.set_health("nvidia", 0, healthy=True)
        agent.set_health("mlu", 0, healthy=False)
        wait_for_list(kubelet, "cambricon.com/vmlu", 2)
        agent.set_health("nvidia", 0, healthy=False)
        wait_for_list(kubelet, "nvidia.com/gpu", 2)
        assert len(kubelet.current("nvidia.com/gpu").lists) == 2
        assert len(kubelet.current("cambricon.com/vmlu").lists) == 2


def test_262144_devices_arrive_and_stay_below_the_limit_when_cards_fail(
    kubelet: GrpcioKubelet,
) -> None:
    flags = {"nvidia_cards": "8", "nvidia_memory": "32768", **ONLY_NVIDIA}
    with agent_thread(kubelet.folder, **flags) as agent:
        kubelet.wait_for_lists(NVIDIA)
        resource = "nvidia.com/gpumem"
        assert len(kubelet.devices(resource)) == 262_144
        assert len(kubelet.current(resource).lists[-1]) == LIMIT
        for index in range(8):
            agent.set_health("nvidia", index, healthy=False)
            wait_for_list(kubelet, resource, index + 2)
            assert len(kubelet.current(resource).lists[-1]) <= LIMIT
            assert len(unhealthy(kubelet, resource)) == 32_768 * (index + 1)


def test_a_list_that_was_read_is_not_kept(kubelet: GrpcioKubelet) -> None:
    with agent_thread(kubelet.folder, **ONLY_NVIDIA) as agent:
        kubelet.wait_for_lists(NVIDIA)
        agent.set_health("nvidia", 1, healthy=False)
        for name in NVIDIA:
            wait_for_list(kubelet, name, 2)

        def none_is_kept() -> bool:
            return not any(isinstance(each, SharedMessage) for each in gc.get_objects())

        # Soon, not at once: the last of a list is read before its sender has ended.
        kubelet.wait_until(none_is_kept, "a memory without lists")


def test_a_client_that_cancels_in_the_middle_of_a_list_hurts_nobody(kubelet: GrpcioKubelet) -> None:
    flags = {"nvidia_cards": "8", "nvidia_memory": "32768", **ONLY_NVIDIA}
    resource = "nvidia.com/gpumem"
    with agent_thread(kubelet.folder, **flags) as agent:
        kubelet.wait_for_lists(NVIDIA)
        plugin = kubelet.plugin(resource)
        for _ in range(10):
            stream = plugin.open_list()
            # The headers are there, so the agent is sending; nobody reads the 4 MiB behind them.
            assert stream.initial_metadata() is not None
            stream.cancel()
        assert len(next(plugin.open_list())) == LIMIT
        agent.set_health("nvidia", 0, healthy=False)
        wait_for_list(kubelet, resource, 2)
        assert len(kubelet.registrations) == len(NVIDIA)


def test_a_slow_reader_keeps_nobody_waiting_and_gets_the_newest_list(
    kubelet: GrpcioKubelet,
) -> None:
    flags = {"nvidia_cards": "8", "nvidia_memory": "32768", **ONLY_NVIDIA}
    resource = "nvidia.com/gpumem"
    with agent_thread(kubelet.folder, **flags) as agent:
        kubelet.wait_for_lists(NVIDIA)
        slow = kubelet.plugin(resource).open_list()
        assert slow.initial_metadata() is not None
        for index in range(3):
            agent.set_health("nvidia", index, healthy=False)
            for name in NVIDIA:
                wait_for_list(kubelet, name, index + 2)
        newest = kubelet.current(resource).lists[-1]
        # At the most the first list and one for each change; changes that passed while it slept
        # over a list come as one.
        assert any(payload == newest for _, payload in zip(range(4), slow, strict=False))
