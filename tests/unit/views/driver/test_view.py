"""The view while the configuration changes: nothing gets lost, and nobody else writes meanwhile."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from hami_mock.kit.concurrency import first_of
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from hami_mock.views.driver.layout import MAGIC, VERSION
from hami_mock.views.driver.messages import OPERATIONS, REPLY, REQUEST
from hami_mock.views.driver.root import SETTERS, STATE_FOLDER, Programs
from hami_mock.views.driver.view import DriverView
from tests.unit.builders import laid_out
from tests.unit.views.driver.reading import COMPILED, events, header, live, node_state
from tests.unit.views.driver.test_cards import ALLOCATED, POD, hold
from tests.unit.views.hami.rig import segment

A_DRIVER = "580.95.05"


async def with_view(
    state: NodeState, root: Path, compiled: Callable[[], Programs], then: Callable[[], Any]
) -> None:
    async with anyio.create_task_group() as tasks:
        await tasks.start(DriverView(state, root, A_DRIVER, compiled).run)
        await then()
        tasks.cancel_scope.cancel()


async def ask(root: Path, **request: Any) -> dict[str, Any]:
    async with await anyio.connect_unix(root / SETTERS) as stream:
        await stream.send(REQUEST.pack({"magic": MAGIC, "version": VERSION, **request}))
        received = b""
        while len(received) < REPLY.size:
            received += await stream.receive()
    return REPLY.unpack(received)


def test_a_setter_waits_while_the_root_is_made_anew(tmp_path: Path) -> None:
    state, root = node_state(nvidia_cards=2), tmp_path / "root"
    is_making, may_go_on = threading.Event(), threading.Event()
    may_go_on.set()
    answers = []

    def compiled() -> Programs:
        is_making.set()
        may_go_on.wait(10)
        return COMPILED

    async def change_and_set() -> None:
        is_making.clear()
        may_go_on.clear()
        before = header(root / STATE_FOLDER)["generation"]
        state.change(laid_out(None, nvidia_cards=3))
        await anyio.to_thread.run_sync(is_making.wait)

        async def set_mode() -> None:
            operation = OPERATIONS["SET_COMPUTE_MODE"]
            asked = {"operation": operation, "card": 1, "generation": before, "values": (3, 0)}
            answers.append(await ask(root, **asked))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(set_mode)
            await anyio.wait_all_tasks_blocked()
            may_go_on.set()

    anyio.run(with_view, state, root, compiled, change_and_set)
    # It meant a card of the file of before.
    assert [answer["result"] for answer in answers] == [6]
    assert live(root / STATE_FOLDER, 1)["compute_mode"] == 0


def test_a_xid_just_before_a_change_is_told(tmp_path: Path) -> None:
    state, root = node_state(nvidia_cards=2), tmp_path / "root"

    async def fail_and_change() -> None:
        state.count_xid([state.node.cards[1]], 94)
        state.change(laid_out(None, nvidia_cards=3))
        # Answers come after the change, and after all that there is to tell.
        await ask(root, operation=OPERATIONS["SET_COMPUTE_MODE"])
        now = header(root / STATE_FOLDER)["generation"]
        await ask(root, operation=OPERATIONS["SET_COMPUTE_MODE"], generation=now)

    anyio.run(with_view, state, root, lambda: COMPILED, fail_and_change)
    assert events(root / STATE_FOLDER) == [(1, 1, 8, 94)]
    assert live(root / STATE_FOLDER, 1)["last_xid"] == 94


def test_a_xid_is_told_before_anybody_makes_lists(tmp_path: Path) -> None:
    """Those who do so were there first, and wait for several events each."""
    state, root = node_state(nvidia_cards=2), tmp_path / "root"
    told_before_lists = []

    async def make_a_list() -> None:
        changes = [told_by.next() for told_by in (state.changes, state.holders.changes)]
        await first_of(*(each.wait for each in changes))
        told_before_lists.append(events(root / STATE_FOLDER))

    async def fail() -> None:
        await anyio.wait_all_tasks_blocked()
        state.count_xid([state.node.cards[1]], 94)
        await anyio.wait_all_tasks_blocked()

    async def streams_first() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(make_a_list)
            await anyio.wait_all_tasks_blocked()
            await with_view(state, root, lambda: COMPILED, fail)

    anyio.run(streams_first)
    assert told_before_lists == [[(1, 1, 8, 94)]] * 8


def test_who_holds_which_card_is_shown_before_the_load_knows(tmp_path: Path) -> None:
    state, root = node_state(hami="on", nvidia_cards=2), tmp_path / "root"
    shown = []

    def assign() -> None:
        told = {ALLOCATED: segment(state.node.cards[0].uuid)}
        asked = {"main": {"nvidia.com/gpu": 1}}
        state.pods[POD[:2]] = Pod(
            *POD[:2], annotations=told, containers=("main",), requests=asked
        )  # fmt: skip
        state.pod_changes.send()

    async def come_move_and_go() -> None:
        for happen in (lambda: hold(state, POD, 1), assign, lambda: state.holders.name([])):
            happen()
            await anyio.wait_all_tasks_blocked()
            shown.append([live(root / STATE_FOLDER, card)["process_count"] for card in (0, 1)])

    anyio.run(with_view, state, root, lambda: COMPILED, come_move_and_go)
    assert shown == [[0, 1], [1, 0], [0, 0]]
