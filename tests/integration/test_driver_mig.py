"""MIG on an agent's cards: from the configuration, or made by a client of NVML for all to see."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hami_mock.hami.assignment import Assignment
from hami_mock.hami.kinds import MIG_ALLOCATIONS
from hami_mock.kubelet.holder import Holder
from hami_mock.node.pods import Pod
from hami_mock.vendors.handout import Container as Handed
from hami_mock.vendors.nvidia_mig import hand_out
from tests.integration.agents import AgentThread, agent_thread, get, run_cli
from tests.integration.nvml_client import until
from tests.makers import BY_WORD
from tests.pod_resources import pod_resources
from tests.unit.views.exporters.rig import named, samples
from tests.unit.views.hami.rig import segment

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
pytestmark = pytest.mark.usefixtures("compiled_library")

MIB = 2**20
FLAGS = {
    "mlu_cards": "0",
    "iluvatar_cards": "0",
    "ascend_cards": "0",
    "nvidia_model": "A100-SXM4-40GB",
}
LISTED = """
import json, pynvml as n
n.nvmlInit()
card = n.nvmlDeviceGetHandleByIndex(0)
def devices(card):
    found = []
    for index in range(n.nvmlDeviceGetMaxMigDeviceCount(card)):
        try:
            each = n.nvmlDeviceGetMigDeviceHandleByIndex(card, index)
        except n.NVMLError_NotFound:
            continue
        about = n.nvmlDeviceGetAttributes(each)
        found.append([
            n.nvmlDeviceGetUUID(each), n.nvmlDeviceGetName(each),
            n.nvmlDeviceGetGpuInstanceId(each), n.nvmlDeviceGetComputeInstanceId(each),
            n.nvmlDeviceGetMemoryInfo(each).total, about.multiprocessorCount,
        ])
    return found
def codes(call, *arguments):
    try:
        call(*arguments)
    except n.NVMLError as error:
        return error.value
    return 0
