"""An agent with --driver on, as a client of NVML and the kubelet see it."""

import ctypes
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hami_mock.cli.ctl.client import main as ctl
from hami_mock.cli.main import main
from hami_mock.node.cards import Card
from tests.e2e.harness.errors import RequirementsMissing
from tests.integration.agents import ONLY_NVIDIA, AgentThread, agent_process, agent_thread, get
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.integration.nvml_client import nvml_client, until
from tests.judges.namespace import need_namespaces, with_folders
from tests.pod_resources import pod_resources
from tests.unit.views.driver.reading import header
from tests.unit.views.exporters.rig import samples

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
pytestmark = pytest.mark.usefixtures("compiled_library")

MIB = 2**20
STARTED = "dcgm: metrics at"
"""What an agent says when it serves `ctl` and has a root."""
POD = ("default", "train-0", "main")
SMALL = {"nvidia_memory": "1000", "mlu_cards": "0", "iluvatar_cards": "0", "ascend_cards": "0"}


@pytest.fixture
def agent(socket_folder: Path, root: Path) -> Iterator[AgentThread]:
    with _agent(socket_folder, root) as found:
        yield found


def _agent(folder: Path, root: Path, **flags: str) -> Any:
    on = {"driver": "on", "driver_root": str(root), "nvidia_cards": "3"}
    return agent_thread(folder, **{**SMALL, **on, **flags})


def seen_of(card: Card) -> dict[str, Any]:
    return {
        "name": card.model.product,
        "uuid": card.uuid,
        "bus": card.pci_bus_id,
        "serial": card.serial,
        "minor": card.minor,
        "total": card.memory * MIB,
    }


def test_a_client_sees_every_card(agent: AgentThread, root: Path) -> None:
    with nvml_client(root) as client:
        seen = client.cards
    wanted = [seen_of(card) for card in agent.agent.node.cards]
    assert [{key: card[key] for key in wanted[0]} for card in seen] == wanted
    status = agent.call(agent.agent.status)["views"]["driver"]
    assert (status["root"], status["cards"]) == (str(root), 3)


def test_as_made_without_an_agent(root: Path) -> None:
    flags = ["--nvidia-cards=128", "--nvidia-model=B200"]
    assert main(["driver", "all", f"--driver-root={root}", "--node-name=n1", *flags]) == 0
    with nvml_client(root) as client:
        seen = client.cards
    assert len({card["uuid"] for card in seen}) == 128
    assert {(card["name"], card["busy"]) for card in seen} == {("NVIDIA B200", 0)}


@pytest.mark.parametrize(("version", "cuda"), [("535.183.01", 12020), ("570.86.15", 12080)])
def test_both_libraries_say_the_same_version_of_cuda(root: Path, version: str, cuda: int) -> None:
    flags = [f"--driver-root={root}", "--node-name=n1", f"--driver-version={version}"]
    assert main(["driver", "all", *flags]) == 0
    nvml = ctypes.CDLL(str(root / "lib64/libnvidia-ml.so.1"))
    other = ctypes.CDLL(str(root / "lib64/libcuda.so.1"))
    said, found = ctypes.c_int(), ctypes.c_int()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(said)) == 0
    assert other.cuDriverGetVersion(ctypes.byref(found)) == 0
    assert (said.value, found.value) == (cuda, cuda)
    # Whoever has the library open hears of another version.
    assert main(["driver", "all", *flags[:2], "--driver-version=550.54.15"]) == 0
    assert nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(said)) == 0
    assert said.value == 12040
    assert nvml.nvmlShutdown() == 0


def test_a_container_sees_only_what_it_may(agent: AgentThread, root: Path) -> None:
    second = agent.agent.node.cards[1].uuid
    with nvml_client(root, NVIDIA_VISIBLE_DEVICES=second) as client:
        assert [card["uuid"] for card in client.cards] == [second]


def test_a_xid_wakes_a_client_that_waits(socket_folder: Path, root: Path) -> None:
    control = socket_folder / "c" / "s"
    with (
        _agent(socket_folder, root, control_socket=str(control)) as agent,
        nvml_client(root) as client,
    ):
        second = agent.agent.node.cards[1]
        # Twice: the set is the same, and no event comes again.
        for xid in ("79", "31"):
            assert client.ask("wait") == "waiting"
            assert ctl([f"--control-socket={control}", "fail", second.name, "--xid", xid]) == 0
            assert client.hear() == [second.uuid, int(xid)]
        # After Xid 79 no driver reaches the card; the event says which one it was.
        until(lambda: "GPU is lost" in client.cards[1].get("error", ""))
        assert "error" not in client.cards[0]
        assert ctl([f"--control-socket={control}", "recover", second.name]) == 0
        until(lambda: "error" not in client.cards[1])


