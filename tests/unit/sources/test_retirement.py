from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from hami_mock.kubelet.holder import Holder
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.event_kinds import Kind
from hami_mock.node.sizing import Past
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources import retirement
from hami_mock.sources.configured import configured_node
from hami_mock.sources.holders import HolderReader
from hami_mock.sources.retirement import Retirement
from tests.unit.builders import NODE, resource_named

GPUMEM = "nvidia.com/gpumem"
POD = ("default", "train", "main")
FLAGS = {"node-name": NODE, "mlu-cards": "0", "iluvatar-cards": "0", "ascend-cards": "0"}


def change(state: NodeState | None, memory: int) -> NodeState:
    devices = {r.name: r.devices for r in state.node.resources} if state else {}
    node = configured_node(load({**FLAGS, "nvidia-memory": str(memory)}), None, Past(devices))
    if state is None:
        return NodeState(node)
    state.change(node)
    return state


class Kubelet(PodResources):
    """Says what is held, and lets something happen while it is asked."""

    def __init__(self, held: set[str] | None, happening: Callable[[], object]) -> None:
        super().__init__("")
        self.devices = held
        self._happening = happening

    async def holders(self) -> tuple[Holder, ...] | None:
        self._happening()
        await anyio.lowlevel.checkpoint()
        return None if self.devices is None else (Holder(POD, {GPUMEM: [*self.devices]}),)


@pytest.fixture(autouse=True)
def no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retirement, "_SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(retirement, "_AGAIN_SECONDS", 0.0)


def released(state: NodeState, kubelet: Callable[[], Kubelet], enough: Callable[[], bool]) -> None:
    async def run() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(Retirement(state, HolderReader(state, kubelet())).run)
                await state.wait_until(enough)
                tasks.cancel_scope.cancel()

    anyio.run(run)


def test_what_nobody_holds_is_released_with_a_word() -> None:
    state = change(change(None, 50), 40)
    memory = resource_named(state.node, GPUMEM)
    held = {i for card in memory.cards for i in memory.devices.ids(card)}
    released(state, lambda: Kubelet(held, lambda: None), lambda: state.node.retired == 0)
    (event,) = state.events.after(0)
    assert event.kind is Kind.DEVICES_RELEASED
    assert event.message == "20 retired devices, 0 are still held"


def test_where_nobody_knows_who_holds_them_they_stay() -> None:
    state = change(change(None, 50), 40)
    asked = [0]

    def count() -> None:
        asked[0] += 1
        if asked[0] == 5:
            # The only way out of here: nothing is retired any more.
            change(state, 50)

    released(state, lambda: Kubelet(None, count), lambda: state.node.retired == 0)
    assert asked[0] == 5
    assert state.events.after(0) == []


def test_what_is_retired_while_the_kubelet_is_asked_has_its_own_time_to_settle() -> None:
    state = change(change(None, 50), 40)
    seen: list[int] = []

    def happening() -> None:
        seen.append(state.node.retired)
        if len(seen) == 1:
            # The answer is on its way; it can't know of a pod that gets one of these now.
            change(state, 30)

    released(state, lambda: Kubelet(set(), happening), lambda: state.node.retired == 0)
    assert seen == [20, 40]
    (event,) = state.events.after(0)
    assert event.message == "40 retired devices, 0 are still held"
