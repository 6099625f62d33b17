"""A part of the agent that fails: the others go on, and everybody who asks is told."""

import json
from pathlib import Path
from types import ModuleType

import pytest
from anyio.abc import TaskGroup, TaskStatus

from hami_mock.cli.ctl import screens
from hami_mock.kit import supervision
from hami_mock.sources.holders import HolderReader
from hami_mock.views.deviceplugin.plugins import Plugins
from tests.integration.agents import agent_thread, get
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.integration.test_evil_kubelet import FEW, NVIDIA, good_kubelet


class Fault:
    """Lets the reader of holders fail for as long as it is there."""

    is_there = True


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Fault:
    fault = Fault()
    run = HolderReader.run

    async def broken(self: HolderReader, *, task_status: TaskStatus[None]) -> None:
        task_status.started()
        if fault.is_there:
            raise RuntimeError("out of luck")
        await run(self)

    monkeypatch.setattr(HolderReader, "run", broken)
    monkeypatch.setattr(supervision, "_STEADY_SECONDS", 0.1)
    return fault


def test_a_part_that_fails_is_seen_everywhere_and_the_rest_works(
    socket_folder: Path, google_messages: ModuleType, fault: Fault
) -> None:
    nobody = GrpcioKubelet(socket_folder, google_messages)
    with (
        agent_thread(socket_folder, http_listen="127.0.0.1:0", **FEW) as agent,
        good_kubelet(socket_folder, google_messages),
    ):
        url = f"http://{agent.agent.views[0].status()['address']}"
        nobody.wait_until(lambda: bool(agent.agent.supervisor.failures))
        code, body = get(f"{url}/readyz")
        assert code == 503
        assert json.loads(body)["failures"] == {"holders": "RuntimeError: out of luck"}
        metrics = get(f"{url}/metrics")[1]
        assert 'hami_mock_part_failing{part="holders"} 1.0' in metrics
        assert 'hami_mock_part_failing{part="device plugins"} 0.0' in metrics
        assert 'hami_mock_part_failures_total{part="holders"}' in metrics
        status = agent.call(agent.agent.status)
        assert not status["ready"]
        told = "not working: holders: RuntimeError: out of luck"
        assert told in list(screens.status(status))
        fault.is_there = False
        nobody.wait_until(lambda: get(f"{url}/readyz")[0] == 200, "readiness")
        assert 'hami_mock_part_failing{part="holders"} 0.0' in get(f"{url}/metrics")[1]


def test_plugins_that_fail_register_again(
    socket_folder: Path, google_messages: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = Plugins._follow
    errors = [RuntimeError("out of luck")]

    async def broken(self: Plugins, tasks: TaskGroup) -> None:
        if self._state.faults and errors:
            raise errors.pop()
        await follow(self, tasks)

    monkeypatch.setattr(Plugins, "_follow", broken)
    with (
        agent_thread(socket_folder, **FEW) as agent,
        good_kubelet(socket_folder, google_messages) as kubelet,
    ):
        agent.act("degrade", "nvidia/0")
        kubelet.wait_for_lists(NVIDIA, registrations=2)
        assert agent.agent.supervisor.counts["device plugins"] == 1
        # They stop and start as ever.
        for count in ("0", "1"):
            agent.call(agent.agent.set_options, {"nvidia-cards": count}, False)
        kubelet.wait_for_lists(NVIDIA, registrations=3)
