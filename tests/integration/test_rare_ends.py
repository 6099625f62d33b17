"""Ends of a registration, and of other things, that take a contrived kubelet or client."""

import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from hami_mock.agent import Agent
from hami_mock.cli import demo, embedded_kubelet
from hami_mock.cli.embedded_kubelet import DeviceSet, EmbeddedKubelet
from hami_mock.faults.actions import Action, perform
from hami_mock.kit.concurrency import Backoff
from hami_mock.kubelet import rpc
from hami_mock.kubelet._proto.v1beta1 import (
    DevicePluginOptions,
    Empty,
    RegisterRequest,
    RegistrationBase,
)
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.deviceplugin import lifecycle
from hami_mock.views.deviceplugin.lifecycle import Phase
from hami_mock.views.deviceplugin.server import serve
from hami_mock.views.http.server import Answer, serve_http


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def make_agent(folder: Path) -> Agent:
    flags = {"socket-dir": str(folder), "http-listen": "", "nvidia-memory": "10"}
    flags |= {f"{vendor}-cards": "0" for vendor in ("mlu", "iluvatar", "ascend")}
    settings = load(flags)
    return Agent(settings, configured_node(settings, None))


async def wait_until(condition: Callable[[], bool]) -> None:
    """Look again and again: counters tell nobody when they change."""
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


class ForgetfulKubelet(RegistrationBase):
    """Takes registrations and does nothing with them."""

    async def register(self, message: RegisterRequest) -> Empty:
        return Empty()