def test_a_xid_reaches_another_mount_namespace(
    socket_folder: Path, root: Path, tmp_path: Path
) -> None:
    """As in a pod: the folder is mounted at another place there, and nothing else is shared."""
    try:
        need_namespaces()
    except RequirementsMissing as missing:
        pytest.skip(str(missing))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    control = socket_folder / "c" / "s"
    within = partial(with_folders, {str(elsewhere): root})
    with (
        _agent(socket_folder, root, control_socket=str(control)) as agent,
        nvml_client(elsewhere, within) as client,
    ):
        assert client.ask("namespace") != str(Path("/proc/self/ns/mnt").readlink())
        third = agent.agent.node.cards[2]
        assert client.ask("wait") == "waiting"
        assert ctl([f"--control-socket={control}", "fail", third.name, "--xid", "94"]) == 0
        assert client.hear() == [third.uuid, 94]
        # The event comes last: what it tells of is there already.
        assert client.ask("recovery") == [0, 0, 1]
        assert ctl([f"--control-socket={control}", "recover", third.name]) == 0
        until(lambda: client.ask("recovery") == [0, 0, 0])


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("V100-SXM2-32GB", ("RETIRED_SBE", "RETIRED_DBE", "RETIRED_PENDING")),
        ("A100-SXM4-40GB", ("CORRECTABLE_REMAPPED_ROWS", "UNCORRECTABLE_REMAPPED_ROWS")),
    ],
)
def test_both_views_say_what_memory_a_card_has_lost(
    socket_folder: Path, root: Path, model: str, names: tuple[str, ...]
) -> None:
    flags = {"nvidia_model": model, "dcgm_listen": "127.0.0.1:0"}
    with _agent(socket_folder, root, **flags) as agent, nvml_client(root) as client:
        agent.act("fail", "nvidia/0", xid=63)
        agent.act("fail", "nvidia/0", xid=92)
        # Each model has one kind of damage, and refuses to say anything of the other.
        pages = [1, 1, 1] if names[0].startswith("RETIRED") else None
        until(
            lambda: client.ask("damage")[0] == {"pages": pages, "rows": None if pages else [1, 1]}
        )
        (view,) = [view for view in agent.agent.views if view.name == "dcgm"]
        found = samples(get(f"http://{view.status()['address']}/metrics")[1])
        shown = {
            name.removeprefix("DCGM_FI_DEV_"): value
            for (name, labels), value in found.items()
            if ("gpu", "0") in labels and re.search("REMAPPED_ROWS|RETIRED", name)
        }
        assert shown == dict.fromkeys(names, 1)


def test_a_lost_card_is_lost_until_it_returns(agent: AgentThread, root: Path) -> None:
    with nvml_client(root) as client:
        assert "error" not in client.cards[1]
        agent.act("lose", "nvidia/1")
        until(lambda: "error" in client.cards[1])
        assert "GPU is lost" in client.cards[1]["error"]
        assert "error" not in client.cards[0]
        agent.act("return", "nvidia/1")
        until(lambda: "error" not in client.cards[1])


def test_a_card_shows_what_its_metrics_show(socket_folder: Path, root: Path) -> None:
    pods_socket = socket_folder / "pods.sock"
    flags = {"dcgm_listen": "127.0.0.1:0", "load": "sine:20-80:10s"}
    with (
        pod_resources(pods_socket) as pods,
        _agent(socket_folder, root, pod_resources_socket=str(pods_socket), **flags) as agent,
        nvml_client(root) as client,
    ):
        first = agent.agent.node.cards[0]
        pods.pods[POD] = {"nvidia.com/gpu": [f"{first.uuid}-0"]}
        agent.call(agent.agent.holders.refresh)
        (view,) = [view for view in agent.agent.views if view.name == "dcgm"]
        url = f"http://{view.status()['address']}/metrics"

        def scraped() -> dict[str, float]:
            found = samples(get(url)[1])
            names = {"busy": "GPU_UTIL", "power": "POWER_USAGE", "temperature": "GPU_TEMP",
                     "used": "FB_USED", "energy": "TOTAL_ENERGY_CONSUMPTION"}  # fmt: skip
            return {
                key: found[of]
                for key, name in names.items()
                for of in found
                if of[0] == f"DCGM_FI_DEV_{name}" and ("UUID", first.uuid) in of[1]
            }

        def told_by_both() -> bool:
            """Look at both; the agent may be between the one and the other, but not for long."""
            before, seen = scraped(), client.cards[0]
            told = {**before, "power": before["power"] * 1000, "used": before["used"] * MIB}
            shown = {key: seen[key] for key in told}
            return before["busy"] > 0 and shown == pytest.approx(told, abs=1)

        # Each time another load.
        for _ in range(3):
            agent.call(agent.agent.state.load_changes.next().wait)
            until(told_by_both)
        ((pid, memory),) = client.ask("processes")[0]
        assert pid >= 100_000
        assert memory == agent.agent.state.load(first).memory * MIB


