"""Pods that the kubelet refuses, and locks that nobody gives back."""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import anyio
import pytest

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import NotAssigned
from hami_mock.hami.assignment import BIND_PHASE
from hami_mock.hami.lock import NodeLock
from hami_mock.kit.concurrency import Backoff
from hami_mock.node.resources import Resource
from hami_mock.sources.pods import PodReader
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.vendors.handout import has_claims
from hami_mock.views.hami import left_behind
from hami_mock.views.hami.handover import REASON, Handover
from tests.integration.fake_api_objects import MOST_ANNOTATION_BYTES
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.integration.test_allocator import GPU, LOCK, TO_ALLOCATE, A, B, Rig
from tests.makers import BY_WORD
from tests.unit.builders import NODE
from tests.unit.views.hami.rig import count_resource, pod, segment, state_with

DSMLU = "cambricon.com/dsmlu.lock"
REFUSED = {
    "phase": "Failed",
    "reason": "UnexpectedAdmissionError",
    "message": "Allocate failed due to requested number of devices unavailable",
}
LOCKING = [hami for hami in BY_WORD.values() if has_claims(hami) and hami.lock is not None]

Scenario = Callable[[Rig], Awaitable[None]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_behind, "Backoff", lambda **_: Backoff(first=0.02, longest=0.05))


def run(
    folder: Path,
    scenario: Scenario,
    *resources: Resource,
    before: Callable[[FakeApiServer], None] = lambda _: None,
) -> FakeApiServer:
    """Play a scenario on a node whose pods are read, and whose locks are looked after."""

    async def main() -> FakeApiServer:
        with anyio.fail_after(60):
            async with api_server(folder) as server, Kubernetes() as kubernetes:
                server.put("nodes", {"metadata": {"name": NODE, "annotations": {}}})
                rig = Rig(server, kubernetes, state_with(*(resources or (GPU,))))
                before(server)
                async with anyio.create_task_group() as tasks:
                    await tasks.start(PodReader(rig.state, kubernetes.watch_pods).run)
                    await server.wait_until(lambda: "watch pods" in server.requests)
                    await tasks.start(rig.left_behind.run)
                    await settle(rig)
                    await scenario(rig)
                    tasks.cancel_scope.cancel()
                return server

    return anyio.run(main)


def refuse(rig: Rig, name: str = "p1") -> None:
    """Do what the kubelet does with a pod that it doesn't take."""
    refused = rig.server.objects["pods", "default", name]
    rig.server.put("pods", {**refused, "status": REFUSED})


async def see_known(rig: Rig, *names: str) -> None:
    await rig.state.pod_changes.wait_until(lambda: {name for _, name in rig.state.pods} == {*names})


async def see_unlocked(rig: Rig, annotation: str = LOCK) -> None:
    await rig.server.wait_until(lambda: annotation not in rig.node)


async def settle(rig: Rig) -> None:
    """Wait until all is cleared up that was to be: the next look begins when the last is over."""
    for _ in range(2):
        seen = rig.server.requests.count(f"get nodes {NODE}")
        rig.allocator.troubles.send()
        await rig.server.wait_until(
            lambda seen=seen: rig.server.requests.count(f"get nodes {NODE}") > seen  # type: ignore[misc]
        )


def asked_for(rig: Rig) -> set[str]:
    """Verbs and resources, without names."""
    return {line.rpartition(" ")[0] for line in rig.server.requests}


@pytest.mark.parametrize("hami", LOCKING, ids=lambda hami: hami.word)
def test_a_pod_that_the_kubelet_refuses_fails_and_unlocks_the_node(
    tmp_path: Path, hami: HamiVendor
) -> None:
    resource = count_resource(hami)
    assert hami.lock is not None
    kind, sets_phase = hami.lock.annotation, hami.scheduling.sets_bind_phase
    named = hami.scheduling.device_id or "{uuid}"
    card = resource.cards[0]
    device = named.format(uuid=card.uuid, node=NODE, index=0)
    if hami.node.encoding is None:
        device = f"{NODE}-0"
    now = datetime.now(UTC)

    async def scenario(rig: Rig) -> None:
        bound = pod(bind_time=int(now.timestamp()))
        for annotation in (hami.pods.to_allocate, hami.pods.allocated):
            bound["metadata"]["annotations"][annotation] = segment(device, word=hami.word)
        rig.bind(bound, lock=False)
        owner = NodeLock(now) if kind == DSMLU else NodeLock(now, "default", "p1")
        rig.server.annotate("nodes", NODE, {kind: owner.encode()})
        await see_known(rig, "p1")
        await settle(rig)
        assert kind in rig.node, "it may still come"
        refuse(rig)
        await see_unlocked(rig, kind)
        assert rig.annotations()[BIND_PHASE] == ("failed" if sets_phase else "allocating")
        assert rig.annotations()[REASON] == (
            "the pod failed before it had its devices: UnexpectedAdmissionError: "
            "Allocate failed due to requested number of devices unavailable"
        )
        written = len(rig.server.writes)
        await settle(rig)
        assert len(rig.server.writes) == written == 2, "once"

    run(tmp_path, scenario, resource)


