import anyio
import pytest

from hami_mock.errors import UsageError
from hami_mock.faults.scenario_reader import parse
from hami_mock.faults.stage import Stage
from hami_mock.node.state import NodeState
from tests.unit.builders import laid_out

LASTING = parse("{length: forever, steps: [{fail: nvidia/0}]}", "lasting.yaml")
OTHER = parse("{length: forever, steps: [{fail: nvidia/1}]}", "other.yaml")
SHORT = parse("{steps: [{recover: nvidia}]}", "short.yaml")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def unhealthy(state: NodeState) -> set[str]:
    return {state.cards[uuid].name for uuid in state.unhealthy}


@pytest.mark.anyio
async def test_a_scenario_is_played_replaced_and_stopped() -> None:
    state = NodeState(laid_out())
    stage = Stage(state)
    async with anyio.create_task_group() as tasks:
        await tasks.start(stage.run)
        assert stage.status is None
        await stage.play(LASTING)
        await state.wait_until(lambda: unhealthy(state) == {"nvidia/0"})
        await stage.play(OTHER)
        await state.wait_until(lambda: unhealthy(state) == {"nvidia/1"})
        stopped = await stage.stop()
        assert (stopped["name"], stopped["done"]) == ("other", True)
        assert unhealthy(state) == set()
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_one_that_was_put_on_and_stopped_at_once_changes_nothing() -> None:
    state = NodeState(laid_out())
    stage = Stage(state)
    async with anyio.create_task_group() as tasks:
        await tasks.start(stage.run)
        await stage.play(LASTING)
        with anyio.fail_after(5):
            await stage.stop()
        assert state.faults == ()
        await stage.play(OTHER)
        await state.wait_until(lambda: unhealthy(state) == {"nvidia/1"})
        tasks.cancel_scope.cancel()
    assert state.faults == (), "what it did is undone when the agent stops"


@pytest.mark.anyio
async def test_stop_when_nothing_plays_is_an_error() -> None:
    stage = Stage(NodeState(laid_out()))
    with pytest.raises(UsageError, match="no scenario is running"):
        await stage.stop()
    async with anyio.create_task_group() as tasks:
        await tasks.start(stage.run)
        await stage.play(SHORT)
        with anyio.fail_after(5):
            while not (stage.status or {})["done"]:
                await anyio.wait_all_tasks_blocked()
        with pytest.raises(UsageError, match="no scenario is running"):
            await stage.stop()
        tasks.cancel_scope.cancel()
