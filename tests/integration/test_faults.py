"""Faults as the kubelet sees them: lists, streams, registrations and calls."""

import functools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import grpc
import pytest

from hami_mock.node.fault import Call
from hami_mock.views.deviceplugin.lifecycle import Phase
from tests.integration.agents import AgentThread, agent_thread
from tests.integration.grpcio_kubelet import PATIENCE, GrpcioKubelet

GPU = "nvidia.com/gpu"
GPUMEM = "nvidia.com/gpumem"
NVIDIA = {GPU, "nvidia.com/gpucores", GPUMEM, "nvidia.com/gpumem-percentage"}
MLU = "cambricon.com/vmlu"
ALL = NVIDIA | {MLU}
LONG = 600.0
"""Far longer than any test: what lasts so long ends early or not at all."""


@pytest.fixture
def agent(kubelet: GrpcioKubelet) -> Iterator[AgentThread]:
    flags = {"nvidia_memory": "50", "iluvatar_cards": "0", "ascend_cards": "0"}
    with agent_thread(kubelet.folder, **flags) as agent:
        kubelet.wait_for_lists(ALL)
        yield agent


@pytest.fixture
def beside() -> Iterator[ThreadPoolExecutor]:
    """Threads for calls that take their time."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        yield pool


def uuid_of(agent: AgentThread, name: str) -> str:
    return next(card.uuid for card in agent.agent.node.cards if card.name == name)


def wait_for_list(kubelet: GrpcioKubelet, resource: str, number: int) -> None:
    kubelet.wait_until(
        lambda: len(kubelet.current(resource).lists) >= number, f"list {number} of {resource}"
    )


def lists(kubelet: GrpcioKubelet) -> dict[str, int]:
    return {name: len(kubelet.current(name).lists) for name in ALL}


def healthy(kubelet: GrpcioKubelet, resource: str) -> int:
    return sum(health == "Healthy" for health in kubelet.devices(resource).values())


def after_all_lists(kubelet: GrpcioKubelet, agent: AgentThread) -> dict[str, int]:
    """The numbers of lists when all that is due has been sent.

    A change of one more card is sent after whatever was due before it.
    """
    whole = {name: len(kubelet.devices(name)) for name in ALL}
    for card in ("nvidia/0", "mlu/0"):
        agent.act("lose", card)
    kubelet.wait_until(
        lambda: all(len(kubelet.devices(name)) == whole[name] / 2 for name in ALL), "the last lists"
    )
    return {name: count - 1 for name, count in lists(kubelet).items()}


def test_a_failing_card_costs_each_of_its_resources_one_list_and_comes_back_with_one(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    before = {name: kubelet.devices(name) for name in ALL}
    agent.act("fail", "nvidia/1", xid=79)
    for name in NVIDIA:
        wait_for_list(kubelet, name, 2)
        assert healthy(kubelet, name) == len(before[name]) / 2
        assert kubelet.devices(name).keys() == before[name].keys()
    agent.act("recover", "nvidia/1")
    for name in NVIDIA:
        wait_for_list(kubelet, name, 3)
        assert kubelet.devices(name) == before[name]
    assert after_all_lists(kubelet, agent) == {**dict.fromkeys(NVIDIA, 3), MLU: 1}
    assert len(kubelet.registrations) == len(ALL)


def test_a_lost_card_vanishes_from_the_lists_and_comes_back_as_it_was(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    before = {name: kubelet.devices(name) for name in NVIDIA}
    card = uuid_of(agent, "nvidia/0")
    agent.act("lose", "nvidia/0")
    for name in NVIDIA:
        wait_for_list(kubelet, name, 2)
        left = kubelet.devices(name)
        assert len(left) == len(before[name]) / 2
        assert set(left.values()) == {"Healthy"}
        assert left.keys() < before[name].keys()
    assert not any(i.startswith(card) for i in kubelet.devices(GPU))
    agent.act("return", "nvidia/0")
    for name in NVIDIA:
        wait_for_list(kubelet, name, 3)
        assert kubelet.devices(name) == before[name]


def test_all_cards_lost_leave_an_empty_list_and_the_resource_registered(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    agent.act("lose", "nvidia")
    wait_for_list(kubelet, GPU, 2)
    assert kubelet.devices(GPU) == {}
    agent.act("return", "nvidia")
    wait_for_list(kubelet, GPU, 3)
    assert len(kubelet.devices(GPU)) == 20
    assert not kubelet.current(GPU).ended


def test_faults_on_one_card_overlap(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    first = agent.act("fail", "mlu/0", reason="hot")
    second = agent.act("fail", "mlu/0", reason="old")
    wait_for_list(kubelet, MLU, 2)
    agent.end_faults(first)
    agent.act("fail", "mlu/1")
    wait_for_list(kubelet, MLU, 3)
    assert healthy(kubelet, MLU) == 0
    agent.end_faults(second)
    wait_for_list(kubelet, MLU, 4)
    assert healthy(kubelet, MLU) == 10


def test_a_degraded_card_and_an_applications_error_send_no_list(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    agent.act("degrade", "all", reason="slow link")
    agent.act("fail", "nvidia", xid=13)
    assert after_all_lists(kubelet, agent) == dict.fromkeys(ALL, 1)
    assert agent.agent.state.xids.total() == 2


def test_a_device_of_a_lost_card_is_not_given(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    card = uuid_of(agent, "nvidia/0")
    agent.act("lose", "nvidia/0")
    with pytest.raises(grpc.RpcError) as caught:
        kubelet.plugin(GPU).allocate([f"{card}-0"])
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_resource_that_is_down_ends_its_streams_and_registers_again_when_it_is_up(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    before = kubelet.current(GPUMEM)
    agent.act("down", GPUMEM)
    kubelet.wait_until(lambda: before.ended, "the end of the stream")
    kubelet.wait_until(lambda: not (kubelet.folder / before.endpoint).exists(), "no socket")
    kubelet.wait_until(
        lambda: agent.plugin(GPUMEM).reason == "down on command", "the plugin to say so"
    )
    assert agent.plugin(GPUMEM).phase is Phase.WAITING
    # The others are as they were, and a kubelet that restarts doesn't see it either.
    others = ALL - {GPUMEM}
    assert not any(kubelet.current(name).ended for name in others)
    kubelet.restart()
    kubelet.wait_for_lists(others, registrations=2)
    assert kubelet.current(GPUMEM) is before
    agent.act("up", GPUMEM)
    kubelet.wait_for_lists({GPUMEM}, registrations=2)
    assert len(kubelet.devices(GPUMEM)) == 100
    assert kubelet.current(GPUMEM).endpoint != before.endpoint


def test_a_card_that_fails_while_its_resource_is_down_is_unhealthy_in_the_first_list(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    down = agent.act("down", GPUMEM)
    kubelet.wait_until(lambda: kubelet.current(GPUMEM).ended, "the end of the stream")
    agent.act("fail", "nvidia/0")
    agent.end_faults(down)
    kubelet.wait_for_lists({GPUMEM}, registrations=2)
    assert healthy(kubelet, GPUMEM) == 50
    assert len(kubelet.current(GPUMEM).lists) == 1


def test_a_refused_registration_is_told_and_tried_again_at_once_when_it_is_lifted(
    socket_folder: Path, google_messages: ModuleType
) -> None:
    flags = {"nvidia_memory": "50", "iluvatar_cards": "0", "ascend_cards": "0"}
    with agent_thread(socket_folder, **flags) as agent:
        faults = agent.act("refuse", GPU)
        with GrpcioKubelet(socket_folder, google_messages) as kubelet:
            kubelet.wait_for_lists(ALL - {GPU})
            plugin = agent.plugin(GPU)
            # Long enough for the pauses between tries to have grown.
            kubelet.wait_until(lambda: plugin.counters.registration_errors >= 4, "tries")
            assert (plugin.phase, plugin.reason) == (
                Phase.FAILED,
                "registration refused on command",
            )
            plugin._backoff.first = plugin._backoff.longest = plugin._backoff._last = LONG
            errors = plugin.counters.registration_errors
            kubelet.wait_until(lambda: plugin.counters.registration_errors > errors, "the pause")
            agent.end_faults(faults)
            kubelet.wait_for_lists({GPU})
            kubelet.wait_until(lambda: plugin.phase is Phase.WATCHED, "the phase")


def test_a_refusal_leaves_a_resource_that_is_watched_alone(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    agent.act("refuse")
    after_all_lists(kubelet, agent)
    assert not any(kubelet.current(name).ended for name in ALL)
    kubelet.restart()
    kubelet.wait_until(
        lambda: all(p.phase is Phase.FAILED for p in agent.agent.plugins), "refusals"
    )
    assert len(kubelet.registrations) == len(ALL)
    agent.act("up")
    kubelet.wait_for_lists(ALL, registrations=2)


def test_a_dropped_stream_is_registered_again_without_a_pause(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    for drops in range(1, 4):
        before = kubelet.current(GPU)
        agent.act("drop", GPU)
        kubelet.wait_for_lists({GPU}, registrations=drops + 1)
        kubelet.wait_until(functools.partial(getattr, before, "ended"), "the end")
        assert before.stream.code() is grpc.StatusCode.UNAVAILABLE
        assert before.stream.details() == "the list was dropped on command"
    assert len(kubelet.devices(GPU)) == 20
    assert agent.plugin(GPU).counters.registration_errors == 0
    assert len(kubelet.registrations) == len(ALL) + 3
    assert not any(kubelet.current(name).ended for name in ALL)


def others_go_on(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    """Another resource's Allocate is answered, and lists of all resources are sent."""
    number = lists(kubelet)
    first = next(iter(kubelet.devices(MLU)))
    assert len(kubelet.plugin(MLU).allocate([first])) == 1
    faults = agent.act("fail", "nvidia/1", "mlu/1")
    for name in ALL:
        wait_for_list(kubelet, name, number[name] + 1)
    agent.end_faults(faults)
    for name in ALL:
        wait_for_list(kubelet, name, number[name] + 2)