def test_the_last_state_stays_and_the_next_agent_goes_on(socket_folder: Path, root: Path) -> None:
    control = socket_folder / "c" / "s"
    flags = (
        *ONLY_NVIDIA, "--nvidia-memory=1000", "--driver=on", f"--driver-root={root}",
        f"--control-socket={control}", "--dcgm-listen=127.0.0.1:0",
    )  # fmt: skip
    with agent_process(socket_folder, *flags) as agent:
        agent.wait_for_log(STARTED)
        before = header(root / "state")
        with nvml_client(root) as client:
            agent.process.kill()
            agent.process.wait()
            seen = client.cards
            assert len(seen) == 2
            with agent_process(socket_folder, *flags) as again:
                again.wait_for_log(STARTED)
                assert header(root / "state")["generation"] == before["generation"]
                # The client from before hears of what happens now.
                assert client.ask("wait") == "waiting"
                assert ctl([f"--control-socket={control}", "fail", "nvidia/0", "--xid=94"]) == 0
                assert client.hear() == [seen[0]["uuid"], 94]


def test_cards_come_and_go_under_a_client(agent: AgentThread, root: Path) -> None:
    with nvml_client(root) as client:
        three = client.cards
        agent.call(agent.agent.set_options, {"nvidia-cards": "5"}, False)
        until(lambda: len(client.cards) == 5)
        assert client.cards[2]["uuid"] == three[2]["uuid"]
        until((root / "proc/driver/nvidia/gpus/0000:1f:00.0/information").exists)
        agent.call(agent.agent.set_options, {"nvidia-cards": "0"}, False)
        until(lambda: not client.cards)
        until(lambda: not (root / "proc/driver/nvidia/gpus").exists())


def test_allocate_gives_the_library_the_state_and_the_cards_own_nodes(
    kubelet: GrpcioKubelet, root: Path
) -> None:
    with _agent(kubelet.folder, root) as agent:
        kubelet.wait_for_lists({resource.name for resource in agent.agent.node.resources})
        uuids = [card.uuid for card in agent.agent.node.cards]
        two, none = kubelet.plugin("nvidia.com/gpu").allocate(
            [f"{uuids[2]}-0", f"{uuids[0]}-1"], []
        )
        mounts = {each.container_path: each.host_path for each in two.mounts}
        assert mounts["/usr/lib/libnvidia-ml.so.1"] == mounts["/usr/lib64/libnvidia-ml.so.1"]
        assert Path(mounts["/usr/lib/libnvidia-ml.so.1"]).parent == root / "lib64"
        assert mounts["/run/hami-mock/driver/state"] == str(root / "state")
        assert all(each.read_only and Path(each.host_path).exists() for each in two.mounts)
        given = {each.container_path: each for each in two.devices}
        numbered = {path for path in given if re.fullmatch(r"/dev/nvidia\d+", path)}
        assert numbered == {"/dev/nvidia0", "/dev/nvidia2"}
        assert "/dev/nvidiactl" in given
        assert all(Path(each.host_path).is_char_device() for each in two.devices)
        assert (len(none.mounts), len(none.devices)) == (0, 0)
        (units,) = kubelet.plugin("nvidia.com/gpumem").allocate(["000"])
        assert (len(units.mounts), len(units.devices)) == (0, 0)


def test_a_real_plugin_may_register_in_our_place(kubelet: GrpcioKubelet, root: Path) -> None:
    with _agent(kubelet.folder, root, device_plugins="off") as agent, nvml_client(root) as client:
        assert len(client.cards) == 3
        # All parts have started.
        assert {view.name for view in agent.agent.views} >= {"driver", "device plugins"}
        assert [*kubelet.folder.glob("hami-mock-*.sock")] == []


