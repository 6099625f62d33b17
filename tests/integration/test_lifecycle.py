"""Registration, and all the ways in which it ends: over real sockets, with grpcio's kubelet."""

import json
import shutil
import signal
import socket
from pathlib import Path
from types import ModuleType

import pytest

from tests.defaults import DEFAULT_COUNTS
from tests.integration.agents import ONLY_NVIDIA, agent_process, get, run_cli
from tests.integration.grpcio_kubelet import GrpcioKubelet

ALL = set(DEFAULT_COUNTS)
NVIDIA = {name for name in ALL if name.startswith("nvidia.com/")}


def endpoints(kubelet: GrpcioKubelet) -> list[str]:
    return [registration.endpoint for registration in kubelet.registrations]


def sockets(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("hami-mock-*.sock"))


def test_all_eight_resources_register_with_the_counts_of_the_flags(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder):
        kubelet.wait_for_lists(ALL)
        assert {name: len(kubelet.devices(name)) for name in ALL} == DEFAULT_COUNTS
        assert {r.version for r in kubelet.registrations} == {"v1beta1"}
        preferring = {
            r.resource
            for r in kubelet.registrations
            if r.options.get_preferred_allocation_available
        }
        assert preferring == {"nvidia.com/gpu", "cambricon.com/vmlu", "iluvatar.ai/vgpu"}
        prepared = {r.resource for r in kubelet.registrations if r.options.pre_start_required}
        assert prepared == preferring
        assert set(endpoints(kubelet)) == set(sockets(kubelet.folder))


def test_no_id_is_shared_by_two_resources(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder):
        kubelet.wait_for_lists(ALL)
    ids = [device_id for name in ALL for device_id in kubelet.devices(name)]
    assert len(ids) == len(set(ids)) == sum(DEFAULT_COUNTS.values())


def test_ids_are_the_same_after_a_restart_of_the_agent(kubelet: GrpcioKubelet) -> None:
    lists = []
    for number in (1, 2):
        with agent_process(kubelet.folder) as agent:
            kubelet.wait_for_lists(ALL, registrations=number)
            lists.append({name: kubelet.current(name).lists[-1] for name in ALL})
            assert agent.stop() == 0
    assert lists[0] == lists[1]


@pytest.mark.parametrize("folder_exists", [True, False])
def test_waits_for_a_kubelet_that_is_not_there_yet(
    socket_folder: Path, google_messages: ModuleType, folder_exists: bool
) -> None:
    folder = socket_folder / "plugins"
    if folder_exists:
        folder.mkdir()
    with agent_process(folder) as agent:
        agent.wait_for_log("no kubelet at" if folder_exists else "there is no")
        folder.mkdir(exist_ok=True)
        with GrpcioKubelet(folder, google_messages) as kubelet:
            kubelet.wait_for_lists(ALL)
            assert {name: len(kubelet.devices(name)) for name in ALL} == DEFAULT_COUNTS


def test_registers_again_under_fresh_names_after_a_kubelet_restart(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder):
        for restarts in range(3):
            kubelet.wait_for_lists(ALL, registrations=restarts + 1)
            before = endpoints(kubelet)
            kubelet.restart()
            kubelet.wait_for_lists(ALL, registrations=restarts + 2)
            assert not set(endpoints(kubelet)[len(before) :]) & set(before)
        assert {name: len(kubelet.devices(name)) for name in ALL} == DEFAULT_COUNTS


def test_survives_a_kubelet_that_is_killed_and_comes_back_later(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, *ONLY_NVIDIA) as agent:
        kubelet.wait_for_lists(NVIDIA)
        kubelet.kill()
        agent.wait_for_log("no kubelet")
        kubelet.restart()
        kubelet.wait_for_lists(NVIDIA, registrations=2)


def test_survives_a_folder_that_is_replaced(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, *ONLY_NVIDIA):
        kubelet.wait_for_lists(NVIDIA)
        kubelet.kill()
        # The agent removes its sockets at the same time.
        while kubelet.folder.exists():
            shutil.rmtree(kubelet.folder, ignore_errors=True)
        kubelet.folder.mkdir()
        kubelet.start()
        kubelet.wait_for_lists(NVIDIA, registrations=2)


def test_only_the_resource_whose_socket_vanished_registers_again(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, *ONLY_NVIDIA):
        kubelet.wait_for_lists(NVIDIA)
        (kubelet.folder / kubelet.current("nvidia.com/gpumem").endpoint).unlink()
        kubelet.wait_for_lists({"nvidia.com/gpumem"}, registrations=2)
        kubelet.wait_until(lambda: ("end", "nvidia.com/gpumem") in kubelet.events, "the end")
        assert len(kubelet.registrations) == len(NVIDIA) + 1
        assert kubelet.events.count(("end", "nvidia.com/gpumem")) == 1
        assert not any(kubelet.current(name).ended for name in NVIDIA)