"""


@pytest.fixture
def agent(socket_folder: Path, root: Path) -> Iterator[AgentThread]:
    with _agent(socket_folder, root) as found:
        yield found


def _agent(folder: Path, root: Path, **flags: str) -> Any:
    on = {"driver": "on", "driver_root": str(root), "dcgm_listen": "127.0.0.1:0"}
    return agent_thread(folder, **{**FLAGS, **on, **flags})


def ask(root: Path, code: str, **variables: str) -> Any:
    """Return what a client prints, a process of its own."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(root / "lib64"), **variables}
    done = subprocess.run(
        [sys.executable, "-c", LISTED + code],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_configured_instances_are_there(socket_folder: Path, root: Path) -> None:
    with _agent(socket_folder, root, nvidia_mig="3g.20gb,2g.10gb,1g.5gb,1g.5gb") as agent:
        mode, found = ask(root, "print(json.dumps([n.nvmlDeviceGetMigMode(card), devices(card)]))")
        known = agent.agent.state.instances(agent.agent.node.cards[0])
        told = agent.call(agent.agent.status)["cards"][0]["cut"]
    assert [uuid for uuid, *_ in found] == [each["uuid"] for each in told]
    assert mode == [1, 1]
    assert [(name, total) for _, name, _, _, total, _ in found] == [
        (f"NVIDIA A100-SXM4-40GB MIG {each.profile}", each.memory * MIB)
        for each in sorted(known, key=lambda each: each.gpu_instance)
    ]
    assert {uuid for uuid, *_ in found} == {each.uuid for each in known}
    assert sorted(multiprocessors for *_, multiprocessors in found) == [14, 14, 28, 42]


def test_hami_mock_smi_draws_the_table_of_nvidia_smi(socket_folder: Path, root: Path) -> None:
    pods_socket, control = socket_folder / "pods.sock", str(socket_folder / "control.sock")
    flags = {
        "nvidia_mig": "3g.20gb,2g.10gb", "nvidia_cards": "2", "load": "60:memory=50",
        "device_plugins": "off", "pod_resources_socket": str(pods_socket),
        "control_socket": control,
    }  # fmt: skip

    def lines(told: str) -> list[str]:
        """Leave out the time, and what rises from second to second."""
        return re.sub(r" *\d+([CW]) ", r" \1 ", told).splitlines()[1:]

    def drawn() -> list[str]:
        program = root / "bin/nvidia-smi"
        done = subprocess.run([program], capture_output=True, text=True, check=True)
        return lines(done.stdout)

    with pod_resources(pods_socket) as pods, _agent(socket_folder, root, **flags) as agent:
        made_of = agent.agent.state.instances(agent.agent.node.cards[1])
        (large,) = [each for each in made_of if each.profile == "3g.20gb"]
        pods.pods["ml", "train-0", "main"] = {"nvidia.com/mig-3g.20gb": [large.uuid]}
        # Whoever was given a whole card before it was cut has no instance of it.
        pods.pods["ml", "whole-0", "main"] = {"nvidia.com/gpu": [agent.agent.node.cards[0].uuid]}
        agent.call(agent.agent.holders.refresh)
        until(lambda: re.search(r" [1-9]\d*MiB / 19968MiB", "".join(drawn())) is not None)
        until(lambda: re.search(r"whole-0\S* +[1-9]\d*MiB", "".join(drawn())) is not None)
        expected = drawn()
        found = lines(run_cli("smi", "--control-socket", control, "--as", "nvidia-smi").stdout)
    assert found == expected
    assert sum("train-0" in line for line in found) == 1
    assert sum("whole-0" in line for line in found) == 1
    assert found.count("| MIG devices:" + " " * 76 + "|") == 1


def test_a_container_of_hamis_sees_exactly_its_instance(socket_folder: Path, root: Path) -> None:
    """With the variables that Allocate gives it: nothing of its neighbour on the same card."""
    flags = {"hami": "on", "nvidia_mode": "mig", "nvidia_cards": "2"}
    with _agent(socket_folder, root, **flags) as agent:
        state, card = agent.agent.state, agent.agent.node.cards[1]
        variables = {}
        holders: list[Holder] = []
        for name, profile, place in (("own", "2g.10gb", (2, 2)), ("neighbour", "3g.20gb", (4, 4))):
            row = {
                "gpuUUID": card.uuid, "profile": profile, "containerIndex": 0, "deviceIndex": 0,
                "placement": dict(zip(("start", "size"), place, strict=True)),
            }  # fmt: skip
            told = {"hami.io/vgpu-devices-allocated": segment(card.uuid)}
            reserved = {MIG_ALLOCATIONS: json.dumps([row])}
            devices = Assignment.parse(f"{card.uuid},NVIDIA,1,1:;").containers[0]
            given = hand_out(
                Handed(BY_WORD["NVIDIA"], reserved, 0, devices, (), name, mode="mig", cards=(card,))
            )
            variables[name] = given.variables
            state.pods["ns", name] = Pod(
                "ns", name, annotations={**told, **given.annotations}, containers=("main",),
                requests={"main": {"nvidia.com/gpu": 1}},
            )  # fmt: skip
            slot = f"{card.uuid}-{len(holders)}"
            holders.append(Holder(("ns", name, "main"), {"nvidia.com/gpu": (slot,)}))
        agent.call(state.holders.name, holders)
        instances = {each.profile: each.uuid for each in agent.call(state.instances, card)}
        assert instances.keys() == {"2g.10gb", "3g.20gb"}
        seen = (
            "print(json.dumps([n.nvmlDeviceGetCount(), n.nvmlDeviceGetUUID(card), devices(card)]))"
        )
        until(lambda: ask(root, seen, **variables["own"])[2] != [])
        count, uuid, (device,) = ask(root, seen, **variables["own"])
        assert (count, uuid) == (1, card.uuid)
        assert variables["own"]["NVIDIA_VISIBLE_DEVICES"] == instances["2g.10gb"] == device[0]
        assert device[1:5] == ["NVIDIA A100-SXM4-40GB MIG 2g.10gb", 4, 0, 9856 * MIB]
        (other,) = ask(root, seen, **variables["neighbour"])[2]
        assert other[0] == instances["3g.20gb"]


def test_what_one_client_makes_every_other_sees(agent: AgentThread, root: Path) -> None:
    made = ask(
        root,
        """
n.nvmlDeviceSetMigMode(card, 1)
info = n.nvmlDeviceGetGpuInstanceProfileInfo(card, n.NVML_GPU_INSTANCE_PROFILE_3_SLICE)
part = n.nvmlDeviceCreateGpuInstance(card, info.id)
compute = n.nvmlGpuInstanceCreateComputeInstance(part, n.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
print(json.dumps([n.nvmlGpuInstanceGetInfo(part).id, n.nvmlComputeInstanceGetInfo(compute).id]))
""",
    )
    assert made == [2, 0]
    (device,) = ask(root, "print(json.dumps(devices(card)))")
    card = agent.agent.node.cards[0]
    (instance,) = agent.agent.state.instances(card)
    assert device[:4] == [instance.uuid, "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 2, 0]
    address = agent.call(agent.agent.status)["views"]["dcgm"]["address"]
    rows = named(samples(get(f"http://{address}/metrics")[1]), "DCGM_FI_DEV_FB_USED")
    assert [labels.get("GPU_I_PROFILE") for labels, _ in rows] == [None, "3g.20gb"]
    events = [event.message for event in agent.agent.state.events.after(0)]
    assert events[-1] == "cut into 3g.20gb at 4"

    gone = ask(
        root,
        """
part = n.nvmlDeviceGetGpuInstanceById(card, 2)
compute = n.nvmlGpuInstanceGetComputeInstanceById(part, 0)
refused = codes(n.nvmlGpuInstanceDestroy, part)
n.nvmlComputeInstanceDestroy(compute)
n.nvmlGpuInstanceDestroy(part)
n.nvmlDeviceSetMigMode(card, 0)
print(json.dumps([refused, n.nvmlDeviceGetMigMode(card), devices(card)]))
""",
    )
    assert gone == [19, [0, 0], []]
    assert agent.agent.state.cuts == {}


def test_what_can_not_be_made_is_refused(agent: AgentThread, root: Path) -> None:
    found = ask(
        root,
        """
whole = n.nvmlDeviceGetGpuInstanceProfileInfo(card, n.NVML_GPU_INSTANCE_PROFILE_7_SLICE).id
before = codes(n.nvmlDeviceCreateGpuInstance, card, whole)
n.nvmlDeviceSetMigMode(card, 1)
n.nvmlDeviceCreateGpuInstance(card, whole)
again = codes(n.nvmlDeviceCreateGpuInstance, card, whole)
print(json.dumps([before, again]))
""",
    )
    # Not found while MIG is off, then no room.
    assert found[1] == 23
    assert found[0] != 0


def test_modes_and_limits_are_set_for_all(agent: AgentThread, root: Path) -> None:
    ask(
        root,
        """
n.nvmlDeviceSetPersistenceMode(card, 0)
n.nvmlDeviceSetComputeMode(card, n.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
n.nvmlDeviceSetPowerManagementLimit(card, 250000)
print(1)
""",
    )
    seen = ask(
        root,
        """
print(json.dumps([n.nvmlDeviceGetPersistenceMode(card), n.nvmlDeviceGetComputeMode(card),
                  n.nvmlDeviceGetPowerManagementLimit(card)]))
""",
    )
    assert seen == [0, 3, 250000]
    # Other cards are no reason to forget it.
    agent.call(agent.agent.set_options, {"nvidia-cards": "3"}, False)
    kept = "print(json.dumps([n.nvmlDeviceGetCount(), n.nvmlDeviceGetComputeMode(card)]))"
    until(lambda: ask(root, kept) == [3, 3])
    # The other names say the same.
    uuid = agent.agent.node.cards[0].uuid
    assert agent.agent.state.readings[uuid].power_limit == 250


def test_nobody_sets_anything_without_an_agent(socket_folder: Path, root: Path) -> None:
    with _agent(socket_folder, root):
        pass
    assert ask(root, "print(codes(n.nvmlDeviceSetMigMode, card, 1))") == 4
