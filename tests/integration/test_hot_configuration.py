"""The configuration changes while the agent runs, by file, signal or command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from hami_mock.cli.main import main
from hami_mock.kit import folder_watch
from hami_mock.node.event_kinds import Kind
from hami_mock.sources import configuration, inventory
from tests.integration.agents import AgentProcess, AgentThread, agent_process, agent_thread, get
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.pod_resources import pod_resources

GPU = "nvidia.com/gpu"
CORES = "nvidia.com/gpucores"
GPUMEM = "nvidia.com/gpumem"
NVIDIA = {GPU, CORES, GPUMEM, f"{GPUMEM}-percentage"}
MLU = "cambricon.com/vmlu"
ALL = NVIDIA | {MLU}
RECORD = "hami-mock-units.json"

SMALL = {"iluvatar_cards": 0, "ascend_cards": 0, "nvidia_memory": 50}


def text(**options: object) -> str:
    """A file for a small node with these options."""
    return "".join(
        f"{name.replace('_', '-')}: {json.dumps(value)}\n"
        for name, value in {**SMALL, **options}.items()
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config" / "hami-mock.yaml"
    path.parent.mkdir()
    path.write_text(text())
    return path


@contextmanager
def running(
    kubelet: GrpcioKubelet, file: Path, *, registrations: int = 1
) -> Iterator[AgentProcess]:
    """An agent process that follows the file, with all of its resources watched."""
    with agent_process(kubelet.folder, f"--config={file}", http="127.0.0.1:0") as agent:
        kubelet.wait_for_lists(ALL, registrations)
        yield agent


@contextmanager
def following(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch, **flags: str
) -> Iterator[AgentThread]:
    """The same in a thread that waits for nothing but the file system's own word."""
    monkeypatch.setattr(configuration, "_SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(folder_watch, "_CHECK_SECONDS", 1000.0)
    with agent_thread(kubelet.folder, config=str(file), **flags) as agent:
        kubelet.wait_for_lists(ALL)
        yield agent


def count(kubelet: GrpcioKubelet, resource: str) -> int:
    return sum(health == "Healthy" for health in kubelet.devices(resource).values())


def wait_for_count(kubelet: GrpcioKubelet, resource: str, wanted: int) -> None:
    kubelet.wait_until(
        lambda: bool(kubelet.current(resource).lists) and count(kubelet, resource) == wanted,
        f"{wanted} healthy {resource}",
    )


def replace_by_rename(file: Path, content: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(content)
    new.replace(file)


def swap_config_map(file: Path, version: str, content: str) -> None:
    """Do what the kubelet does when a ConfigMap changes: a new folder, and one link to it."""
    folder = file.parent / f"..2026_{version}"
    folder.mkdir()
    (folder / file.name).write_text(content)
    link = file.parent / "..data_tmp"
    link.symlink_to(folder.name)
    link.replace(file.parent / "..data")


def test_a_file_that_is_written_in_place_is_followed(kubelet: GrpcioKubelet, file: Path) -> None:
    with running(kubelet, file) as agent:
        before = kubelet.devices(GPUMEM)
        file.write_text(text(nvidia_cards=3))
        wait_for_count(kubelet, GPUMEM, 150)
        wait_for_count(kubelet, GPU, 30)
        assert before.items() <= kubelet.devices(GPUMEM).items()
        line = agent.wait_for_log("ConfigurationChanged")
        assert "nvidia/2: new (V100-SXM2-32GB 50 MiB)" in line
        assert f"{GPUMEM}: 100 x 1 MiB → 150 x 1 MiB" in line
        assert len(kubelet.registrations) == len(ALL)


def test_a_file_that_is_replaced_is_followed(kubelet: GrpcioKubelet, file: Path) -> None:
    with running(kubelet, file):
        for memory in (60, 70):
            replace_by_rename(file, text(nvidia_memory=memory))
            wait_for_count(kubelet, GPUMEM, 2 * memory)


def test_a_config_map_that_is_swapped_is_followed(kubelet: GrpcioKubelet, file: Path) -> None:
    file.unlink()
    swap_config_map(file, "01", text())
    file.symlink_to(Path("..data") / file.name)
    with running(kubelet, file):
        for version, memory in (("02", 60), ("03", 70)):
            swap_config_map(file, version, text(nvidia_memory=memory))
            wait_for_count(kubelet, GPUMEM, 2 * memory)


def test_a_signal_with_nothing_new_changes_nothing(kubelet: GrpcioKubelet, file: Path) -> None:
    with running(kubelet, file) as agent:
        for _ in range(2):
            os.kill(agent.process.pid, signal.SIGHUP)
            agent.wait_for_log("SIGHUP: reading the configuration again")
        # What comes after it is sent after whatever it would have sent.
        file.write_text(text(mlu_split=3))
        wait_for_count(kubelet, MLU, 6)
        assert "nvidia" not in agent.wait_for_log("ConfigurationChanged")
        assert {name: len(kubelet.current(name).lists) for name in NVIDIA} == dict.fromkeys(
            NVIDIA, 1
        )
        assert len(kubelet.registrations) == len(ALL)
        assert agent.stop() == 0


# SIGHUP as soon as our code runs, and while the agent reads its settings.
HEARS_AT_ONCE = """
import os, signal, sys
from hami_mock import __main__
set_mask = signal.pthread_sigmask
def set_mask_and_hear(how, signals):
    set_mask(how, signals)
    if how == signal.SIG_BLOCK:
        os.kill(os.getpid(), signal.SIGHUP)
signal.pthread_sigmask = set_mask_and_hear
sys.exit(__main__.main())
"""
HEARS_WHILE_LOADING = """
import os, signal, sys
from hami_mock.cli import main, run
load = run.load
def load_and_hear(flags):
    os.kill(os.getpid(), signal.SIGHUP)
    return load(flags)
run.load = load_and_hear
sys.exit(main.main())
"""


@pytest.mark.parametrize("program", [HEARS_AT_ONCE, HEARS_WHILE_LOADING])
def test_a_signal_during_the_start_harms_nobody(kubelet: GrpcioKubelet, program: str) -> None:
    flags = [f"--socket-dir={kubelet.folder}", "--http-listen=", "--nvidia-memory=50"]
    command = [sys.executable, "-c", program, "run", *flags]
    agent = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        kubelet.wait_for_lists(NVIDIA)
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(timeout=10) == 0
    finally:
        agent.kill()
        agent.wait()


def test_what_is_no_agent_ends_with_its_terminal() -> None:
    command = [sys.executable, "-c", HEARS_AT_ONCE, "version"]
    ended = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert ended.returncode == -signal.SIGHUP
    assert ended.stdout == b""


def test_a_signal_reads_what_no_watch_can_see(
    kubelet: GrpcioKubelet, file: Path, tmp_path: Path
) -> None:
    """A link to a file in another folder, whose content changes there."""
    real = tmp_path / "elsewhere.yaml"
    file.replace(real)
    file.symlink_to(real)
    with running(kubelet, file) as agent:
        real.write_text(text(nvidia_memory=60))
        os.kill(agent.process.pid, signal.SIGHUP)
        wait_for_count(kubelet, GPUMEM, 120)


def test_a_broken_file_leaves_all_as_it_is_and_everybody_is_told(
    kubelet: GrpcioKubelet, file: Path
) -> None:
    with running(kubelet, file) as agent:
        url = f"http://{agent.wait_for_log('HTTP at').split('HTTP at ')[1].strip()}"
        kubelet.wait_until(lambda: get(f"{url}/readyz")[0] == 200, "readiness")
        file.write_text(text(nvidia_cards=-1))
        line = agent.wait_for_log("ConfigurationRejected")
        problem = f"{file}: nvidia-cards: -1 is not allowed"
        assert problem in line
        status, body = get(f"{url}/readyz")
        assert status == 200, "the old configuration still serves"
        told = json.loads(body)["configuration"]
        assert [error.startswith(problem) for error in told["error"]] == [True]
        assert "hami_mock_configuration_error 1.0" in get(f"{url}/metrics")[1]
        file.write_text(text(nvidia_cards=3))
        wait_for_count(kubelet, GPUMEM, 150)
        # The cards change first.
        kubelet.wait_until(
            lambda: json.loads(get(f"{url}/readyz")[1])["configuration"]["error"] is None,
            "no error",
        )
        assert "hami_mock_configuration_error 0.0" in get(f"{url}/metrics")[1]
        assert len(kubelet.registrations) == len(ALL)


@pytest.mark.parametrize(
    "broken",
    [
        "nvidia: [",
        "nvidia-cards: 128\nnvidia-memory: 99999\n",
        "nvidia-crads: 2\n",
        "nvidia-cards: 0x" + "f" * 4000,
        "a: " + "[" * 50_000,
        "".join(f"unknown-{i}: 1\n" for i in range(60_000)),
        None,
    ],
    ids=[
        "no YAML",
        "over the limit",
        "a wrong key",
        "a huge number",
        "too deep",
        "many",
        "no file",
    ],
)
def test_a_mistake_is_kept_until_it_is_mended(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch, broken: str | None
) -> None:
    with following(kubelet, file, monkeypatch) as agent:
        before = file.read_text()
        node = agent.agent.node
        if broken is None:
            file.unlink()
        else:
            file.write_text(broken)
        kubelet.wait_until(lambda: bool(agent.agent.configuration.error), "the error")
        assert agent.agent.node is node
        file.write_text(before)
        kubelet.wait_until(lambda: not agent.agent.configuration.error, "no error")
        assert [event.kind for event in agent.agent.state.events.after(0)] == [
            Kind.CONFIGURATION_REJECTED
        ]
        assert {name: len(kubelet.current(name).lists) for name in ALL} == dict.fromkeys(ALL, 1)


def test_lists_of_a_vendor_are_not_sent_again_because_another_one_changed(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(kubelet, file, monkeypatch):
        for split in (3, 4, 5):
            file.write_text(text(mlu_split=split))
            wait_for_count(kubelet, MLU, 2 * split)
        assert len(kubelet.current(MLU).lists) == 4
        assert {name: len(kubelet.current(name).lists) for name in NVIDIA} == dict.fromkeys(
            NVIDIA, 1
        )


def test_cards_that_grow_and_shrink_keep_the_devices_that_stay(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(kubelet, file, monkeypatch) as agent:
        before = {name: kubelet.devices(name) for name in ALL}
        file.write_text(text(nvidia_cards=3, nvidia_memory=60, nvidia_split=12))
        wait_for_count(kubelet, GPUMEM, 180)
        wait_for_count(kubelet, GPU, 36)
        file.write_text(text())
        for name, devices in before.items():
            wait_for_count(kubelet, name, len(devices))
            healthy = {i for i, health in kubelet.devices(name).items() if health == "Healthy"}
            assert healthy == devices.keys()
        # Nobody can be asked who holds the others: they stay, and nothing is placed on them.
        assert len(kubelet.devices(GPUMEM)) == 180
        assert set(kubelet.devices(GPUMEM).values()) == {"Healthy", "Unhealthy"}
        assert agent.agent.state.node.retired == 180 - 100 + 36 - 20 + 100 + 100
        assert len(kubelet.registrations) == len(ALL)


def test_a_retired_device_is_not_given(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(kubelet, file, monkeypatch):
        file.write_text(text(nvidia_memory=40))
        wait_for_count(kubelet, GPUMEM, 80)
        cut = [i for i, health in kubelet.devices(GPUMEM).items() if health != "Healthy"]
        with pytest.raises(grpc.RpcError) as caught:
            kubelet.plugin(GPUMEM).allocate(cut[:1])
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_vendor_goes_and_comes(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(kubelet, file, monkeypatch) as agent:
        old = {name: kubelet.current(name) for name in NVIDIA}
        file.write_text(text(nvidia_cards=0))
        kubelet.wait_until(lambda: all(r.ended for r in old.values()), "the end of the lists")
        kubelet.wait_until(lambda: len(agent.agent.plugins) == 1, "one plugin")
        kubelet.wait_until(
            lambda: len(list(kubelet.folder.glob("hami-mock-*.sock"))) == 1, "one socket"
        )
        assert not kubelet.current(MLU).ended
        file.write_text(text())
        kubelet.wait_for_lists(NVIDIA, registrations=2)
        assert [p.resource.name for p in agent.agent.plugins] == [
            r.name for r in agent.agent.node.resources
        ]
        assert len(kubelet.registrations) == len(ALL) + len(NVIDIA)


def test_a_vendor_that_goes_after_it_grew_sends_no_list_of_long_ago(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(kubelet, file, monkeypatch):
        old = {name: kubelet.current(name) for name in NVIDIA}
        file.write_text(text(nvidia_cards=3))
        kubelet.wait_until(lambda: all(len(r.lists) == 2 for r in old.values()), "the lists")
        file.write_text(text(nvidia_cards=0))
        kubelet.wait_until(lambda: all(r.ended for r in old.values()), "the end of the lists")
        assert {name: len(r.lists) for name, r in old.items()} == dict.fromkeys(NVIDIA, 2)


def test_a_renamed_resource_is_registered_under_its_new_name_alone(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(kubelet, file, monkeypatch):
        old = kubelet.current(GPUMEM)
        file.write_text(text(resource_mem="example.com/mem"))
        kubelet.wait_for_lists({"example.com/mem"})
        kubelet.wait_until(lambda: old.ended, "the end of the old name")
        assert len(kubelet.devices("example.com/mem")) == 100
        assert not any(kubelet.current(name).ended for name in ALL - {GPUMEM})


def test_a_resource_that_is_left_out_goes_and_comes_back(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(kubelet, file, monkeypatch) as agent:
        old = kubelet.current(GPUMEM)
        file.write_text(text(resource_mem=""))
        kubelet.wait_until(lambda: old.ended, "the end of the list")
        assert [card.memory for card in agent.agent.node.cards[:2]] == [50, 50]
        assert not any(kubelet.current(name).ended for name in ALL - {GPUMEM})
        file.write_text(text())
        kubelet.wait_for_lists({GPUMEM}, registrations=2)
        assert len(kubelet.devices(GPUMEM)) == 100


def test_two_resources_that_swap_their_names_end_before_they_begin(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(kubelet, file, monkeypatch):
        file.write_text(text(resource_mem=CORES, resource_cores=GPUMEM))
        kubelet.wait_for_lists({CORES, GPUMEM}, registrations=2)
        assert (count(kubelet, CORES), count(kubelet, GPUMEM)) == (100, 200)
        for name in (CORES, GPUMEM):
            story = [event for event, of in kubelet.events if of == name and event != "list"]
            assert story == ["register", "end", "register"]
            # Nobody heard from the old one what the new one has.
            first = next(r for r in kubelet.registrations if r.resource == name)
            assert len(first.lists) == 1


def test_what_was_set_by_command_beats_the_file_until_it_is_reset(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with following(kubelet, file, monkeypatch) as agent:
        agent.call(agent.agent.configuration.set_options, {"nvidia-memory": "70"})
        wait_for_count(kubelet, GPUMEM, 140)
        file.write_text(text(nvidia_memory=60, mlu_split=3))
        wait_for_count(kubelet, MLU, 6)
        assert count(kubelet, GPUMEM) == 140
        agent.call(lambda: agent.agent.configuration.set_options({}, reset=True))
        wait_for_count(kubelet, GPUMEM, 120)


def test_what_a_running_agent_can_not_take_is_refused_with_exit_code_2(
    kubelet: GrpcioKubelet,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file.write_text(
        text(nvidia_groups=[{"cards": 2, "memory": 50}]).replace("nvidia-memory: 50\n", "")
    )
    socket = str(kubelet.folder / "control.sock")
    with following(kubelet, file, monkeypatch, control_socket=socket):
        ctl = ["ctl", "--control-socket", socket, "set"]
        assert main([*ctl, "log-format=json"]) == 2
        assert "log-format: it can't change while the agent is running" in capsys.readouterr().err
        assert main([*ctl, "nvidia-model=T4"]) == 2
        assert "nvidia-groups lists the cards" in capsys.readouterr().err
        assert main([*ctl, "ignored-xids=79"]) == 0
        assert capsys.readouterr().out == "ignored-xids: 13,31,43,45,68,109 → 79\n"
        assert main([*ctl, "nvidia-cards=1"]) == 0
        wait_for_count(kubelet, GPUMEM, 50)


def test_units_that_pods_hold_stay_until_they_are_given_back(
    kubelet: GrpcioKubelet, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory, "_SETTLE_SECONDS", 0.05)
    monkeypatch.setattr(inventory, "_AGAIN_SECONDS", 0.05)
    socket = kubelet.folder / "pods.socket"
    with (
        pod_resources(socket) as pods,
        following(kubelet, file, monkeypatch, pod_resources_socket=str(socket)) as agent,
    ):
        before = kubelet.devices(GPUMEM)
        memory, slots = list(before), list(kubelet.devices(GPU))
        held = {GPUMEM: [memory[5], memory[95], memory[97]], GPU: [slots[19]]}
        pods.pods = {("default", "train", "main"): held}
        file.write_text(text(nvidia_cards=1))
        wait_for_count(kubelet, GPUMEM, 50)
        # First all that was cut is unhealthy; then what nobody holds leaves.
        assert before.keys() == dict(_list(kubelet, GPUMEM, 1)).keys()
        kubelet.wait_until(lambda: len(kubelet.devices(GPUMEM)) == 52, "the release")
        kubelet.wait_until(lambda: len(kubelet.devices(GPU)) == 11, "the release of slots")
        assert kubelet.devices(GPUMEM) == dict.fromkeys(memory[:50], "Healthy") | dict.fromkeys(
            held[GPUMEM][1:], "Unhealthy"
        )
        assert kubelet.devices(GPU)[slots[19]] == "Unhealthy"
        asked = pods.asked
        kubelet.wait_until(lambda: pods.asked > asked + 2, "more questions")
        assert agent.agent.node.retired == 3
        # A new card may not get the numbers of what is held.
        file.write_text(text(nvidia_cards=1, nvidia_memory=120))
        wait_for_count(kubelet, GPUMEM, 120)
        assert kubelet.devices(GPUMEM)[memory[95]] == "Unhealthy"
        pods.pods = {}
        kubelet.wait_until(lambda: agent.agent.node.retired == 0, "the release of the rest")
        kubelet.wait_until(lambda: len(kubelet.devices(GPUMEM)) == 120, "the list without them")
        assert agent.agent.state.events.counts[Kind.DEVICES_RELEASED] == 2


def _list(kubelet: GrpcioKubelet, resource: str, number: int) -> dict[str, str]:
    payload = kubelet.current(resource).lists[number]
    message = kubelet.messages.ListAndWatchResponse.FromString(payload)
    return {device.id: device.health for device in message.devices}


def test_numbers_are_the_same_after_a_restart_of_the_agent(
    kubelet: GrpcioKubelet, file: Path
) -> None:
    record = kubelet.folder / RECORD
    with running(kubelet, file) as agent:
        assert record.exists()
        file.write_text(text(nvidia_memory=60))
        wait_for_count(kubelet, GPUMEM, 120)
        grown = kubelet.devices(GPUMEM)
        agent.wait_for_log("ConfigurationChanged")
        assert record.exists()
        assert agent.stop() == 0
    with running(kubelet, file, registrations=2) as agent:
        assert kubelet.devices(GPUMEM) == grown
        # The first card still has the units that it had: they go with it.
        file.write_text(text(nvidia_memory=60, nvidia_cards=1))
        wait_for_count(kubelet, GPUMEM, 60)
        own = {i for i, health in kubelet.devices(GPUMEM).items() if health == "Healthy"}
        assert own == set(list(grown)[:60])
        assert agent.stop() == 0
