"""A node without hardware in HAMi's cluster: it says what it has, and pods get what is assigned."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from hami_mock.hami import register, scores
from hami_mock.hami.assignment import BIND_PHASE, AssignedDevice
from hami_mock.hami.kinds import HAMI_LOCK, JSON
from tests.makers import BY_WORD

from .hami_placing import ByHand, Placer, annotations_of, cards_for, scheduling
from .hami_seeing import (
    holders_of,
    slots_of,
    wait_for_cards,
    wait_for_success,
    wait_until_unlocked,
)
from .mock import NAMESPACE, ONLY_NVIDIA, TIMEOUT_S, Figures, Mock, container, pod

WANTS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}

NVIDIA = BY_WORD["NVIDIA"]
NODE = ("--hami=on", "--nvidia-memory=8000", *ONLY_NVIDIA)
BURST = 100
ALL_OFF = [f"--{key}-cards=0" for key in ("nvidia", "mlu", "iluvatar", "ascend")]


@pytest.fixture
def node(hami_node: Mock) -> Mock:
    return hami_node


@pytest.fixture(params=["by hand", "HAMi"])
def placer(request: pytest.FixtureRequest, node: Mock) -> Iterator[Placer]:
    """Who places the pods."""
    if request.param == "by hand":
        yield ByHand(node)
        return
    with scheduling(node) as found:
        yield found


def test_the_node_says_which_cards_it_has_and_how_they_are(node: Mock) -> None:
    node.deploy(*NODE, "--hami-topology-score=on")
    cards = wait_for_cards(node, [True, True])
    assert [(c.index, c.count, c.memory, c.cores, c.mode) for c in cards.values()] == [
        (0, 10, 8000, 100, "hami-core"),
        (1, 10, 8000, 100, "hami-core"),
    ]
    assert all("NVIDIA" in card.type for card in cards.values())
    told = annotations_of(node.cluster.get("node", node.cluster.node_name))
    assert scores.decode(told["hami.io/node-nvidia-score"]).keys() == cards.keys()
    node.wait_until_ready()
    node.ctl("fail", "nvidia/1", "--xid", "79")
    wait_for_cards(node, [True, False])
    node.ctl("recover", "nvidia/1")
    wait_for_cards(node, [True, True])
    node.remove()
    told = annotations_of(node.cluster.get("node", node.cluster.node_name))
    assert not {key for key in told if key.startswith("hami.io/node-")}, "nothing stays behind"


def test_a_pod_gets_the_cards_and_the_limits_that_were_assigned(placer: Placer) -> None:
    mock = placer.mock
    mock.deploy(*NODE)
    placer.wait_for(NVIDIA, 2)
    mock.wait_until_ready()
    placer.place(pod("one", container("main", WANTS)), NVIDIA)
    wait_for_success(mock, "one")
    told = annotations_of(mock.cluster.get("pod", "one"))
    (assigned,) = told[NVIDIA.pods.allocated].rstrip(":;").split(":")
    uuid, _, memory, cores = assigned.split(",")
    found = mock.environment("one")
    assert found["NVIDIA_VISIBLE_DEVICES"] == uuid
    assert found["CUDA_DEVICE_MEMORY_LIMIT_0"] == f"{memory}m" == "3000m"
    assert found["CUDA_DEVICE_SM_LIMIT"] == cores == "30"


def test_pods_of_all_shapes_get_what_is_theirs(placer: Placer) -> None:
    mock = placer.mock
    mock.deploy(*NODE)
    placer.wait_for(NVIDIA, 2)
    mock.wait_until_ready()
    plain = container("plain", {})
    placer.place(pod("late", plain, container("main", WANTS)), NVIDIA)
    wait_for_success(mock, "late")
    assert mock.environment("late")["CUDA_DEVICE_MEMORY_LIMIT_0"] == "3000m"
    assert "CUDA_DEVICE_MEMORY_LIMIT_0" not in mock.environment("late", "plain")
    mock.delete_pods("late")

    both = WANTS | {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 1000}
    placer.place(pod("two", container("main", WANTS), container("second", both)), NVIDIA)
    wait_for_success(mock, "two")
    assert mock.environment("two")["CUDA_DEVICE_MEMORY_LIMIT_0"] == "3000m"
    second = mock.environment("two", "second")
    assert len(set(second["NVIDIA_VISIBLE_DEVICES"].split(","))) == 2
    assert second["CUDA_DEVICE_MEMORY_LIMIT_1"] == "1000m"
    mock.delete_pods("two")

    init = container("init", WANTS | {"nvidia.com/gpumem": 2000})
    init["command"] = ["/bin/env"]
    placer.place(pod("first", container("main", WANTS), init=init), NVIDIA)
    wait_for_success(mock, "first")
    assert mock.environment("first", "init")["CUDA_DEVICE_MEMORY_LIMIT_0"] == "2000m"
    assert mock.environment("first")["CUDA_DEVICE_MEMORY_LIMIT_0"] == "3000m"


def test_slots_and_status_follow_the_cards_that_were_assigned(node: Mock) -> None:
    node.deploy(*NODE)
    by_hand = ByHand(node)
    by_hand.wait_for(NVIDIA, 2)
    node.wait_until_ready()
    first, second = (AssignedDevice(card, "NVIDIA", 3000, 30) for card in cards_for(node, NVIDIA))
    # By itself, the kubelet would be sent to the emptiest card, of two such to the first.
    by_hand.assign(pod("one", container("main", WANTS)), NVIDIA, [(second,)])
    wait_for_success(node, "one")
    assert node.environment("one")["NVIDIA_VISIBLE_DEVICES"] == second.id
    assert slots_of(node, "one") == {"main": {second.id}}

    containers = (container("plain", {}), container("a", WANTS), container("b", WANTS))
    by_hand.assign(pod("two", *containers), NVIDIA, [(), (second,), (first,)])
    wait_for_success(node, "two")
    assert slots_of(node, "two") == {"a": {second.id}, "b": {first.id}}

    expected = {
        "nvidia/0": [("two", "b", 3000, 30)],
        "nvidia/1": [("one", "main", 3000, 30), ("two", "a", 3000, 30)],
    }
    node.cluster.wait(
        "who holds which card",
        lambda: holders_of(node),
        lambda found: found == expected,
        timeout=TIMEOUT_S,
    )
    node.delete_pods("one")
    del expected["nvidia/1"][0]
    node.cluster.wait(
        "that a pod is gone",
        lambda: holders_of(node),
        lambda found: found == expected,
        timeout=TIMEOUT_S,
    )


VENDORS: Mapping[str, tuple[list[str], dict[str, int], dict[str, str]]] = {
    "DCU": (
        ["--hygon-cards=2"],
        {"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000, "hygon.com/dcucores": 20},
        {},
    ),
    "MR-V100": (
        ["--iluvatar-cards=2"],
        {"iluvatar.ai/MR-V100-vgpu": 1, "iluvatar.ai/MR-V100.vMem": 16},
        {},
    ),
    # Their memory is more than a plugin can count; as HAMi's own plugins, nobody registers it.
    "NVIDIA": (
        ["--nvidia-cards=8", "--nvidia-model=A100-SXM4-80GB", "--resource-mem="],
        {"nvidia.com/gpu": 1},
        {"CUDA_DEVICE_SM_LIMIT": "0", "LIBCUDA_LOG_LEVEL": "1"},
    ),
    "Ascend910B3": (
        ["--ascend-cards=8", "--ascend-resource-memory-name="],
        {"huawei.com/Ascend910B3": 1},
        {"ASCEND_VISIBLE_DEVICES": "0"},
    ),
    "XPU": (
        ["--kunlun-cards=8", "--kunlun-resource-memory-name="],
        {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 24576},
        {},
    ),
    "AMD": (
        ["--amd-cards=2", "--amd-resource-memory-name="],
        {"amd.com/gpu": 1, "amd.com/gpumem": 4096, "amd.com/gpucores": 25},
        {"HIP_DEVICE_MEMORY_LIMIT": "4096m", "HSA_CU_MASK": "0:0-24"},
    ),
    "MLU": (
        ["--mlu-cards=2"],
        {
            "cambricon.com/vmlu": 1,
            "cambricon.com/mlu.smlu.vmemory": 8,
            "cambricon.com/mlu.smlu.vcore": 10,
        },
        {"MLU_VISIBLE_DEVICES": "0"},
    ),
}


@pytest.mark.parametrize("word", VENDORS)
def test_pods_run_on_the_cards_of_other_vendors(placer: Placer, word: str) -> None:
    flags, wants, expected = VENDORS[word]
    mock, vendor = placer.mock, BY_WORD[word]
    given = {flag.partition("=")[0] for flag in flags}
    mock.deploy("--hami=on", *flags, *(f for f in ALL_OFF if f.partition("=")[0] not in given))
    mock.wait_until_ready()
    placer.wait_for(vendor, int(flags[0].rpartition("=")[2]))
    placer.place(pod("one", container("main", wants)), vendor)
    wait_for_success(mock, "one", vendor)
    found = mock.environment("one")
    if isinstance(placer, ByHand):
        assert {name: found.get(name) for name in expected} == expected
    assert all(name in found for name in vendor.vendor.visible_devices)


def test_pods_share_an_amd_card_but_none_of_its_compute_units(placer: Placer) -> None:
    mock, vendor = placer.mock, BY_WORD["AMD"]
    mock.deploy("--hami=on", "--amd-cards=1", "--amd-resource-memory-name=", *ALL_OFF)
    mock.wait_until_ready()
    placer.wait_for(vendor, 1)
    wants = {"amd.com/gpu": 1, "amd.com/gpumem": 4096, "amd.com/gpucores": 25}
    runs = []
    for name in ("one", "two"):
        placer.place(pod(name, container("main", wants)), vendor)
        wait_for_success(mock, name, vendor)
        mask = mock.environment(name)["HSA_CU_MASK"].removeprefix("0:")
        told = annotations_of(mock.cluster.get("pod", name))
        assert [*json.loads(told["hami.io/amd-cu-allocated"]).values()] == [mask]
        runs.append(range(*map(int, mask.split("-"))))
    # HAMi's scheduler makes 76 of 304 units of a quarter; the other assigns 25.
    size = 24 if isinstance(placer, ByHand) else 75
    assert runs == [range(size), range(size + 1, 2 * size + 1)]


def test_hamis_library_on_an_ascend_chip(node: Mock) -> None:
    npu = BY_WORD["Ascend910B3"]
    with scheduling(node) as placer:
        node.deploy(
            "--hami=on",
            "--ascend-cards=8",
            "--ascend-mode=hami-core",
            "--ascend-resource-memory-name=",
            *(flag for flag in ALL_OFF if not flag.startswith("--ascend")),
        )
        node.wait_until_ready()
        placer.wait_for(npu, 8)
        wants = {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 5000}
        asked = pod("soft", container("main", wants))
        asked["metadata"]["annotations"] = {"huawei.com/vnpu-mode": "hami-core"}
        placer.place(asked, npu)
        wait_for_success(node, "soft", npu)
        found = node.environment("soft")
        card = found["ASCEND_VISIBLE_DEVICES"]
        assert found["NPU_MEM_QUOTA"] == "5000"
        assert found["NPU_GLOBAL_SHM_PATH"] == f"/hami-shared-region/{card}_global_registry"
        assert "NPU_PRIORITY" not in found


def test_hamis_scheduler_gives_a_pod_slices_of_an_enflame_card(node: Mock) -> None:
    enflame = BY_WORD["Enflame"]
    with scheduling(node) as placer:
        node.deploy("--hami=on", "--enflame-cards=2", *ALL_OFF)
        node.wait_until_ready()
        placer.wait_for(enflame, 2)
        # A card has ten slices by default, so there is a profile of five.
        placer.place(pod("slices", container("main", {"enflame.com/drs-gcu": 5})), enflame)
        wait_for_success(node, "slices", enflame)
        told = annotations_of(node.cluster.get("pod", "slices"))
        given = json.loads(told["assigned-containers"])["main"]
        assert (given["allocated"], given["request"]) == (True, 5)
        assert told["enflame.com/gcu-assigned"] == "true"
        found = node.environment("slices")
        assert found["ENFLAME_VISIBLE_DEVICES"] == told["enflame.com/gcu-assigned-index"]
        assert found["TOPS_VISIBLE_DEVICES"] == f"DRS-{given['instanceUUID']}"


def test_a_whole_metax_card_leaves_the_bind_phase_as_hami_wrote_it(node: Mock) -> None:
    metax = BY_WORD["Metax-GPU"]
    with scheduling(node) as placer:
        node.deploy("--hami=on", "--metax-gpu-cards=2", *ALL_OFF)
        node.wait_until_ready()
        node.cluster.wait(
            "the cards in HAMi's scheduler",
            lambda: placer.hami.cards().get(node.cluster.node_name, set()),
            lambda found: sum("metax" in card.lower() for card in found) == 2,
            timeout=TIMEOUT_S,
        )
        placer.place(pod("whole", container("main", {"metax-tech.com/gpu": 1})), metax)
        node.wait_for_phase("whole", "Running")
        assert annotations_of(node.cluster.get("pod", "whole"))[BIND_PHASE] == "allocating"
        told = annotations_of(node.cluster.get("node", node.cluster.node_name))
        assert HAMI_LOCK.annotation not in told


def test_an_agent_killed_in_the_middle_leaves_a_node_that_goes_on(placer: Placer) -> None:
    mock = placer.mock
    mock.deploy(*NODE)
    placer.wait_for(NVIDIA, 2)
    mock.wait_until_ready()
    mock.ctl("hang", "allocate", "5m", "nvidia.com/gpu")
    placer.place(pod("unlucky", container("main", WANTS)), NVIDIA)
    mock.cluster.wait(
        "a pod on the node",
        lambda: mock.cluster.get("pod", "unlucky")["spec"].get("nodeName"),
        bool,
        timeout=TIMEOUT_S,
    )
    before = mock.agent_pid()
    mock.kill_agent()
    mock.cluster.wait("another agent", mock.agent_pid, lambda pid: pid != before, timeout=120)
    mock.wait_for_phase("unlucky", "Failed")
    wait_until_unlocked(mock)
    mock.delete_pods("unlucky")
    mock.wait_until_ready()
    placer.place(pod("lucky", container("main", WANTS)), NVIDIA)
    wait_for_success(mock, "lucky")


def test_a_pod_that_was_assigned_what_is_not_there_fails_with_the_reason(node: Mock) -> None:
    node.deploy(*NODE)
    by_hand = ByHand(node)
    by_hand.wait_for(NVIDIA, 2)
    node.wait_until_ready()
    wrong = AssignedDevice("GPU-nobody-has-this", "NVIDIA", 3000, 30)
    by_hand.assign(pod("wrong", container("main", WANTS)), NVIDIA, [(wrong,)])
    failed = node.wait_for_phase("wrong", "Failed")
    assert "GPU-nobody-has-this" in failed["status"]["message"]
    assert annotations_of(node.cluster.get("pod", "wrong"))[BIND_PHASE] == "failed"
    wait_until_unlocked(node)


def test_nothing_is_written_when_nothing_changes(node: Mock, figures: Figures) -> None:
    node.deploy(*NODE)
    wait_for_cards(node, [True, True])
    node.wait_until_ready()
    before = api_writes(node)
    seconds = 60.0
    time.sleep(seconds)  # what is measured is a minute in which nothing happens
    writes = api_writes(node) - before
    figures.add(node.cluster.version, "the agent's writes to the API in an idle minute", writes, "")
    assert writes == 0, "NVIDIA's cards need no handshake from the node"


def api_writes(mock: Mock) -> float:
    lines = mock.agent_says("/metrics").splitlines()
    (line,) = [line for line in lines if line.startswith("hami_mock_api_writes_total ")]
    return float(line.split()[1])


def test_a_companion_follows_what_a_real_plugin_says(mock: Mock) -> None:
    cluster, key = mock.cluster, NVIDIA.node.register

    def say(text: str | None) -> None:
        word = f"{key}-" if text is None else f"{key}={text}"
        cluster.kubectl("annotate", "--overwrite", "node", cluster.node_name, word)

    def cards(count: int) -> str:
        return register.encode(
            JSON,
            [
                register.RegisteredDevice(f"GPU-real-{i}", 10, 4000, 100, "NVIDIA-A100", index=i)
                for i in range(count)
            ],
        )

    def wait_for_gpumem(units: int | None) -> None:
        cluster.wait(
            f"{units} of gpumem",
            cluster.allocatable,
            lambda now: (now.get("nvidia.com/gpumem") or None) == units,
            timeout=TIMEOUT_S,
        )

    def why_not_ready() -> str:
        name = mock.agent_pod()["metadata"]["name"]
        return cluster.kubectl("logs", name, f"--namespace={NAMESPACE}")

    # The kubelet goes on to show that there was a plugin: for the companion, the real one.
    mock.deploy("--units=status", *ONLY_NVIDIA)
    mock.wait_for({"nvidia.com/gpu": 20, "nvidia.com/gpumem": 65536})
    mock.remove()
    cluster.wait(
        "no slots",
        cluster.allocatable,
        lambda now: not now["nvidia.com/gpu"],
        timeout=TIMEOUT_S,
    )
    try:
        say(cards(2))
        mock.deploy("--source=hami")
        wait_for_gpumem(8000)
        assert cluster.allocatable()["nvidia.com/gpucores"] == 200
        assert cluster.allocatable()["nvidia.com/gpumem-percentage"] == 200
        assert not cluster.allocatable()["nvidia.com/gpu"], "they are the real plugin's"
        say(cards(3))
        wait_for_gpumem(12000)
        say("[{")
        wait_for_gpumem(None)
        assert key in why_not_ready()
        say(cards(1))
        wait_for_gpumem(4000)
        say(None)
        wait_for_gpumem(None)
    finally:
        say(None)


def test_the_doctor_knows_a_healthy_node_and_a_sick_one(node: Mock) -> None:
    node.deploy(*NODE)
    wait_for_cards(node, [True, True])
    node.wait_until_ready()
    node.cluster.wait(
        "the cards",
        node.cluster.allocatable,
        lambda now: now.get("nvidia.com/gpu") == 20,
        timeout=TIMEOUT_S,
    )

    def examine(thing: Mapping[str, Any]) -> tuple[int, list[Any]]:
        ran = subprocess.run(
            [sys.executable, "-m", "hami_mock", "doctor", "-f", "-", "-o", "json"],
            input=json.dumps(thing), text=True, capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        return ran.returncode, json.loads(ran.stdout)

    well = node.cluster.get("node", node.cluster.node_name)
    for counts in (well["status"]["capacity"], well["status"]["allocatable"]):
        for name in [name for name in counts if "/" in name and "nvidia" not in name]:
            del counts[name]  # what agents of other tests have left in the kubelet's memory
    code, findings = examine(well)
    assert (code, [f for f in findings if f["severity"] == "error"]) == (0, [])
    well["metadata"]["annotations"][NVIDIA.node.register] = "GPU-1,10:"
    code, findings = examine(well)
    assert code == 1
    assert any(NVIDIA.node.register in str(finding) for finding in findings)


def test_a_burst_of_pods_all_run_or_wait_for_the_right_reason(node: Mock, figures: Figures) -> None:
    small = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100, "nvidia.com/gpucores": 1}
    with scheduling(node) as placer:
        node.deploy("--hami=on", "--nvidia-cards=8", "--nvidia-memory=1000", *ONLY_NVIDIA)
        placer.wait_for(NVIDIA, 8)
        node.wait_until_ready()
        began = time.monotonic()
        for number in range(BURST):
            placer.place(pod(f"b{number}", container("main", small)), NVIDIA)
        room = 8 * 10

        def phases() -> dict[str, int]:
            found: dict[str, int] = {}
            for item in node.cluster.get("pods")["items"]:
                phase = item["status"]["phase"]
                found[phase] = found.get(phase, 0) + 1
            return found

        node.cluster.wait(
            "a full node",
            phases,
            lambda now: now.get("Running", 0) == room and now.get("Pending", 0) == BURST - room,
            timeout=480,
        )
        seconds = time.monotonic() - began

        def reasons() -> dict[str, str]:
            return {
                item["metadata"]["name"]: condition.get("reason", "")
                for item in node.cluster.get("pods")["items"]
                if item["status"]["phase"] == "Pending"
                for condition in item["status"].get("conditions", ())
                if condition["type"] == "PodScheduled"
            }

        # Not a lock, nor an error of the scheduler's: there is no room.
        node.cluster.wait(
            "the right reason",
            reasons,
            lambda now: set(now.values()) == {"Unschedulable"} and len(now) == BURST - room,
            timeout=TIMEOUT_S,
        )
        figures.add(node.cluster.version, f"HAMi: a burst until {room} pods run", seconds)
        for item in node.cluster.get("pods")["items"]:
            created = _seconds(item["metadata"]["creationTimestamp"])
            if item["status"]["phase"] == "Running":
                name = item["metadata"]["name"]
                (assigned,) = annotations_of(item)[NVIDIA.pods.allocated].rstrip(":;").split(":")
                assert slots_of(node, name) == {"main": {assigned.partition(",")[0]}}
                started = item["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
                took = _seconds(started) - created
                figures.add(node.cluster.version, "HAMi: pod created to Running, in a burst", took)
        wait_until_unlocked(node)


def _seconds(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


@pytest.mark.parametrize(("policy", "cards"), [("binpack", 1), ("spread", 2)])
def test_cards_are_chosen_by_hamis_policy(node: Mock, policy: str, cards: int) -> None:
    with scheduling(node, gpu_policy=policy) as placer:
        node.deploy(*NODE)
        placer.wait_for(NVIDIA, 2)
        node.wait_until_ready()
        for name in ("a", "b"):
            placer.place(pod(name, container("main", WANTS)), NVIDIA)
            wait_for_success(node, name)
        used = {node.environment(name)["NVIDIA_VISIBLE_DEVICES"] for name in ("a", "b")}
        assert len(used) == cards


def test_hami_places_pods_on_mig_instances(node: Mock) -> None:
    with scheduling(node) as placer:
        node.deploy("--hami=on", "--nvidia-mode=mig", "--nvidia-model=A100-SXM4-40GB", *ONLY_NVIDIA)
        placer.wait_for(NVIDIA, 2)
        node.wait_until_ready()
        wants = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8000}
        asked = pod("mig", container("main", wants))
        asked["metadata"]["annotations"] = {"nvidia.com/vgpu-mode": "mig"}
        placer.place(asked, NVIDIA)
        wait_for_success(node, "mig")
        assert node.environment("mig")["NVIDIA_VISIBLE_DEVICES"].startswith("MIG-")
