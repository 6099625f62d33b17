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


class Kubelet(PodResources):
    """Knows a pod's devices from the second time on that it is asked."""

    def __init__(self) -> None:
        super().__init__("")
        self.asked = 0

    async def holders(self) -> tuple[Holder, ...] | None:
        self.asked += 1
        return (Holder(POD, {GPU: ["a"]}),) if self.asked > 1 else ()


def test_the_kubelet_is_asked_after_devices_were_given_until_it_names_their_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(holders, "_SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(holders, "_AGAIN_SECONDS", 0.0)
    state, kubelet = NodeState(laid_out(None)), Kubelet()

    async def run() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(HolderReader(state, kubelet).run)
                await anyio.wait_all_tasks_blocked()
                assert kubelet.asked == 0
                state.holders.give(GPU, ["a"])
                await state.holders.changes.wait_until(lambda: not state.holders.has_unnamed)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()

    anyio.run(run)
    assert kubelet.asked == 2
    assert state.holders.all == (Holder(POD, {GPU: ["a"]}),)


def test_asking_takes_a_small_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
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
    state, kubelet = NodeState(laid_out(None)), Slow()

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(HolderReader(state, kubelet).run)
            state.holders.give(GPU, ["a"])
            await state.holders.changes.wait_until(lambda: not state.holders.has_unnamed)
            tasks.cancel_scope.cancel()

    anyio.run(run)
    assert naps == [1.0, 10.0, 40.0]


def test_many_who_look_at_once_ask_once() -> None:
    kubelet = Kubelet()
    reader = HolderReader(NodeState(laid_out(None)), kubelet)

    async def run() -> None:
        for _ in range(10):
            await reader.refresh_if_old()
        assert kubelet.asked == 1
        await reader.refresh()
        assert kubelet.asked == 2, "who must be sure asks anyway"
        reader._asked -= 1
        await reader.refresh_if_old()
        assert kubelet.asked == 3

    anyio.run(run)
