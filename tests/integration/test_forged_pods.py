"""Pods whose annotations nobody would write who means well: each fails by itself, and no other."""

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.errors import NotAssigned
from hami_mock.hami.assignment import BIND_PHASE, BIND_TIME
from hami_mock.hami.kinds import MIG_ALLOCATIONS
from hami_mock.node.cards import CardGroup
from hami_mock.vendors import catalog
from hami_mock.views.hami import attempt as module
from hami_mock.views.hami.handover import REASON
from tests.integration.fake_api_objects import MOST_ANNOTATION_BYTES
from tests.integration.test_allocator import GPU, LOCK, TO_ALLOCATE, Rig, enflame_pod, run, visible
from tests.makers import BY_WORD
from tests.unit.builders import NODE
from tests.unit.views.hami.rig import ASCEND_910B3, count_resource, nvidia_cards, pod, segment

LONGEST_MESSAGE = 1000

MODEL = catalog.find("nvidia", "A100-SXM4-40GB")
assert MODEL is not None
A, B = (card.uuid for card in GPU.cards)
MIG = count_resource(cards=nvidia_cards(CardGroup(MODEL, MODEL.memory, (None,))), mode="mig")
MLU = count_resource(BY_WORD["MLU"])
GCU = count_resource(BY_WORD["Enflame"])
NPU = count_resource(ASCEND_910B3)
AMD = count_resource(BY_WORD["AMD"])
NPU_KEY = "hami.io/Ascend910B3-devices-to-allocate"
MLU_KEY = "hami.io/cambricon-mlu-devices-to-allocate"

HOSTILE = {
    "a long ID": (GPU, {TO_ALLOCATE: segment("x" * 200_000)}),
    "a long ID that isn't ASCII": (GPU, {TO_ALLOCATE: segment("é" * 120_000)}),
    "an ID of line breaks": (GPU, {TO_ALLOCATE: segment("\n" * 200_000)}),
    "half a surrogate pair": (GPU, {TO_ALLOCATE: segment("\ud800")}),
    "a type of line breaks": (GPU, {TO_ALLOCATE: f"{A},{chr(10) * 99},1:;"}),
    "many digits": (GPU, {TO_ALLOCATE: f"{A},NVIDIA,{'9' * 5000},1:;"}),
    "other digits": (GPU, {TO_ALLOCATE: f"{A},NVIDIA,٣,1:;"}),
    "many containers": (GPU, {TO_ALLOCATE: segment(A) + ";" * 200_000}),
    "many devices": (GPU, {TO_ALLOCATE: "a,b,1,1:" * 20_000}),
    "a number of many digits": (MLU, {MLU_KEY: segment("n-" + "9" * 5000, word="MLU")}),
    "a negative number": (MLU, {MLU_KEY: segment("n--9", word="MLU")}),
    "another instance": (
        MIG,
        {
            TO_ALLOCATE: segment(MIG.cards[0].uuid),
            MIG_ALLOCATIONS: json.dumps([{"gpuUUID": "y" * 100_000}]),
        },
    ),
    "half a pair in a profile": (
        MIG,
        {
            TO_ALLOCATE: segment(MIG.cards[0].uuid),
            MIG_ALLOCATIONS: json.dumps([{"gpuUUID": MIG.cards[0].uuid, "profile": "\ud800"}]),
        },
    ),
    "a template that is none": (
        NPU,
        {
            NPU_KEY: segment(NPU.cards[0].uuid, word="Ascend910B3"),
            "huawei.com/Ascend910B3": '[{"temp":' + "[" * 50_000,
        },
    ),
    "compute units that are none": (
        AMD,
        {
            "hami.io/amd-devices-to-allocate": segment(AMD.cards[0].uuid, word="AMD"),
            "hami.io/amd-cu-allocated": json.dumps({AMD.cards[0].uuid: "0-4095," * 30_000 + "x"}),
        },
    ),
}


def forged(annotations: dict[str, str], name: str = "p1") -> dict[str, Any]:
    bound = pod(name)
    bound["metadata"]["annotations"] |= annotations
    return bound