def test_nothing_is_asked_for_while_pods_come_and_go_as_they_should(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await settle(rig)
        before = len(rig.server.requests)
        rig.bind(pod(vgpu=segment(B)), lock=False)
        await see_known(rig, "p1")
        served = {TO_ALLOCATE: ";", BIND_PHASE: "success"}
        rig.server.annotate("pods", "p1", {**served}, "default")
        refuse(rig)  # much later, and for reasons of its own
        rig.server.put("pods", pod("other", bind_phase="success", vgpu=";", phase="Succeeded"))
        await see_known(rig, "p1", "other")
        rig.server.remove("pods", "p1", "default")
        await see_known(rig, "other")
        await anyio.wait_all_tasks_blocked()
        assert rig.server.requests[before:] == []
        assert rig.server.writes == []

    run(tmp_path, scenario)


def test_the_lock_of_another_pod_stays(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod("p1", vgpu=segment(A)), lock=False)
        rig.bind(pod("p2", vgpu=segment(B)))
        await see_known(rig, "p1", "p2")
        refuse(rig, "p1")
        await rig.server.wait_until(lambda: rig.annotations("p1")[BIND_PHASE] == "failed")
        await settle(rig)
        assert "default,p2" in rig.node[LOCK]
        assert rig.annotations("p2")[BIND_PHASE] == "allocating"

    run(tmp_path, scenario)


def test_a_lock_that_was_taken_anew_meanwhile_stays(tmp_path: Path) -> None:
    """Between the look at a node and the patch, another pod of that name gets the lock."""

    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(A)))
        await see_known(rig, "p1")
        new = pod(vgpu=segment(B))
        new["metadata"]["uid"] = "uid-of-another"

        async def lock_anew(_: object) -> None:
            rig.server.put("pods", new)
            later = NodeLock(datetime.now(UTC) + timedelta(seconds=9), "default", "p1").encode()
            rig.server.annotate("nodes", NODE, {LOCK: later})

        rig.server.before_patch = lock_anew
        rig.server.remove("pods", "p1", "default")
        await rig.server.wait_until(lambda: rig.server.before_patch is None)
        await settle(rig)
        assert LOCK in rig.node
        assert rig.annotations()[BIND_PHASE] == "allocating"

    assert run(tmp_path, scenario).writes == []


def test_a_pod_that_is_deleted_before_it_came_unlocks_the_node(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(A)))
        await see_known(rig, "p1")
        rig.server.remove("pods", "p1", "default")
        await see_unlocked(rig)

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("since", "others", "is_removed"),
    [
        pytest.param(1, (), True, id="its own"),
        pytest.param(-5, (), False, id="older than the pod's binding"),
        pytest.param(150, (), False, id="set after its own had expired"),
        pytest.param(1, ("p2",), False, id="another pod waits"),
    ],
)
def test_a_lock_that_names_nobody_goes_if_it_can_be_nobody_elses(
    tmp_path: Path, since: int, others: tuple[str, ...], is_removed: bool
) -> None:
    mlu = count_resource(BY_WORD["MLU"])
    devices = segment(f"{NODE}-cambricon-mlu-1", word="MLU")
    bound = datetime.now(UTC).replace(microsecond=0)

    async def scenario(rig: Rig) -> None:
        for name in ("p1", *others):
            at = int(bound.timestamp())
            rig.bind(pod(name, bind_time=at, cambricon_mlu=devices), lock=False)
        lock = NodeLock(bound + timedelta(seconds=since)).encode()
        rig.server.annotate("nodes", NODE, {DSMLU: lock})
        await see_known(rig, "p1", *others)
        refuse(rig)
        await rig.server.wait_until(lambda: REASON in rig.annotations())
        await settle(rig)
        assert (DSMLU not in rig.node) == is_removed

    run(tmp_path, scenario, mlu)


def test_a_pod_that_ran_and_whose_vendor_knows_no_phases_is_left_alone(tmp_path: Path) -> None:
    mlu = count_resource(BY_WORD["MLU"])

    async def scenario(rig: Rig) -> None:
        rig.bind(pod(cambricon_mlu=";"), lock=False)
        await see_known(rig, "p1")
        refuse(rig)
        await settle(rig)
        assert REASON not in rig.annotations()

    run(tmp_path, scenario, mlu)


