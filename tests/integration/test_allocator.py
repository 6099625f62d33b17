"""The allocator, against an API server: what containers get, and what is left behind."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import NotAssigned
from hami_mock.hami.assignment import BIND_PHASE
from hami_mock.hami.lock import NodeLock
from hami_mock.node.fault import Fault, FaultKind
from hami_mock.node.fault_kinds import LOST, UNHEALTHY
from hami_mock.node.resources import Resource
from hami_mock.node.state import NodeState
from hami_mock.vendors.scheduling import PluginConfig
from hami_mock.views.hami.allocator import Allocator
from hami_mock.views.hami.handover import REASON
from hami_mock.views.hami.left_behind import LeftBehind
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.makers import BY_WORD
from tests.unit.builders import NODE
from tests.unit.views.hami.rig import (
    ASCEND_910B3,
    MR_V100,
    count_resource,
    pod,
    segment,
    state_with,
)

LOCK = "hami.io/mutex.lock"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
GPU = count_resource()
A, B = (card.uuid for card in GPU.cards)


class Rig:
    """An allocator on a node with some resources."""

    def __init__(self, server: FakeApiServer, kubernetes: Kubernetes, state: NodeState) -> None:
        self.server = server
        self.state = state
        self.kubernetes = kubernetes
        self.allocator = Allocator(state, kubernetes)
        self.left_behind = LeftBehind(state, kubernetes, self.allocator.troubles)

    def bind(self, bound: dict[str, Any], *, lock: bool = True) -> None:
        """Do what HAMi's scheduler does when it binds a pod."""
        self.server.put("pods", bound)
        if lock:
            self.lock(bound["metadata"]["name"])

    def lock(self, name: str) -> None:
        value = NodeLock(datetime.now(UTC), "default", name).encode()
        self.server.annotate("nodes", NODE, {LOCK: value})

    async def ask(self, *sizes: int, resource: Resource = GPU) -> list[dict[str, str]]:
        """Do what the kubelet does; which slots it chose is all the same."""
        requests = [[f"{resource.cards[0].uuid}-{i}" for i in range(size)] for size in sizes]
        found = await self.allocator.assign(resource, requests)
        return [{**allotted.variables} for allotted in found]

    def annotations(self, name: str = "p1") -> dict[str, str]:
        return self.server.annotations("pods", name, "default")

    @property
    def node(self) -> dict[str, str]:
        return self.server.annotations("nodes", NODE)

    def is_done(self, name: str = "p1") -> bool:
        return self.annotations(name)[BIND_PHASE] == "success" and LOCK not in self.node


def run(folder: Path, scenario: Callable[[Rig], Awaitable[None]], *resources: Resource) -> None:
    async def with_server() -> None:
        with anyio.fail_after(60):
            async with api_server(folder) as server, Kubernetes() as kubernetes:
                server.put("nodes", {"metadata": {"name": NODE, "annotations": {}}})
                await scenario(Rig(server, kubernetes, state_with(*(resources or (GPU,)))))

    anyio.run(with_server)


def visible(answers: list[dict[str, str]]) -> list[str]:
    return [answer["NVIDIA_VISIBLE_DEVICES"] for answer in answers]


def test_the_assigned_card_and_its_limits_are_the_answer(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        assert await rig.ask(1) == [
            {
                "NVIDIA_VISIBLE_DEVICES": B,
                "CUDA_DEVICE_MEMORY_LIMIT_0": "3000m",
                "CUDA_DEVICE_SM_LIMIT": "30",
                "CUDA_DEVICE_MEMORY_SHARED_CACHE": "/usr/local/vgpu/uid-p1_0.cache",
                "LIBCUDA_LOG_LEVEL": "1",
            }
        ]
        assert rig.annotations()[TO_ALLOCATE] == ";"
        assert rig.annotations()["hami.io/vgpu-devices-allocated"] == segment(B)
        assert rig.is_done()
        assert len(rig.server.writes) == 2

    run(tmp_path, scenario)


def test_two_containers_in_two_calls_release_the_lock_with_the_last(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(A) + segment(A, B)))
        assert visible(await rig.ask(1)) == [A]
        assert rig.annotations()[BIND_PHASE] == "allocating"
        assert LOCK in rig.node
        assert visible(await rig.ask(2)) == [f"{A},{B}"]
        assert rig.is_done()

    run(tmp_path, scenario)