def test_the_old_stream_ends_before_the_new_registration(kubelet: GrpcioKubelet) -> None:
    resource = "nvidia.com/gpumem"
    with agent_process(kubelet.folder, *ONLY_NVIDIA):
        kubelet.wait_for_lists(NVIDIA)
        (kubelet.folder / kubelet.current(resource).endpoint).unlink()
        kubelet.wait_for_lists({resource}, registrations=2)
    story = [event for event, name in kubelet.events if name == resource]
    assert story[:5] == ["register", "list", "end", "register", "list"]


def test_a_taken_over_resource_registers_again_and_leaves_the_others_alone(
    kubelet: GrpcioKubelet,
) -> None:
    with agent_process(kubelet.folder, *ONLY_NVIDIA):
        kubelet.wait_for_lists(NVIDIA)
        # What a kubelet does to the old plugin when another one takes its resource.
        kubelet.current("nvidia.com/gpu").stream.cancel()
        kubelet.wait_for_lists({"nvidia.com/gpu"}, registrations=2)
        assert len(kubelet.registrations) == len(NVIDIA) + 1


def test_a_second_agent_on_the_folder_is_refused(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, *ONLY_NVIDIA) as first:
        kubelet.wait_for_lists(NVIDIA)
        # A kubelet that starts empties its folder; that lets nobody else in.
        kubelet.restart()
        kubelet.wait_for_lists(NVIDIA, registrations=2)
        before = sockets(kubelet.folder)
        second = run_cli("run", f"--socket-dir={kubelet.folder}", "--http-listen=")
        assert second.returncode == 1
        assert second.stderr == (
            f"hami-mock: --socket-dir: another hami-mock (process {first.process.pid}) serves "
            f"'{kubelet.folder}': stop it, or choose another folder\n"
        )
        assert sockets(kubelet.folder) == before
        kubelet.plugin("nvidia.com/gpu").allocate(sorted(kubelet.devices("nvidia.com/gpu"))[:1])


def test_an_agent_that_knows_no_lock_makes_the_other_one_unready(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, *ONLY_NVIDIA, http="127.0.0.1:0") as agent:
        url = f"http://{agent.wait_for_log('HTTP at').split('HTTP at ')[1].strip()}/readyz"
        kubelet.wait_until(lambda: get(url)[0] == 200, "readiness")
        other = kubelet.folder / "hami-mock-other.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(other))
            listener.listen()
            kubelet.wait_until(lambda: get(url)[0] == 503, "readiness to go")

            def all_failed() -> bool:
                resources = json.loads(get(url)[1])["resources"]
                return all(
                    resources[name]["phase"] == "failed"
                    and "another hami-mock (hami-mock-other.sock)" in resources[name]["reason"]
                    for name in NVIDIA
                )

            kubelet.wait_until(all_failed, "the failure of each")
        other.unlink()
        kubelet.wait_for_lists(NVIDIA, registrations=2)
        kubelet.wait_until(lambda: get(url)[0] == 200, "readiness to come back")


def test_the_sockets_of_a_killed_agent_are_removed(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, *ONLY_NVIDIA) as killed:
        kubelet.wait_for_lists(NVIDIA)
        left = sockets(kubelet.folder)
        killed.process.kill()
        killed.process.wait()
    assert sockets(kubelet.folder) == left
    with agent_process(kubelet.folder, *ONLY_NVIDIA):
        kubelet.wait_for_lists(NVIDIA, registrations=2)
        assert not set(left) & set(sockets(kubelet.folder))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_with_open_streams_ends_it_cleanly(
    kubelet: GrpcioKubelet, number: signal.Signals
) -> None:
    with agent_process(kubelet.folder) as agent:
        kubelet.wait_for_lists(ALL)
        assert agent.stop(number) == 0
        kubelet.wait_until(lambda: all(r.ended for r in kubelet.registrations), "ended streams")
        assert sockets(kubelet.folder) == []


def test_a_signal_before_any_kubelet_ends_it_cleanly(socket_folder: Path) -> None:
    with agent_process(socket_folder) as agent:
        agent.wait_for_log("no kubelet at")
        assert agent.stop() == 0


def test_a_signal_ends_it_although_a_client_does_not_read(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, "--nvidia-memory=131072") as agent:
        kubelet.wait_for_lists(ALL)
        stream = kubelet.plugin("nvidia.com/gpumem").open_list()
        assert stream.initial_metadata() is not None
        assert agent.stop() == 0
        assert sockets(kubelet.folder) == []