@pytest.mark.parametrize("case", HOSTILE)
def test_a_forged_pod_fails_with_a_short_reason_and_gives_back_the_lock(
    tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    resource, annotations = HOSTILE[case]
    assert resource.hami is not None
    lock = resource.hami.vendor.lock
    assert lock is not None

    async def scenario(rig: Rig) -> None:
        rig.bind(forged(annotations))
        if lock.annotation != LOCK:
            rig.server.annotate("nodes", NODE, {lock.annotation: "2026-11-15T23:25:11Z"})
        with pytest.raises(NotAssigned) as caught:
            await rig.ask(1, resource=resource)
        assert len(str(caught.value)) < LONGEST_MESSAGE
        assert str(caught.value).isprintable()
        assert rig.annotations()[REASON] == str(caught.value)
        if resource.hami and resource.hami.vendor.scheduling.sets_bind_phase:
            assert rig.annotations()[BIND_PHASE] == "failed"
        assert lock.annotation not in rig.node

    run(tmp_path, scenario, resource)
    assert all(len(record.getMessage()) < LONGEST_MESSAGE for record in caplog.records)


@pytest.mark.parametrize("case", HOSTILE)
def test_a_forged_pod_hinders_no_other(
    tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    resource, annotations = HOSTILE[case]
    # Of two sizes, so that one who gets the forged pod in place of the good one is found out.
    good = GPU if resource is MIG else resource
    assert good.hami is not None
    vendor = good.hami.vendor
    card = f"{NODE}-cambricon-mlu-0" if resource is MLU else good.cards[0].uuid
    to_allocate = {vendor.pods.to_allocate: segment(card, card, word=vendor.word)}
    # Ascend's plugin needs what the scheduler says of its templates too.
    to_allocate |= {f"huawei.com/{vendor.word}": "[]"} if resource is NPU else {}

    async def scenario(rig: Rig) -> None:
        rig.bind(forged({**annotations, BIND_TIME: "1"}, "forged"), lock=False)
        for name in ("good", "better"):
            rig.bind(forged(to_allocate, name), lock=False)
            (answer,) = await rig.ask(2, resource=good)
            assert answer
            assert rig.annotations(name)[vendor.pods.to_allocate] == ";"
        assert rig.annotations("forged")[BIND_PHASE] == "allocating"

    run(tmp_path, scenario, good)
    skipped = [r for r in caplog.records if "default/forged" in r.getMessage()]
    assert len(skipped) <= 1
    assert all(len(record.getMessage()) < LONGEST_MESSAGE for record in caplog.records)


@pytest.mark.parametrize("time", ["9" * 5000, "٣", "-1", "1e9", "", "\ud800", "1.5", "x" * 200_000])
def test_a_bind_time_that_is_none_hinders_nobody(tmp_path: Path, time: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(forged({TO_ALLOCATE: segment(A, B), BIND_TIME: time}, "odd"), lock=False)
        rig.bind(forged({TO_ALLOCATE: segment(B)}, "good"), lock=False)
        assert visible(await rig.ask(1)) == [B]
        assert visible(await rig.ask(2)) == [f"{A},{B}"]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "lock",
    [
        *("x" * 200_000, "2026-11-15T23:25:11Z,default," + "p" * 200_000, "\ud800", ",,"),
        *("9" * 5000, "2026-11-15T23:25:11Z,../../nodes,n1?x=", "2026-11-15T23:25:11Z,a b,c\nd"),
    ],
)
def test_a_lock_that_nobody_can_read_hinders_nobody(tmp_path: Path, lock: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)), lock=False)
        rig.server.annotate("nodes", NODE, {LOCK: lock})
        assert visible(await rig.ask(1)) == [B]
        assert rig.node[LOCK] == lock
        await rig.left_behind.clear_up()
        assert [each for each in rig.server.requests if each.startswith("get pods")] == []

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "rows",
    [
        '{"a": {"request": 3, "profileName": "\\ud800"}}',
        '{"\\ud800": {"request": 3, "profileName": "1g.8gb"}}',
        '{"a": {"request": 3, "allocated": "\\n"}}',
        '{"a": {"request": ' + "9" * 5000 + "}}",
        '{"a": {"request": 1e999}}',
        '{"' + "x" * 200_000 + '": {"request": "three"}}',
        "[" * 100_000,
    ],
)
def test_what_enflames_plugin_can_not_read_is_said_in_short(tmp_path: Path, rows: str) -> None:
    async def scenario(rig: Rig) -> None:
        bound = enflame_pod(3)
        bound["metadata"]["annotations"]["assigned-containers"] = rows
        rig.bind(bound, lock=False)
        with pytest.raises(NotAssigned) as caught:
            await rig.ask(3, resource=GCU)
        assert rig.annotations()[REASON] == str(caught.value)
        assert len(str(caught.value)) < LONGEST_MESSAGE

    run(tmp_path, scenario, GCU)