def test_two_containers_in_one_call(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(A) + segment(A, B)))
        assert visible(await rig.ask(1, 2)) == [A, f"{A},{B}"]
        assert rig.is_done()

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(";" + segment(B), id="an init container without devices first"),
        pytest.param(segment(B), id="no segment for the first container"),
        pytest.param(segment(B) + ";", id="a second container without devices"),
    ],
)
def test_the_position_of_a_segment_means_nothing(tmp_path: Path, value: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=value))
        assert visible(await rig.ask(1)) == [B]
        assert rig.is_done()

    run(tmp_path, scenario)


def test_an_init_containers_devices_come_first(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(A, memory=100) + segment(B)))
        assert (await rig.ask(1))[0]["CUDA_DEVICE_MEMORY_LIMIT_0"] == "100m"
        assert visible(await rig.ask(1)) == [B]
        assert rig.is_done()

    run(tmp_path, scenario)


def test_a_container_without_devices_gets_nothing_and_takes_nothing(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        assert await rig.ask(0) == [{}]
        assert rig.server.requests == []
        assert rig.allocator.handles(GPU)
        rig.bind(pod(vgpu=segment(B)))
        empty, full = await rig.ask(0, 1)
        assert (empty, full["NVIDIA_VISIBLE_DEVICES"]) == ({}, B)

    run(tmp_path, scenario)


def test_a_pod_of_two_vendors_is_done_when_both_are(tmp_path: Path) -> None:
    other = count_resource(MR_V100)
    name = "MR-V100"

    async def scenario(rig: Rig) -> None:
        card = other.cards[1].uuid
        rig.bind(pod(vgpu=segment(A), words={name: segment(card, word=name)}))
        answers: dict[str, dict[str, str]] = {}

        async def ask(resource: Resource) -> None:
            (answers[resource.name],) = await rig.ask(1, resource=resource)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, other)
            tasks.start_soon(ask, GPU)
        assert answers[GPU.name]["NVIDIA_VISIBLE_DEVICES"] == A
        assert answers[other.name]["ILUVATAR_COREX_VISIBLE_DEVICES"] == card
        assert rig.is_done()
        phases = [write.annotations.get(BIND_PHASE) for write in rig.server.writes]
        assert phases == [None, "success", None]  # the pod, the pod, the lock

    run(tmp_path, scenario, GPU, other)


def test_a_vendor_that_another_plugin_serves_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(A), dcu=segment("DCU-1", word="DCU")))
        await rig.ask(1)
        assert rig.is_done()

    run(tmp_path, scenario)


def test_a_conflict_is_tried_again_with_what_is_there_now(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(A)))

        async def change(_: object) -> None:
            rig.server.annotate("pods", "p1", {TO_ALLOCATE: segment(B)}, "default")

            async def lock_again(_: object) -> None:
                rig.server.annotate("nodes", NODE, {"x": "y"})

            async def second(_: object) -> None:
                rig.server.before_patch = lock_again

            rig.server.before_patch = second

        rig.server.before_patch = change
        assert visible(await rig.ask(1)) == [B]
        assert rig.is_done()
        assert rig.node == {"x": "y"}

    run(tmp_path, scenario)


def test_a_patch_whose_answer_is_lost_is_not_done_twice(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(A) + segment(B)))
        rig.server.lose_answers = 1
        assert visible(await rig.ask(1)) == [A]
        assert rig.annotations()[TO_ALLOCATE] == ";" + segment(B)
        rig.server.lose_answers = 2  # the pod's and the lock's
        assert visible(await rig.ask(1)) == [B]
        assert rig.is_done()

    run(tmp_path, scenario)


def test_without_a_lock_the_pod_that_waits_longest_is_it(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod("young", bind_time=300, vgpu=segment(A)), lock=False)
        rig.bind(pod("old", bind_time=20, vgpu=segment(B)), lock=False)
        rig.bind(pod("elsewhere", bind_time=1, node="n2", vgpu=segment(A)), lock=False)
        rig.bind(pod("runs", bind_time=2, phase="Running", vgpu=segment(A)), lock=False)
        rig.bind(pod("failed", bind_time=3, bind_phase="failed", vgpu=segment(A)), lock=False)
        rig.bind(pod("served", bind_time=4, bind_phase="success", vgpu=";"), lock=False)
        leaving = pod("leaving", bind_time=5, vgpu=segment(A))
        leaving["metadata"]["deletionTimestamp"] = "2026-11-15T23:25:11Z"
        rig.bind(leaving, lock=False)
        assert visible(await rig.ask(1)) == [B]
        assert visible(await rig.ask(1)) == [A]
        assert rig.annotations("young")[BIND_PHASE] == rig.annotations("old")[BIND_PHASE]

    run(tmp_path, scenario)


