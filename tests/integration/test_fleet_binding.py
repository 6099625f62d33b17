"""Pods on nodes of a fleet: HAMi's whole protocol, without a kubelet that asks for it."""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from hami_mock.fleet import binding as binding_module
from hami_mock.fleet import left_locks
from hami_mock.hami.assignment import BIND_PHASE
from hami_mock.node.fault import Call, Fault
from hami_mock.views.hami.handover import REASON
from tests.integration.fleet_pods_rig import GPU, LOCK, Rig, asking_pod, binding
from tests.unit.views.hami.rig import segment

TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"


def run(folder: Path, scenario: Callable[[Rig], Awaitable[None]]) -> None:
    async def main() -> None:
        async with binding(folder) as rig:
            await scenario(rig)

    anyio.run(main)


def test_a_pod_gets_its_devices_and_the_node_is_unlocked(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        first, second = rig.cards("a-1")
        thing = asking_pod("p1", "a-1", first)
        container = {"resources": {"limits": {GPU: "2"}}, "name": "d"}
        thing["spec"]["containers"].append(container)
        both = segment(first) + segment(first, second)
        thing["metadata"]["annotations"][TO_ALLOCATE] = both
        rig.bind(thing)
        await rig.until(lambda: rig.is_done("p1"))
        assert rig.server.annotations("pods", "p1", "default")[TO_ALLOCATE] == ";;"
        # One write says it all on the pod, and one gives the lock back.
        assert [write.resource for write in rig.server.writes] == ["pods", "nodes"]
        await rig.fleet.changes.wait_until(lambda: rig.binder.bound == 1)
        assert rig.budget.written == 2
        assert rig.binder.seconds.number == 1

    run(tmp_path, scenario)


def test_the_lock_of_another_pod_stays(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.lock("a-0", "other")
        rig.bind(asking_pod("p1", "a-0", rig.cards("a-0")[0]), lock=False)
        await rig.fleet.changes.wait_until(lambda: rig.binder.bound == 1)
        assert rig.phase("p1") == "success"
        assert rig.is_locked("a-0")

    run(tmp_path, scenario)


def test_pods_of_one_node_come_one_after_the_other(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        member, card = rig.member("a-0"), rig.cards("a-0")[0]

        async def bind_another(_: web.Request) -> None:
            rig.bind(asking_pod("p2", "a-0", card), lock=False)
            await rig.fleet.changes.wait_until(lambda: len(member.pods or ()) == 2)
            with anyio.move_on_after(0.2):  # what must not happen has no event
                await rig.until(lambda: "patch pods p2" in rig.server.requests)

        rig.server.before_patch = bind_another
        rig.bind(asking_pod("p1", "a-0", card), lock=False)
        await rig.fleet.changes.wait_until(lambda: rig.binder.bound == 2)
        asked = [line for line in rig.server.requests if line.endswith((" p1", " p2", " a-0"))]
        assert asked[:3] == ["patch pods p1", "get nodes a-0", "patch pods p2"]

    run(tmp_path, scenario)


@pytest.mark.parametrize("why", ["broken", "unknown card", "other number", "lost card", "down"])
def test_a_pod_that_cannot_have_its_devices_fails(why: str, tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        card = rig.cards("a-0")[0]
        found = rig.fleet.find(["a-0"])
        thing = asking_pod("p1", "a-0", card)
        if why == "broken":
            rig.fleet.act("break", found, {"call": Call.ALLOCATE, "reason": "no driver"})
        elif why == "lost card":
            rig.fleet.act("lose", rig.fleet.find(["a-0:0"]))
        elif why == "down":
            rig.fleet.act("down", found)
        elif why == "unknown card":
            thing = asking_pod("p1", "a-0", "GPU-other")
        else:
            thing = asking_pod("p1", "a-0", card, asks={GPU: "2"})
        rig.bind(thing)
        await rig.until(lambda: not rig.is_locked("a-0"))
        annotations = rig.server.annotations("pods", "p1", "default")
        assert annotations[BIND_PHASE] == "failed"
        assert annotations[TO_ALLOCATE] == segment(thing_card(thing))
        assert ("no driver" in annotations[REASON]) is (why == "broken")
        await rig.until(lambda: rig.pod("p1")["status"]["phase"] == "Failed")
        assert rig.pod("p1")["status"]["reason"] == "UnexpectedAdmissionError"
        assert (rig.binder.bound, rig.binder.failed) == (0, 1)

    def thing_card(thing: dict[str, dict[str, dict[str, str]]]) -> str:
        return thing["metadata"]["annotations"][TO_ALLOCATE].split(",")[0]

    run(tmp_path, scenario)


def test_a_slow_node_keeps_no_other_waiting(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        slow = rig.fleet.find(["a-0"])
        rig.fleet.act("delay", slow, {"call": Call.ALLOCATE, "seconds": 3000.0})
        rig.fleet.act("hang", rig.fleet.find(["a-2"]), {"call": Call.ALLOCATE, "seconds": 0.01})
        for node in ("a-0", "a-1", "a-2"):
            rig.bind(asking_pod(f"on-{node}", node, rig.cards(node)[0]))
        await rig.until(lambda: rig.is_done("on-a-1") and rig.phase("on-a-2") == "failed")
        assert rig.phase("on-a-0") == "allocating"
        rig.fleet.act("clear", slow)
        await rig.until(lambda: rig.is_done("on-a-0"))

    run(tmp_path, scenario)


def test_a_pod_is_late_once_however_many_resources_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []

    async def held_up(faults: Iterable[Fault], *_: object) -> None:
        held.append(len([*faults]))

    monkeypatch.setattr(binding_module, "held_up", held_up)

    async def scenario(rig: Rig) -> None:
        slow = {"call": Call.ALLOCATE, "seconds": 2.0}
        rig.fleet.act("delay", rig.fleet.find(["a-0"]), slow)
        asks = {GPU: "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "20"}
        rig.bind(asking_pod("p1", "a-0", rig.cards("a-0")[0], asks=asks))
        await rig.until(lambda: rig.is_done("p1"))
        assert held == [1]

    run(tmp_path, scenario)


def test_a_stopped_node_does_nothing_until_it_starts(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        rig.fleet.act("stop-node", rig.fleet.find(["a-0"]))
        for node in ("a-0", "a-1"):
            rig.bind(asking_pod(f"on-{node}", node, rig.cards(node)[0]))
        await rig.until(lambda: rig.is_done("on-a-1"))
        assert rig.phase("on-a-0") == "allocating"
        rig.fleet.act("start-node", rig.fleet.find(["a-0"]))
        await rig.until(lambda: rig.is_done("on-a-0"))

    run(tmp_path, scenario)


def test_a_pod_that_somebody_else_bound_meanwhile_does_not_fail(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async def bind_first(_: web.Request) -> None:
            changes: dict[str, str | None] = {TO_ALLOCATE: "", BIND_PHASE: "success"}
            rig.server.annotate("pods", "p1", changes, "default")

        rig.server.before_patch = bind_first
        rig.bind(asking_pod("p1", "a-0", rig.cards("a-0")[0]))
        await rig.until(lambda: not rig.is_locked("a-0"))
        assert rig.phase("p1") == "success"
        assert REASON not in rig.server.annotations("pods", "p1", "default")
        assert rig.binder.failed == 0

    run(tmp_path, scenario)


def test_a_pod_that_changes_meanwhile_is_read_again(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async def change(_: web.Request) -> None:
            rig.server.annotate("pods", "p1", {"example.com/note": "x"}, "default")

        rig.server.before_patch = change
        rig.bind(asking_pod("p1", "a-0", rig.cards("a-0")[0]))
        await rig.until(lambda: rig.is_done("p1"))
        assert "get pods p1" in rig.server.requests

    run(tmp_path, scenario)


@pytest.mark.parametrize("is_current", [True, False])
def test_a_lock_that_was_seen_is_given_back_with_one_request(
    is_current: bool, tmp_path: Path
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.lock("a-0", "p1")
        rig.binder.left.see(rig.member("a-0"), rig.server.objects["nodes", "", "a-0"])
        if not is_current:
            rig.lock("a-0", "other")
        rig.bind(asking_pod("p1", "a-0", rig.cards("a-0")[0]), lock=False)
        await rig.fleet.changes.wait_until(lambda: rig.binder.bound == 1)
        assert ("get nodes a-0" in rig.server.requests) is not is_current
        # Of another one by now: the server doesn't take it away.
        assert rig.is_locked("a-0") is not is_current

    run(tmp_path, scenario)


def test_locks_that_nobody_gives_back_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a fleet that was killed in between, and for a pod that was deleted."""
    monkeypatch.setattr(left_locks, "GRACE_SECONDS", 0.0)

    async def scenario(rig: Rig) -> None:
        done = asking_pod("done", "a-0", rig.cards("a-0")[0], bind_phase="success")
        rig.bind(done)
        rig.lock("a-1", "gone")
        to_come = asking_pod("to-come", "a-2", rig.cards("a-2")[0])
        del to_come["spec"]["nodeName"]
        rig.server.put("pods", to_come)
        rig.lock("a-2", "to-come")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rig.follow_locks)
            await rig.until(lambda: not (rig.is_locked("a-0") or rig.is_locked("a-1")))
            await rig.binder.left.clear_up()
            assert rig.server.annotations("nodes", "a-2")[LOCK].endswith(",to-come")
            tasks.cancel_scope.cancel()

    run(tmp_path, scenario)


def test_a_watch_that_breaks_off_goes_on_where_it_was(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        card = rig.cards("a-0")[0]
        rig.bind(asking_pod("p1", "a-0", card))
        await rig.until(lambda: rig.is_done("p1"))
        rig.server.end_watches(abrupt=True)
        rig.bind(asking_pod("p2", "a-0", card))
        await rig.until(lambda: rig.is_done("p2"))
        assert rig.server.requests.count("list pods") == 1
        # One that has seen nothing new is no good: all is read again, and the same after a 410.
        rig.server.forget_history = True
        rig.server.end_watches()
        await rig.until(lambda: rig.server.requests.count("list pods") > 1)

    run(tmp_path, scenario)
