"""Whatever the kubelet does, the agent lives, says why nothing works, and registers when it can."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import anyio
import pytest

from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.views.deviceplugin.lifecycle import Phase
from tests.integration.agents import ONLY_NVIDIA, AgentThread, agent_process, agent_thread, get
from tests.integration.evil_kubelet import MISBEHAVIOURS, evil_kubelet, full_queue
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.pod_resources import pod_resources

NVIDIA = {f"nvidia.com/gpu{kind}" for kind in ("", "mem", "cores", "mem-percentage")}
FEW = {"nvidia_memory": "10", "mlu_cards": "0", "iluvatar_cards": "0", "ascend_cards": "0"}


@contextmanager
def good_kubelet(folder: Path, messages: ModuleType) -> Iterator[GrpcioKubelet]:
    with GrpcioKubelet(folder, messages) as kubelet:
        kubelet.wait_for_lists(NVIDIA)
        yield kubelet


def wait_for_reason(agent: AgentThread, kubelet: GrpcioKubelet, reason: str) -> None:
    def is_told() -> bool:
        return all(p.phase is Phase.FAILED and reason in p.reason for p in agent.agent.plugins)

    def found() -> str:
        return f"{reason!r} in {[(p.phase, p.reason) for p in agent.agent.plugins]}"

    try:
        kubelet.wait_until(is_told)
    except AssertionError as error:
        raise AssertionError(found()) from error


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_a_kubelet_that_misbehaves_is_tried_again(
    socket_folder: Path, google_messages: ModuleType, name: str
) -> None:
    misbehaviour, reason = MISBEHAVIOURS[name]
    nobody = GrpcioKubelet(socket_folder, google_messages)
    with agent_thread(socket_folder, **FEW) as agent:
        with evil_kubelet(socket_folder / "kubelet.sock", misbehaviour):
            wait_for_reason(agent, nobody, reason)
            assert all(len(p.reason) < 400 for p in agent.agent.plugins)
        with good_kubelet(socket_folder, google_messages):
            assert agent.is_alive
            nobody.wait_until(lambda: all(p.phase is Phase.WATCHED for p in agent.agent.plugins))


def test_a_kubelet_whose_queue_is_full_is_tried_again(
    socket_folder: Path, google_messages: ModuleType
) -> None:
    nobody = GrpcioKubelet(socket_folder, google_messages)
    with agent_thread(socket_folder, **FEW) as agent:
        with full_queue(socket_folder / "kubelet.sock"):
            wait_for_reason(agent, nobody, "too many wait for it")
        with good_kubelet(socket_folder, google_messages):
            assert agent.is_alive


def test_the_reason_is_in_readyz_and_the_process_lives(
    socket_folder: Path, google_messages: ModuleType
) -> None:
    misbehaviour, reason = MISBEHAVIOURS["closes at once"]
    nobody = GrpcioKubelet(socket_folder, google_messages)
    with agent_process(socket_folder, *ONLY_NVIDIA, http="127.0.0.1:0") as agent:
        url = f"http://{agent.wait_for_log('HTTP at').split('HTTP at ')[1].strip()}/readyz"
        with evil_kubelet(socket_folder / "kubelet.sock", misbehaviour):

            def told() -> set[str]:
                resources = json.loads(get(url)[1])["resources"].values()
                return {f"{resource['phase']}: {resource['reason']}" for resource in resources}

            nobody.wait_until(lambda: told() == {f"failed: the kubelet {reason}"})
        assert agent.process.poll() is None
        with good_kubelet(socket_folder, google_messages):
            nobody.wait_until(lambda: get(url)[0] == 200)
            assert agent.stop() == 0


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_pod_resources_that_misbehave_are_as_none(
    socket_folder: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = socket_folder / "pods.sock"
    asked = PodResources(str(path))
    misbehaviour, reason = MISBEHAVIOURS[name]
    with evil_kubelet(path, misbehaviour), caplog.at_level("INFO"):
        assert anyio.run(asked.holders) is None
    assert reason in caplog.text
    assert "Traceback" not in caplog.text
    with pod_resources(path):
        assert anyio.run(asked.holders) == ()