def test_the_lock_of_another_pod_is_left_alone(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod("mine", vgpu=segment(A)), lock=False)
        rig.bind(pod("other", vgpu=segment(A, B)))
        held = rig.node[LOCK]
        assert visible(await rig.ask(1)) == [A]
        assert rig.annotations("mine")[BIND_PHASE] == "success"
        assert rig.annotations("other")[BIND_PHASE] == "allocating"
        assert rig.node[LOCK] == held
        assert visible(await rig.ask(2)) == [f"{A},{B}"]
        assert rig.is_done("other")

    run(tmp_path, scenario)


@pytest.mark.parametrize("value", ["2026-11-15T23:25:11Z", "gone", "default", "banana"])
def test_a_lock_that_names_no_pod_that_waits_leads_to_the_list(tmp_path: Path, value: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(A)), lock=False)
        rig.server.put("pods", pod("default", phase="Running"))
        if value in ("gone", "default"):
            rig.lock(value)
        else:
            rig.server.annotate("nodes", NODE, {LOCK: value})
        assert visible(await rig.ask(1)) == [A]
        # Nobody knows whose a lock without a name is: it goes with the pod that is served.
        assert (LOCK in rig.node) == (value != "2026-11-15T23:25:11Z")

    run(tmp_path, scenario)


@pytest.mark.parametrize("bind_phase", ["allocating", "failed"])
def test_no_pod_at_all_is_an_error_that_says_so(tmp_path: Path, bind_phase: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(bind_phase=bind_phase, vgpu=";"), lock=False)
        with pytest.raises(NotAssigned, match=r"nvidia.com/gpu: no pod .* HAMi's scheduler\?"):
            await rig.ask(1)
        assert rig.server.writes == []

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(segment(A, B), "asks for 1 .* has assigned 2", id="another number"),
        pytest.param(segment("GPU-x"), "there is no device 'GPU-x'", id="no such card"),
        pytest.param("GPU-1,NVIDIA,many,30:;", "container 0, device 0: memory", id="malformed"),
    ],
)
def test_a_failure_is_written_down_and_gives_back_the_lock(
    tmp_path: Path, value: str, reason: str
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=value))
        with pytest.raises(NotAssigned, match=reason) as caught:
            await rig.ask(1)
        assert rig.annotations()[BIND_PHASE] == "failed"
        assert rig.annotations()[REASON] == str(caught.value)
        assert rig.annotations()[TO_ALLOCATE] == value
        assert LOCK not in rig.node

    run(tmp_path, scenario)