def test_an_allocate_that_is_slow_keeps_nobody_else_waiting_and_is_answered_in_the_end(
    kubelet: GrpcioKubelet, agent: AgentThread, beside: ThreadPoolExecutor
) -> None:
    slot = f"{uuid_of(agent, 'nvidia/0')}-0"
    plugin = kubelet.plugin(GPU)
    faults = agent.act("delay", GPU, call=Call.ALLOCATE, seconds=LONG)
    answer = beside.submit(lambda: plugin.allocate([slot]))
    others_go_on(kubelet, agent)
    assert plugin.pre_start([slot]) is not None
    assert not answer.done()
    agent.end_faults(faults)
    (container,) = answer.result(timeout=PATIENCE)
    assert container.envs["NVIDIA_VISIBLE_DEVICES"] == uuid_of(agent, "nvidia/0")


def test_a_delay_is_as_long_as_it_says(kubelet: GrpcioKubelet, agent: AgentThread) -> None:
    slot = f"{uuid_of(agent, 'nvidia/0')}-0"
    agent.act("delay", GPU, call=Call.ALLOCATE, seconds=0.3)
    started = time.monotonic()
    assert len(kubelet.plugin(GPU).allocate([slot])) == 1
    assert time.monotonic() - started >= 0.3


def test_an_allocate_that_hangs_ends_with_an_error(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    slot = f"{uuid_of(agent, 'nvidia/0')}-0"
    agent.act("hang", GPU, call=Call.ALLOCATE, seconds=0.2)
    started = time.monotonic()
    with pytest.raises(grpc.RpcError) as caught:
        kubelet.plugin(GPU).allocate([slot])
    assert time.monotonic() - started >= 0.2
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert caught.value.details() == f"{GPU}: allocate hung for 0.2 s"
    assert agent.plugin(GPU).counters.allocation_errors == 1


def test_an_allocate_that_hangs_is_answered_when_the_fault_is_lifted(
    kubelet: GrpcioKubelet, agent: AgentThread, beside: ThreadPoolExecutor
) -> None:
    slot = f"{uuid_of(agent, 'nvidia/0')}-0"
    plugin = kubelet.plugin(GPU)
    agent.act("hang", GPU, call=Call.ALLOCATE, seconds=LONG)
    answer = beside.submit(lambda: plugin.allocate([slot]))
    others_go_on(kubelet, agent)
    assert not answer.done()
    agent.act("clear", GPU)
    assert len(answer.result(timeout=PATIENCE)) == 1


def test_a_resource_that_goes_down_cuts_off_an_allocate_that_hangs(
    kubelet: GrpcioKubelet, agent: AgentThread, beside: ThreadPoolExecutor
) -> None:
    slot = f"{uuid_of(agent, 'nvidia/0')}-0"
    plugin = kubelet.plugin(GPU)
    agent.act("hang", GPU, call=Call.ALLOCATE, seconds=LONG)
    answer = beside.submit(lambda: plugin.allocate([slot]))
    others_go_on(kubelet, agent)
    agent.act("down", GPU)
    assert isinstance(answer.exception(timeout=PATIENCE), grpc.RpcError)


def test_a_broken_allocate_fails_at_once_with_the_reason_and_the_others_do_not(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    slot = f"{uuid_of(agent, 'nvidia/0')}-0"
    plugin = kubelet.plugin(GPU)
    agent.act("break", GPU, call=Call.ALLOCATE, reason="no memory")
    for _ in range(2):
        with pytest.raises(grpc.RpcError) as caught:
            plugin.allocate([slot])
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert caught.value.details() == f"{GPU}: allocate broken: no memory"
    others_go_on(kubelet, agent)
    assert plugin.pre_start([slot]) is not None
    agent.act("clear", GPU)
    assert len(plugin.allocate([slot])) == 1


def test_pre_start_can_be_slow_or_fail_too(
    kubelet: GrpcioKubelet, agent: AgentThread, beside: ThreadPoolExecutor
) -> None:
    slot = f"{uuid_of(agent, 'nvidia/0')}-0"
    plugin = kubelet.plugin(GPU)
    faults = agent.act("delay", GPU, call=Call.PRESTART, seconds=LONG)
    answer = beside.submit(lambda: plugin.pre_start([slot]))
    assert len(plugin.allocate([slot])) == 1
    assert not answer.done()
    agent.end_faults(faults)
    assert answer.result(timeout=PATIENCE) is not None
    agent.act("break", GPU, call=Call.PRESTART)
    with pytest.raises(grpc.RpcError) as caught:
        plugin.pre_start([slot])
    assert caught.value.details() == f"{GPU}: prestart broken"
    assert len(plugin.allocate([slot])) == 1


def test_faults_of_calls_outlive_a_new_registration(
    kubelet: GrpcioKubelet, agent: AgentThread
) -> None:
    agent.act("break", GPU, call=Call.ALLOCATE)
    agent.act("drop", GPU)
    kubelet.wait_for_lists({GPU}, registrations=2)
    with pytest.raises(grpc.RpcError):
        kubelet.plugin(GPU).allocate([f"{uuid_of(agent, 'nvidia/0')}-0"])
