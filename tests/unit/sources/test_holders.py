import math
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from hami_mock.kubelet.holder import Holder
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.state import NodeState
from hami_mock.sources import holders
from hami_mock.sources.holders import HolderReader
from tests.unit.builders import laid_out

GPU = "nvidia.com/gpu"
POD = ("default", "train", "main")
HELD = (Holder(POD, {GPU: ["a"]}),)


class Kubelet(PodResources):
    """Gives one answer after the other, and the last again and again."""

    def __init__(self, *answers: tuple[Holder, ...] | None) -> None:
        super().__init__("")
        self._answers = [*answers]
        self.asked = 0

    async def holders(self) -> tuple[Holder, ...] | None:
        self.asked += 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.fixture
def state() -> NodeState:
    return NodeState(laid_out(None))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holders, "_SETTLE_SECONDS", 0.0)


def run(state: NodeState, kubelet: Kubelet, script: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(HolderReader(state, kubelet).run)
                await anyio.wait_all_tasks_blocked()
                await script()
                tasks.cancel_scope.cancel()

    anyio.run(main)


def test_the_kubelet_is_asked_at_the_start(state: NodeState) -> None:
    """Pods that were there before the agent hold devices too."""
    kubelet = Kubelet(HELD)

    async def script() -> None:
        assert (kubelet.asked, state.holders.all) == (1, HELD)

    run(state, kubelet, script)


def test_it_is_asked_after_devices_were_given_until_it_names_their_pod(
    state: NodeState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holders, "_AGAIN_SECONDS", 0.01)
    kubelet = Kubelet((), (), HELD)

    async def script() -> None:
        assert kubelet.asked == 1
        state.holders.give(GPU, ["a"])
        await state.holders.changes.wait_until(lambda: not state.holders.has_unnamed)

    run(state, kubelet, script)
    assert kubelet.asked == 3
    assert state.holders.all == HELD


def test_it_is_asked_again_while_somebody_holds_something(
    state: NodeState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody tells of the end of a pod."""
    monkeypatch.setattr(holders, "_AGAIN_SECONDS", 0.01)
    kubelet = Kubelet(HELD, HELD, ())

    async def script() -> None:
        await state.holders.changes.wait_until(lambda: state.holders.all == ())
        await anyio.wait_all_tasks_blocked()
        assert kubelet.asked == 3
        await anyio.sleep(0.05)
        assert kubelet.asked == 3, "where nobody holds anything, nothing ends"

    run(state, kubelet, script)


def test_it_is_asked_when_a_pod_has_changed(state: NodeState) -> None:
    kubelet = Kubelet((), HELD)

    async def script() -> None:
        state.pod_changes.send()
        await state.holders.changes.wait_until(lambda: state.holders.all == HELD)

    run(state, kubelet, script)
    assert kubelet.asked == 2


def test_what_stays_the_same_is_no_change(state: NodeState) -> None:
    state.holders.name(HELD)
    change = state.holders.changes.next()
    state.holders.name([Holder(POD, {GPU: ["a"]})])
    assert not change.is_set()
    state.holders.name(None)
    assert change.is_set()


def test_asking_takes_a_small_part_of_the_time(
    state: NodeState, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        naps.append(seconds)
        await anyio.lowlevel.checkpoint()

    class Slow(Kubelet):
        async def holders(self) -> tuple[Holder, ...] | None:
            clock[0] += 2.0
            return await super().holders()

    clock = [0.0]
    monkeypatch.setattr(anyio, "sleep", nap)
    monkeypatch.setattr(anyio, "current_time", lambda: clock[0])
    monkeypatch.setattr(holders, "_AGAIN_SECONDS", math.inf)

    async def script() -> None:
        state.holders.give(GPU, ["a"])
        await state.holders.changes.wait_until(lambda: not state.holders.has_unnamed)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(HolderReader(state, Slow((), HELD)).run)
            await anyio.lowlevel.checkpoint()
            await script()
            tasks.cancel_scope.cancel()

    anyio.run(main)
    assert naps == [40.0]


def test_why_nobody_knows_is_a_notice(state: NodeState, tmp_path: object) -> None:
    reader = HolderReader(state, PodResources(f"{tmp_path}/pods.sock"))
    assert reader.notice == ""
    anyio.run(reader.refresh)
    assert reader.notice == f"it isn't known who holds what: there is no {tmp_path}/pods.sock"
    assert "--pod-resources-socket" in HolderReader(state, PodResources("")).notice


def test_many_who_look_at_once_ask_once(state: NodeState) -> None:
    kubelet = Kubelet(())
    reader = HolderReader(state, kubelet)

    async def main() -> None:
        for _ in range(10):
            await reader.refresh_if_old()
        assert kubelet.asked == 1
        await reader.refresh()
        assert kubelet.asked == 2, "who must be sure asks anyway"
        reader._asked -= 1
        await reader.refresh_if_old()
        assert kubelet.asked == 3

    anyio.run(main)


@pytest.mark.parametrize(("plugins", "is_asked_again"), [("on", False), ("off", True)])
def test_what_another_plugin_gives_is_looked_for_more_often(
    plugins: str, is_asked_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody tells us when it does."""
    monkeypatch.setattr(holders, "_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(holders, "_RARELY_SECONDS", math.inf)
    state, kubelet = NodeState(laid_out(device_plugins=plugins)), Kubelet(())

    async def script() -> None:
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        assert (kubelet.asked > 1) == is_asked_again

    run(state, kubelet, script)