@pytest.mark.parametrize("effect", [UNHEALTHY, LOST])
def test_a_card_that_failed_after_the_binding_is_not_given(
    tmp_path: Path, effect: FaultKind
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        rig.state.begin_faults(Fault(effect, frozenset({B})))
        with pytest.raises(NotAssigned, match="unhealthy"):
            await rig.ask(1)
        assert rig.annotations()[BIND_PHASE] == "failed"
        assert LOCK not in rig.node

    run(tmp_path, scenario)


def test_what_the_service_refuses_fails_the_pod(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        await rig.allocator.refuse(GPU, [[f"{A}-0"]], "on command")
        assert rig.annotations()[BIND_PHASE] == "failed"
        assert rig.annotations()[REASON] == "on command"
        assert LOCK not in rig.node
        writes = len(rig.server.writes)
        await rig.allocator.refuse(GPU, [[f"{A}-0"]], "with no pod there is nobody to tell")
        rig.bind(pod("p2", vgpu=segment(B)))
        await rig.allocator.refuse(GPU, [[]], "nothing was asked for")
        rig.server.refuse = lambda _: 503
        await rig.allocator.refuse(GPU, [[f"{A}-0"]], "and now nobody can be told")
        assert len(rig.server.writes) == writes

    run(tmp_path, scenario)


def test_a_pod_that_is_deleted_meanwhile_is_an_error_and_gives_back_the_lock(
    tmp_path: Path,
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))

        async def delete(_: object) -> None:
            rig.server.remove("pods", "p1", "default")

        rig.server.before_patch = delete
        with pytest.raises(NotAssigned, match="pods 'p1' not found"):
            await rig.ask(1)
        assert LOCK not in rig.node

    run(tmp_path, scenario)


def test_a_short_outage_is_waited_for(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        failures = iter(range(4))
        rig.server.refuse = lambda _: 503 if next(failures, None) is not None else None
        assert visible(await rig.ask(1)) == [B]
        assert rig.is_done()

    run(tmp_path, scenario)


def test_a_long_outage_is_an_error_in_time(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        rig.allocator = Allocator(rig.state, rig.kubernetes, seconds=0.5)
        rig.server.refuse = lambda _: 503
        with pytest.raises(NotAssigned, match=r"not assigned within 0.5 s: .*get nodes.*\(503\)"):
            await rig.ask(1)
        rig.server.refuse = lambda line: 503 if "patch" in line else None
        with pytest.raises(NotAssigned, match="patch pods"), anyio.fail_after(10):
            await rig.ask(1)
        # Nobody else was let in for as long, and nothing was half done.
        assert rig.annotations()[TO_ALLOCATE] == segment(B)
        rig.server.refuse = lambda _: None
        assert visible(await rig.ask(1)) == [B]

    run(tmp_path, scenario)


def test_a_missing_rule_is_named_and_not_waited_for(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        rig.server.refuse = lambda line: 403 if line.startswith("patch pods") else None
        with pytest.raises(NotAssigned, match="the role needs the verb patch for pods"):
            await rig.ask(1)
        assert LOCK not in rig.node

    run(tmp_path, scenario)


def test_a_lock_that_can_not_be_given_back_costs_no_pod(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        rig.server.refuse = lambda line: 403 if line.startswith("patch nodes") else None
        assert visible(await rig.ask(1)) == [B]
        assert rig.annotations()[BIND_PHASE] == "success"

    run(tmp_path, scenario)
    assert "can't release the lock of pod default/p1" in caplog.text


def test_a_restarted_kubelet_that_asks_again_is_told_so(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        await rig.ask(1)
        with pytest.raises(NotAssigned, match="no pod on this node is waiting"):
            await rig.ask(1)
        assert rig.annotations()[BIND_PHASE] == "success"

    run(tmp_path, scenario)


def test_cambricon_has_its_own_lock_and_its_own_marks(tmp_path: Path) -> None:
    mlu = count_resource(BY_WORD["MLU"])
    dsmlu = "cambricon.com/dsmlu.lock"

    async def scenario(rig: Rig) -> None:
        bound = pod(cambricon_mlu=segment(f"{NODE}-cambricon-mlu-1", word="MLU"))
        marks = {"CAMBRICON_DSMLU_PROFILE": "1_30_11", "CAMBRICON_DSMLU_ASSIGNED": "false"}
        bound["metadata"]["annotations"] |= marks
        rig.bind(bound, lock=False)
        rig.server.annotate("nodes", NODE, {dsmlu: "2026-11-15T23:25:11Z"})
        (answer,) = await rig.ask(1, resource=mlu)
        assert answer["MLU_VISIBLE_DEVICES"] == answer["CAMBRICON_VISIBLE_DEVICES"] == "1"
        assert rig.annotations()["CAMBRICON_DSMLU_ASSIGNED"] == "true"
        # Cambricon's plugin knows nothing of HAMi's phases.
        assert rig.annotations()[BIND_PHASE] == "allocating"
        assert dsmlu not in rig.node

    run(tmp_path, scenario, mlu)


def test_a_pod_of_two_vendors_has_all_when_both_have_given(tmp_path: Path) -> None:
    mlu = count_resource(BY_WORD["MLU"])

    async def scenario(rig: Rig) -> None:
        devices = segment(f"{NODE}-cambricon-mlu-1", word="MLU")
        rig.bind(pod(vgpu=segment(B), cambricon_mlu=devices))
        await rig.ask(1)
        assert rig.annotations()[BIND_PHASE] == "allocating"
        await rig.ask(1, resource=mlu)
        assert rig.is_done()

    run(tmp_path, scenario, GPU, mlu)


@pytest.mark.parametrize("word", ["Metax-GPU", "GCU", "kunlun", "Mthreads", "AWSNeuron"])
def test_pods_of_plugins_that_do_not_know_hami_stay_in_allocating(
    tmp_path: Path, word: str
) -> None:
    resource = count_resource(BY_WORD[word])

    async def scenario(rig: Rig) -> None:
        rig.bind(pod(), lock=False)
        written = len(rig.server.writes)
        assert not rig.allocator.handles(resource)
        assert rig.annotations()[BIND_PHASE] == "allocating"
        assert len(rig.server.writes) == written

    run(tmp_path, scenario, resource)


def enflame_pod(*requests: int) -> dict[str, Any]:
    """What HAMi 2.10 writes on a pod for containers a, b, … with so many slices each."""
    rows = {
        name: {"allocated": False, "request": size, "profileID": "0", "profileName": f"{size}g.8gb"}
        for name, size in zip("abc", requests, strict=False)
    }
    bound = pod()
    bound["metadata"]["annotations"] |= {
        "hami.io/enflame-vgpu-devices-allocated": f"{NODE}-enflame-drs-1,Enflame,8192,17:;"
        * len(rows),
        "enflame.com/gcu-assigned": "false",
        "enflame.com/gcu-assigned-time": "1778573037904666832",
        "enflame.com/gcu-assigned-index": "1",
        "enflame.com/gcu-assigned-minor": "1",
        "assigned-containers": json.dumps(rows),
    }
    return bound


def test_enflames_slices_are_cut_off_the_card_that_hami_chose(tmp_path: Path) -> None:
    gcu = count_resource(BY_WORD["Enflame"])

    async def scenario(rig: Rig) -> None:
        rig.bind(enflame_pod(3, 1), lock=False)
        # By its size, not by its place: the kubelet doesn't say for which container it asks.
        (one,) = await rig.ask(1, resource=gcu)
        rows = json.loads(rig.annotations()["assigned-containers"])
        assert [rows[name]["allocated"] for name in "ab"] == [False, True]
        assert one == {
            "ENFLAME_VISIBLE_DEVICES": "1",
            "TOPS_VISIBLE_DEVICES": f"DRS-{rows['b']['instanceUUID']}",
        }
        assert rig.annotations()["enflame.com/gcu-assigned"] == "false"
        (three,) = await rig.ask(3, resource=gcu)
        rows = json.loads(rig.annotations()["assigned-containers"])
        assert three["TOPS_VISIBLE_DEVICES"] == f"DRS-{rows['a']['instanceUUID']}"
        assert rows["a"]["instanceUUID"] != rows["b"]["instanceUUID"]
        assert (rows["a"]["request"], rows["a"]["profileName"]) == (3, "3g.8gb")
        assert rig.annotations()["enflame.com/gcu-assigned"] == "true"
        # Enflame's plugin knows nothing of HAMi's phases.
        assert rig.annotations()[BIND_PHASE] == "allocating"
        with pytest.raises(NotAssigned, match="no pod on this node is waiting"):
            await rig.ask(1, resource=gcu)

    run(tmp_path, scenario, gcu)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("assigned-containers", "[]"),
        ("assigned-containers", '{"a": {"request": "three"}}'),
        ("enflame.com/gcu-assigned-index", "0"),
    ],
)
def test_what_enflames_plugin_can_not_use_is_refused(
    tmp_path: Path, annotation: str, value: str
) -> None:
    gcu = count_resource(BY_WORD["Enflame"])

    async def scenario(rig: Rig) -> None:
        bound = enflame_pod(3)
        bound["metadata"]["annotations"][annotation] = value
        rig.bind(bound, lock=False)
        with pytest.raises(NotAssigned):
            await rig.ask(3, resource=gcu)
        assert rig.annotations()[BIND_PHASE] == "allocating"
        assert "hami-mock.io/bind-failed-reason" in rig.annotations()

    run(tmp_path, scenario, gcu)


def test_ascend_gets_its_template(tmp_path: Path) -> None:
    npu = count_resource(ASCEND_910B3)
    word = "Ascend910B3"

    async def scenario(rig: Rig) -> None:
        card = npu.cards[1].uuid
        bound = pod(words={word: segment(card, word=word, memory=16384)})
        runtime = json.dumps([{"UUID": card, "temp": "vir05_1c_16g"}])
        bound["metadata"]["annotations"][f"huawei.com/{word}"] = runtime
        rig.bind(bound)
        assert await rig.ask(1, resource=npu) == [
            {"ASCEND_VISIBLE_DEVICES": "1", "ASCEND_VNPU_SPECS": "vir05_1c_16g"}
        ]
        soft = pod("soft", words={word: segment(card, word=word, memory=5000, cores=20)})
        soft["metadata"]["annotations"] |= {
            "huawei.com/vnpu-mode": "hami-core",
            f"huawei.com/{word}": json.dumps([{"UUID": card, "memory": 5000, "core": 20}]),
        }
        rig.bind(soft)
        assert await rig.ask(1, resource=npu) == [
            {
                "ASCEND_VISIBLE_DEVICES": "1",
                "NPU_MEM_QUOTA": "5000",
                "NPU_PRIORITY": "20",
                "NPU_GLOBAL_SHM_PATH": "/hami-shared-region/1_global_registry",
                "NPU_LOCAL_SHM_PATH": "/hami-vnpu-shmem/vnpu_local_shmem",
            }
        ]

    run(tmp_path, scenario, npu)


def test_the_configuration_has_a_word_in_the_answer(tmp_path: Path) -> None:
    gpu = count_resource(plugin=PluginConfig({"log_level": "4", "core_policy": "disable"}))

    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        (found,) = await rig.ask(1, resource=gpu)
        assert found["LIBCUDA_LOG_LEVEL"] == "4"
        assert found["GPU_CORE_UTILIZATION_POLICY"] == "disable"

    run(tmp_path, scenario, gpu)


def test_pods_on_one_of_amds_cards_have_different_compute_units(tmp_path: Path) -> None:
    gpu = count_resource(BY_WORD["AMD"])
    first, second = (card.uuid for card in gpu.cards)
    units = "hami.io/amd-cu-allocated"

    def amd_pod(name: str, *segments: str) -> dict[str, Any]:
        return pod(name, amd="".join(segments))

    def part(*cards: str, cores: int) -> str:
        return segment(*cards, word="AMD Instinct MI300X", cores=cores)

    async def scenario(rig: Rig) -> None:
        rig.bind(amd_pod("p1", part(first, cores=76), part(second, first, cores=4)))
        (one,) = await rig.ask(1, resource=gpu)
        assert one == {
            "ROCR_VISIBLE_DEVICES": first,
            "HIP_DEVICE_MEMORY_LIMIT": "3000m",
            "HSA_CU_MASK": "0:0-75",
        }
        (two,) = await rig.ask(2, resource=gpu)
        assert two["HSA_CU_MASK"] == "0:0-3;1:76-79"
        assert json.loads(rig.annotations()[units]) == {first: "0-79", second: "0-3"}
        assert rig.is_done()

        rig.bind(amd_pod("p2", part(first, cores=10)))
        assert (await rig.ask(1, resource=gpu))[0]["HSA_CU_MASK"] == "0:80-89"
        # What has ended gives its units back.
        ended = amd_pod("p1")
        ended["metadata"]["annotations"][units] = rig.annotations()[units]
        rig.server.put("pods", {**ended, "status": {"phase": "Succeeded"}})
        rig.bind(amd_pod("p3", part(first, cores=81)))
        assert (await rig.ask(1, resource=gpu))[0]["HSA_CU_MASK"] == "0:0-79,90"

        rig.bind(amd_pod("p4", part(first, cores=300)))
        with pytest.raises(NotAssigned, match="and 213 of its 304 are free"):
            await rig.ask(1, resource=gpu)
        assert rig.annotations("p4")[BIND_PHASE] == "failed"
        assert LOCK not in rig.node

    run(tmp_path, scenario, gpu)


def test_birens_plugin_says_when_a_pod_failed_but_not_that_it_succeeded(tmp_path: Path) -> None:
    biren = count_resource(BY_WORD["Biren"])
    uuid = biren.cards[1].uuid

    async def scenario(rig: Rig) -> None:
        rig.bind(pod(Biren=segment(uuid, word="Biren")))
        assert await rig.ask(1, resource=biren) == [{"BR_PHY_CARDS": "card_1"}]
        assert rig.annotations()[BIND_PHASE] == "allocating"
        assert LOCK not in rig.node
        rig.bind(pod("p2", Biren=segment("other", word="Biren")))
        with pytest.raises(NotAssigned):
            await rig.ask(1, resource=biren)
        assert rig.annotations("p2")[BIND_PHASE] == "failed"
        assert LOCK not in rig.node

    run(tmp_path, scenario, biren)
