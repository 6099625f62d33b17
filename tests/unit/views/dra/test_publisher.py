"""What a driver makes of what the watch of its slices tells, and when."""

from collections.abc import AsyncGenerator
from copy import deepcopy
from typing import Any

import anyio
import pytest

from hami_mock.cluster.kubernetes import Change, Kubernetes, Tell
from hami_mock.cluster.resources import Resource
from hami_mock.errors import Conflict
from hami_mock.faults.actions import Action, perform
from hami_mock.node.state import NodeState
from hami_mock.views.dra import publisher as publisher_module
from hami_mock.views.dra.publisher import Publisher
from tests.unit.views.dra.rig import pool_of, state_of

Object = dict[str, Any]


class SlowWatch(Kubernetes):
    """An API server with one slice, whose watch tells what the test wants, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.tell, self.told = anyio.create_memory_object_stream[Change](1)
        self.there: list[Object] = []
        """The slice, as it was after each write."""
        self.is_silent = False

    async def watch(
        self,
        resource: Resource,
        fields: str = "",
        namespace: str = "",
        *,
        what: str = "",
        tell: Tell | None = None,
    ) -> AsyncGenerator[Change, None]:
        yield Change([], is_all=True)
        async for change in self.told:
            yield change

    async def node(self, name: str) -> Object:
        return {"metadata": {"uid": "n"}}

    async def create(self, resource: Resource, thing: Object) -> Object:
        return self._took(thing)

    async def update(self, resource: Resource, thing: Object, subresource: str = "") -> Object:
        if thing["metadata"]["resourceVersion"] != str(len(self.there)):
            raise Conflict("the slice is another one now")
        return self._took(thing)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, grace: int | None = None
    ) -> None:
        if self.is_silent:
            await anyio.sleep_forever()

    def _took(self, thing: Object) -> Object:
        made = deepcopy(thing)
        made["metadata"]["resourceVersion"] = str(len(self.there) + 1)
        self.there.append(made)
        return deepcopy(made)


async def fail_a_card(state: NodeState) -> None:
    perform(Action("fail", ("nvidia/0",)), state)
    await anyio.wait_all_tasks_blocked()


@pytest.mark.parametrize("is_gone", [False, True])
def test_what_is_older_than_the_last_answer_is_no_news(*, is_gone: bool) -> None:
    async def scenario() -> None:
        state, server = state_of(), SlowWatch()
        publisher = Publisher(pool_of(state), server)
        with server.tell, server.told:
            await play(state, server, publisher)

    async def play(state: NodeState, server: SlowWatch, publisher: Publisher) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(publisher.run, server.watch)
            await anyio.wait_all_tasks_blocked()
            await fail_a_card(state)
            await server.tell.send(Change([deepcopy(server.there[0])], is_gone=is_gone))
            await anyio.wait_all_tasks_blocked()
            assert (len(server.there), publisher.count, publisher.problem) == (2, 1, "")
            await server.tell.send(Change([deepcopy(server.there[1])], is_gone=True))
            await anyio.wait_all_tasks_blocked()
            assert len(server.there) == 3  # it was really gone, and is there again
            tasks.cancel_scope.cancel()

    anyio.run(scenario)


def test_slices_that_stay_at_the_end_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publisher_module, "_WITHDRAWAL_SECONDS", 0.01)

    async def scenario() -> None:
        server = SlowWatch()
        server.is_silent = True
        with server.tell, server.told:
            async with anyio.create_task_group() as tasks:
                await tasks.start(Publisher(pool_of(state_of()), server).run, server.watch)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()

    anyio.run(scenario)
    assert "can't remove its ResourceSlices: no answer from the API server" in caplog.text