def test_a_pod_that_has_no_room_for_a_reason_fails_without_one(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        bound = forged({TO_ALLOCATE: segment("GPU-x"), "filling": ""})
        annotations = bound["metadata"]["annotations"]
        used = sum(len(key) + len(value) for key, value in annotations.items())
        annotations["filling"] = "x" * (MOST_ANNOTATION_BYTES - used)
        rig.bind(bound)
        with pytest.raises(NotAssigned, match="there is no device 'GPU-x'"):
            await rig.ask(1)
        assert rig.annotations()[BIND_PHASE] == "failed"
        assert REASON not in rig.annotations()
        assert LOCK not in rig.node

    run(tmp_path, scenario)


def test_what_nobody_foresaw_fails_the_pod_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("x" * 100_000)

    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        with monkeypatch.context() as patch:
            patch.setattr(module, "answer", broken)
            with pytest.raises(NotAssigned, match=r"nvidia.com/gpu: .*ZeroDivisionError: xxx"):
                await rig.ask(1)
        assert rig.annotations()[BIND_PHASE] == "failed"
        assert len(rig.annotations()[REASON]) < LONGEST_MESSAGE
        assert LOCK not in rig.node
        rig.bind(pod("p2", vgpu=segment(B)))
        assert visible(await rig.ask(1)) == [B]

    with caplog.at_level(logging.DEBUG):
        run(tmp_path, scenario)
    (record,) = (record for record in caplog.records if record.exc_info)
    assert record.levelno == logging.DEBUG


def test_what_nobody_foresaw_of_one_pod_hinders_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hami_mock.vendors import handout
    from hami_mock.views.hami import waiting

    honest = handout.next_claim

    def broken(vendor: Any, annotations: Any, size: int) -> Any:
        if "trap" in annotations:
            raise ZeroDivisionError
        return honest(vendor, annotations, size)

    monkeypatch.setattr(waiting, "next_claim", broken)

    async def scenario(rig: Rig) -> None:
        rig.bind(forged({TO_ALLOCATE: segment(A), "trap": "", BIND_TIME: "1"}, "trap"), lock=False)
        rig.bind(pod("good", vgpu=segment(B)), lock=False)
        assert visible(await rig.ask(1)) == [B]

    run(tmp_path, scenario)


def test_a_pod_that_makes_no_sense_ends_no_search_for_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        honest = rig.kubernetes.pod
        answers: list[dict[str, Any]] = [{}, {"metadata": None}]

        async def pod_of_a_strange_server(namespace: str, name: str) -> dict[str, Any]:
            return answers.pop() if answers else await honest(namespace, name)

        monkeypatch.setattr(rig.kubernetes, "pod", pod_of_a_strange_server)
        rig.lock("gone")
        async with anyio.create_task_group() as tasks:
            await tasks.start(rig.left_behind.run)
            await rig.server.wait_until(lambda: LOCK not in rig.node)
            tasks.cancel_scope.cancel()

    run(tmp_path, scenario)
    told = [r for r in caplog.records if "can't check for a lock" in r.getMessage()]
    assert len(told) == 2