@pytest.mark.anyio
async def test_a_kubelet_that_never_opens_the_list_is_asked_again(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "_WATCH_SECONDS", 0.05)
    agent = make_agent(socket_folder)
    plugin = agent.plugins[0]
    path = socket_folder / "kubelet.sock"
    async with (
        serve(ForgetfulKubelet(), path, end_streams=lambda: None),
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(agent.run)
        await wait_until(lambda: plugin.counters.registrations >= 2)
        await wait_until(lambda: plugin.phase is Phase.FAILED)
        assert "didn't open the list" in plugin.reason
        tasks.cancel_scope.cancel()
    assert plugin.phase is Phase.STOPPED


@pytest.mark.anyio
async def test_a_folder_that_is_not_there_is_named(socket_folder: Path) -> None:
    agent = make_agent(socket_folder / "device-plugin")
    async with anyio.create_task_group() as tasks:
        await tasks.start(agent.run)
        await wait_until(lambda: agent.plugins[0].phase is Phase.WAITING)
        assert agent.plugins[0].reason == f"there is no {socket_folder}/device-plugin"
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_kubelet_that_does_not_answer_counts_as_refusing(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SilentKubelet(RegistrationBase):
        async def register(self, message: RegisterRequest) -> Empty:
            await anyio.sleep_forever()
            return Empty()

    monkeypatch.setattr(lifecycle, "_REGISTER_SECONDS", 0.05)
    agent = make_agent(socket_folder)
    path = socket_folder / "kubelet.sock"
    async with (
        serve(SilentKubelet(), path, end_streams=lambda: None),
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(agent.run)
        await wait_until(lambda: agent.plugins[0].phase is Phase.FAILED)
        # Either side may be the first to say that the time is up.
        assert "kubelet" in agent.plugins[0].reason
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
@pytest.mark.parametrize("is_answered", [False, True])
async def test_a_kubelet_that_restarts_in_the_middle_is_not_waited_for(
    socket_folder: Path, is_answered: bool
) -> None:
    """The new kubelet would look in vain for a socket that its restart has deleted."""
    asked = anyio.Event()

    class HangingKubelet(RegistrationBase):
        async def register(self, message: RegisterRequest) -> Empty:
            asked.set()
            if not is_answered:
                await anyio.sleep_forever()
            return Empty()

    agent = make_agent(socket_folder)
    path = socket_folder / "kubelet.sock"
    async with (
        serve(HangingKubelet(), path, end_streams=lambda: None),
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(agent.run)
        await asked.wait()
        await wait_until(lambda: not is_answered or agent.plugins[0].counters.registrations == 1)
        # The old one still listens, though nobody finds it any more.
        for socket_file in socket_folder.glob("*.sock"):
            socket_file.unlink()
        await tasks.start(EmbeddedKubelet(socket_folder).run)
        await wait_until(lambda: all(p.phase is Phase.WATCHED for p in agent.plugins))
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_registration_that_is_not_answered_is_told_while_it_waits(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answer = anyio.Event()

    class SlowKubelet(RegistrationBase):
        async def register(self, message: RegisterRequest) -> Empty:
            await answer.wait()
            return Empty()

    monkeypatch.setattr(rpc, "_QUIET_SECONDS", 0.6)
    agent = make_agent(socket_folder)
    plugin = agent.plugins[0]
    path = socket_folder / "kubelet.sock"
    with caplog.at_level("INFO"):
        async with (
            serve(SlowKubelet(), path, end_streams=lambda: None),
            anyio.create_task_group() as tasks,
        ):
            await tasks.start(agent.run)
            await wait_until(lambda: "hasn't answered the registration for 1 s" in plugin.reason)
            assert plugin.phase is Phase.WAITING
            await wait_until(lambda: "hasn't answered the registration for 2 s" in plugin.reason)
            answer.set()
            await wait_until(lambda: plugin.phase is Phase.REGISTERED)
            assert plugin.counters.registration_errors == 0
            tasks.cancel_scope.cancel()
    assert "the kubelet hasn't answered the registration for 1 s" in caplog.text


@pytest.mark.anyio
@pytest.mark.parametrize(("steady", "errors"), [(0.0, 0), (1000.0, 1)])
async def test_a_list_that_ended_late_is_no_failure_and_one_that_ended_early_is(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch, steady: float, errors: int
) -> None:
    monkeypatch.setattr(lifecycle, "_STEADY_SECONDS", steady)
    agent = make_agent(socket_folder)
    plugin = agent.plugins[0]
    kubelet = EmbeddedKubelet(socket_folder)
    async with anyio.create_task_group() as tasks:
        await tasks.start(kubelet.run)
        await tasks.start(agent.run)
        name = plugin.resource.name
        await kubelet.wait_until(
            lambda: bool(name in kubelet.devices and kubelet.devices[name].free)
        )
        # From now on this kubelet takes every list for too large, and ends its stream.
        monkeypatch.setattr(embedded_kubelet, "fits", lambda size: False)
        perform(Action("fail", ("nvidia/0",)), agent.state)
        await wait_until(lambda: plugin.counters.registrations >= 2)
        assert plugin.counters.registration_errors >= errors
        assert errors or plugin.counters.registration_errors == 0
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_folder_that_can_not_be_written_is_tried_again(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_agent(socket_folder)
    (socket_folder / "kubelet.sock").touch()
    monkeypatch.setattr(lifecycle, "socket_name", lambda _: "no/such/folder.sock")
    async with anyio.create_task_group() as tasks:
        await tasks.start(agent.run)
        await wait_until(lambda: agent.plugins[0].counters.registration_errors >= 2)
        assert "No such file or directory" in agent.plugins[0].reason
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_new_kubelet_ends_the_pause_at_once(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    # A file that nobody listens on, as a killed kubelet leaves it; the next try is in 1000 s.
    (socket_folder / "kubelet.sock").touch()
    for plugin in agent.plugins:
        plugin._backoff = Backoff(first=1000, longest=1000)
    kubelet = EmbeddedKubelet(socket_folder)
    async with anyio.create_task_group() as tasks:
        await tasks.start(agent.run)
        await wait_until(lambda: all(p.counters.registration_errors for p in agent.plugins))
        (socket_folder / "kubelet.sock").unlink()
        await tasks.start(kubelet.run)
        await wait_until(lambda: all(p.phase is Phase.WATCHED for p in agent.plugins))
        assert all(p.counters.registration_errors == 1 for p in agent.plugins)
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_half_a_request_is_dropped_and_the_next_one_answered() -> None:
    async with serve_http("127.0.0.1:0", {"/x": lambda: Answer(b"yes")}) as address:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port))) as half:
            half.sendall(b"GET /x HT")
        stream = await anyio.connect_tcp(host, int(port))
        async with stream:
            await stream.send(b"GET /x HTTP/1.1\r\n\r\n")
            assert (await stream.receive()).endswith(b"\r\n\r\nyes")


@pytest.mark.anyio
async def test_the_demo_lets_pods_come_and_go(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Enough(Exception):
        pass

    rests = iter(range(120))
    sleep = anyio.sleep

    async def no_rest(_: float) -> None:
        await sleep(0.01)
        if next(rests, None) is None:
            raise Enough

    monkeypatch.setattr("hami_mock.cli.demo.anyio.sleep", no_rest)
    flags = {"nvidia-memory": "8", "ascend-cards": "0", "iluvatar-cards": "0", "mlu-split": "1"}
    with pytest.raises(ExceptionGroup) as caught:
        await demo.play(flags, keep=True)
    assert caught.group_contains(Enough)
    counts = {line for line in capsys.readouterr().out.splitlines() if "pods are running." in line}
    assert len(counts) > 2


def test_a_device_set_without_a_list_has_nothing_to_give() -> None:
    devices = DeviceSet("x.sock", DevicePluginOptions())
    assert (devices.capacity, devices.allocatable, devices.free) == (0, 0, set())