def test_what_was_left_before_the_agent_came_is_cleared_up(tmp_path: Path) -> None:
    def before(server: FakeApiServer) -> None:
        server.put("pods", {**pod(vgpu=segment(A)), "status": REFUSED})
        value = NodeLock(datetime.now(UTC), "default", "p1").encode()
        server.annotate("nodes", NODE, {LOCK: value})

    async def scenario(rig: Rig) -> None:
        await see_unlocked(rig)
        assert rig.annotations()[BIND_PHASE] == "failed"

    run(tmp_path, scenario, before=before)


@pytest.mark.parametrize("point", ["pods", "nodes"])
def test_an_agent_killed_in_the_middle_leaves_nothing_that_the_next_one_does_not_mend(
    tmp_path: Path, point: str
) -> None:
    async def killed(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        # Killed: what it would have written from here on never arrives.
        rig.server.refuse = lambda line: 503 if line.startswith(f"patch {point}") else None
        async with anyio.create_task_group() as asking:
            asking.start_soon(rig.ask, 1)
            await rig.server.wait_until(lambda: f"patch {point}" in asked_for(rig))
            asking.cancel_scope.cancel()
        rig.server.refuse = lambda _: None
        assert LOCK in rig.node

    async def scenario(rig: Rig) -> None:
        if point == "pods":
            await settle(rig)
            assert LOCK in rig.node, "the kubelet hasn't refused it yet"
            refuse(rig)
        await see_unlocked(rig)
        rig.bind(pod("p2", vgpu=segment(A)))
        await rig.ask(1)
        assert rig.is_done("p2")

    async def main() -> None:
        with anyio.fail_after(60):
            async with api_server(tmp_path) as server, Kubernetes() as kubernetes:
                server.put("nodes", {"metadata": {"name": NODE, "annotations": {}}})
                rig = Rig(server, kubernetes, state_with(GPU))
                await killed(rig)
                async with anyio.create_task_group() as tasks:
                    await tasks.start(PodReader(rig.state, kubernetes.watch_pods).run)
                    await tasks.start(rig.left_behind.run)
                    await see_known(rig, "p1")
                    await scenario(rig)
                    tasks.cancel_scope.cancel()

    anyio.run(main)


def test_a_lock_that_could_not_be_given_back_goes_when_the_api_server_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handover, "cleanup_seconds", 0.05)

    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        await see_known(rig, "p1")
        rig.server.refuse = lambda line: 503 if line.startswith("patch nodes") else None
        await rig.ask(1)
        assert rig.annotations()[BIND_PHASE] == "success"
        assert LOCK in rig.node
        rig.server.refuse = lambda _: None
        await see_unlocked(rig)

    run(tmp_path, scenario)


def test_a_failure_that_could_not_be_written_is_written_when_the_pod_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handover, "cleanup_seconds", 0.05)

    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment("GPU-of-another-node")))
        await see_known(rig, "p1")
        rig.server.refuse = lambda line: 503 if line.startswith("patch") else None
        with pytest.raises(NotAssigned):
            await rig.ask(1)
        assert LOCK in rig.node
        rig.server.refuse = lambda _: None
        await settle(rig)
        assert LOCK in rig.node, "nobody knows what the kubelet has heard"
        refuse(rig)
        await see_unlocked(rig)
        assert rig.annotations()[BIND_PHASE] == "failed"

    run(tmp_path, scenario)


def test_a_pod_that_can_not_be_written_on_keeps_no_lock(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.bind(pod(vgpu=segment(B)))
        await see_known(rig, "p1")
        rig.server.refuse = lambda line: 403 if line.startswith("patch pods") else None
        refuse(rig)
        await see_unlocked(rig)

    with caplog.at_level(logging.WARNING):
        run(tmp_path, scenario)
    assert "the role needs the verb patch for pods" in caplog.text


def test_a_pod_without_room_for_a_reason_gets_its_phase(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        full = pod(vgpu=segment(B))
        annotations = full["metadata"]["annotations"]
        annotations["x"] = "x" * (
            MOST_ANNOTATION_BYTES - 1 - len("".join(chain(*annotations.items())))
        )
        rig.bind(full)
        await see_known(rig, "p1")
        refuse(rig)
        await see_unlocked(rig)
        assert rig.annotations()[BIND_PHASE] == "failed"
        assert REASON not in rig.annotations()

    run(tmp_path, scenario)