def test_a_real_plugin_may_take_over_and_leave_again(kubelet: GrpcioKubelet, root: Path) -> None:
    with _agent(kubelet.folder, root) as agent:
        names = {resource.name for resource in agent.agent.node.resources}
        kubelet.wait_for_lists(names)
        agent.call(agent.agent.set_options, {"device-plugins": "off"}, False)
        assert agent.call(agent.agent.status)["resources"] == []
        until(lambda: not [*kubelet.folder.glob("hami-mock-*.sock")])
        agent.call(agent.agent.set_options, {"device-plugins": "on"}, False)
        kubelet.wait_for_lists(names, registrations=2)


def test_pods_of_a_real_plugin_hold_its_cards(socket_folder: Path, root: Path) -> None:
    pods_socket = socket_folder / "pods.sock"
    flags = {
        "device_plugins": "off",
        "nvidia_cards": "2",
        "nvidia_model": "A100-SXM4-40GB",
        "nvidia_memory": "40960",
        "load": "60:memory=50",
        "dcgm_listen": "127.0.0.1:0",
    }
    with (
        pod_resources(pods_socket) as pods,
        _agent(socket_folder, root, pod_resources_socket=str(pods_socket), **flags) as agent,
        nvml_client(root) as client,
    ):
        whole, shared = agent.agent.node.cards
        pods.pods[POD] = {"nvidia.com/gpu": [whole.uuid]}
        for number in range(2):
            given = {"nvidia.com/gpu.shared": [f"{shared.uuid}::{number}"]}
            pods.pods["default", f"shared-{number}", "main"] = given
        agent.call(agent.agent.holders.refresh)
        until(lambda: [card["busy"] for card in client.cards] == [60, 100])
        until(lambda: [len(on_card) for on_card in client.ask("processes")] == [1, 2])
        ((_, memory),) = client.ask("processes")[0]
        assert memory == 20480 * MIB
        (first, second) = agent.call(agent.agent.status)["cards"]
        assert [held["pod"] for held in first["holders"]] == ["train-0"]
        assert [held["devices"] for held in first["holders"]] == [{"nvidia.com/gpu": 1}]
        assert [held["pod"] for held in second["holders"]] == ["shared-0", "shared-1"]
        page = agent.call(agent.agent.snapshot)["cards"]
        assert [len(card["containers"]) for card in page.values()] == [1, 2]
        (dcgm,) = [view for view in agent.agent.views if view.name == "dcgm"]
        rows = samples(get(f"http://{dcgm.status()['address']}/metrics")[1])
        used = [dict(labels) for name, labels in rows if name == "DCGM_FI_DEV_GPU_UTIL"]
        assert {row["UUID"]: row.get("pod") for row in used} == {
            whole.uuid: "train-0",
            shared.uuid: None,
        }


def test_a_root_that_cant_be_had_ends_the_start(socket_folder: Path, root: Path) -> None:
    root.mkdir()
    (root / "mine").write_text("")
    flags = (*ONLY_NVIDIA, "--driver=on", f"--driver-root={root}")
    with agent_process(socket_folder, *flags) as agent:
        assert "--driver-root" in agent.wait_for_log("has 'mine' in it")
        assert agent.process.wait(timeout=10) == 2


def test_without_the_option_nothing_is_loaded(socket_folder: Path) -> None:
    with agent_thread(socket_folder, **SMALL) as agent:
        assert "driver" not in {view.name for view in agent.agent.views}
    code = "import sys, hami_mock.agent; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "hami_mock.vendors.nvidia" in loaded
    assert not {name for name in loaded if re.search("driver|nvml|nvidia_root|boards", name)}


def test_sigterm_leaves_the_root_as_it_is(socket_folder: Path, root: Path) -> None:
    flags = (
        *ONLY_NVIDIA, "--nvidia-memory=1000", "--driver=on", f"--driver-root={root}",
        "--dcgm-listen=127.0.0.1:0",
    )  # fmt: skip
    with agent_process(socket_folder, *flags) as agent:
        agent.wait_for_log(STARTED)
        with nvml_client(root) as client:
            assert agent.stop() == 0
            assert len(client.cards) == 2
    assert main(["driver", "remove", f"--driver-root={root}"]) == 0
    assert not root.exists()


def test_an_agent_for_a_real_plugin_is_ready_without_plugins_of_its_own(
    socket_folder: Path, root: Path
) -> None:
    with _agent(socket_folder, root, device_plugins="off", http_listen="127.0.0.1:0") as agent:
        (http,) = [view for view in agent.agent.views if view.name == "http"]
        status, body = get(f"http://{http.status()['address']}/readyz")
        assert (status, json.loads(body)["resources"]) == (200, {})
