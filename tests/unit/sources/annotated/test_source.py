import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.kit.folder_watch import FolderWatch
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.devices import CountedUnits
from hami_mock.node.event_kinds import Kind
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import UNHEALTHY
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.node.ways import NO_PERMISSION, Permission
from hami_mock.settings.settings import Settings
from hami_mock.sources import unit_record
from hami_mock.sources.annotated.source import AnnotatedSource
from hami_mock.sources.holders import HolderReader
from hami_mock.sources.inventory import Inventory
from tests.unit.builders import NODE
from tests.unit.sources.annotated.nodes import NVIDIA, card, cards, node, numbers, settings


class Rig:
    """The source, and a node that tests change."""

    def __init__(self, folder: Path) -> None:
        self.settings = settings(socket_dir=folder)
        self.permission = NO_PERMISSION
        self.asked = 0
        self.state = NodeState(Node(NODE, (), ()))
        self.changes = 0
        self._send, self._receive = anyio.create_memory_object_stream[Mapping[str, Any]](10)
        holders = HolderReader(self.state, PodResources(""))
        self.inventory = Inventory(self.settings, self.state, holders, FolderWatch(folder))
        self.source = AnnotatedSource(
            self.settings, self.state, self.inventory, self._nodes, self._ask
        )

    async def _ask(self, _: Settings) -> Permission:
        self.asked += 1
        return self.permission

    async def _nodes(self, name: str) -> AsyncGenerator[Mapping[str, Any], None]:
        assert name == NODE
        async with self._receive:
            async for document in self._receive:
                yield document

    async def say(self, document: Mapping[str, Any]) -> None:
        change = self.state.changes.next()
        await self._send.send(document)
        await anyio.wait_all_tasks_blocked()
        self.changes += change.is_set()

    def offered(self) -> dict[str, int]:
        return numbers(self.state.node)

    def events(self, *kinds: Kind) -> list[str]:
        return [event.message for event in self.state.events.after(0) if event.kind in kinds]

    def close(self) -> None:
        self._send.close()


Script = Callable[[Rig], Awaitable[None]]


def play(folder: Path, script: Script) -> Rig:
    async def scenario() -> Rig:
        rig = Rig(folder)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(rig.source.run)
                await script(rig)
                rig.close()
        return rig

    return anyio.run(scenario)


ONE = node(cards(card("GPU-1")))
TWO = node(cards(card("GPU-1"), card("GPU-2", index=1)))
COUNTS = {
    "nvidia.com/gpucores": 100,
    "nvidia.com/gpumem": 32768,
    "nvidia.com/gpumem-percentage": 100,
}


def test_before_the_node_was_read_that_is_the_reason(socket_folder: Path) -> None:
    async def script(rig: Rig) -> None:
        assert rig.source.missing == ("node node-a has not been read yet",)

    play(socket_folder, script)


def test_the_annotation_comes_changes_and_goes(socket_folder: Path) -> None:
    async def script(rig: Rig) -> None:
        await rig.say(node())
        assert rig.offered() == {}
        assert len(rig.source.missing) == 1
        await rig.say(ONE)
        assert rig.offered() == COUNTS
        assert not rig.source.missing
        await rig.say(TWO)
        assert rig.offered() == {name: count * 2 for name, count in COUNTS.items()}
        await rig.say(node())
        assert rig.offered() == {}
        assert rig.source.missing[0].startswith(f"{NVIDIA}: the annotation is gone")
        await rig.say(TWO)
        assert not rig.source.missing

    rig = play(socket_folder, script)
    assert len(rig.events(Kind.CONFIGURATION_CHANGED)) == 4
    assert len(rig.events(Kind.CONFIGURATION_REJECTED)) == 2


def test_what_changes_nothing_is_no_change(socket_folder: Path) -> None:
    async def script(rig: Rig) -> None:
        await rig.say(ONE)
        assert rig.changes == 1
        await rig.say({**ONE, "spec": {"unschedulable": True}})
        # The same cards in another order, and more that HAMi knows of them.
        await rig.say(TWO)
        assert rig.changes == 2
        await rig.say(node(cards(card("GPU-2", index=1), card("GPU-1", custominfo={"x": 1}))))
        assert rig.changes == 2

    play(socket_folder, script)


def test_a_malformed_annotation_leaves_no_stale_count_and_is_said_once(
    socket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(rig: Rig) -> None:
        await rig.say(ONE)
        await rig.say(node({NVIDIA: "{"}))
        assert rig.offered() == {}
        await rig.say(node({NVIDIA: "{"}, capacity={"nvidia.com/gpu": 10}))
        assert len(rig.source.missing) == 1
        await rig.say(ONE)

    with caplog.at_level(logging.INFO, logger="hami_mock"):
        play(socket_folder, script)
    warned = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert [line for line in warned if "not valid JSON" in line] == warned
    assert len(warned) == 1
    assert "node annotations: nothing is missing now" in caplog.text


def test_units_are_the_same_when_an_annotation_comes_back(socket_folder: Path) -> None:
    async def script(rig: Rig) -> None:
        await rig.say(TWO)
        await rig.say(node(cards(card("GPU-2", index=1))))
        (memory,) = (r for r in rig.state.node.resources if r.name == "nvidia.com/gpumem")
        ids = set(memory.devices.ids(memory.cards[0]))
        await rig.say(node())
        await rig.say(TWO)
        (memory,) = (r for r in rig.state.node.resources if r.name == "nvidia.com/gpumem")
        assert set(memory.devices.ids(memory.cards[1])) == ids

    play(socket_folder, script)


def test_numbers_are_kept_for_the_next_agent(socket_folder: Path) -> None:
    first = card("GPU-0", index=0, devmem=10)
    rows = (card("GPU-1", index=1, devmem=10), card("GPU-2", index=2, devmem=10))
    seen: dict[str, set[str]] = {}

    def ids(rig: Rig) -> set[str]:
        (memory,) = (r for r in rig.state.node.resources if r.name == "nvidia.com/gpumem")
        return set(memory.devices.ids(memory.cards[-1]))

    async def before(rig: Rig) -> None:
        await rig.say(node(cards(*rows)))
        seen["before"] = ids(rig)
        await rig.say(node(cards(first, *rows)))

    async def after(rig: Rig) -> None:
        await rig.say(node(cards(first, *rows)))
        assert ids(rig) == seen["before"]

    play(socket_folder, before)
    assert (socket_folder / unit_record.FILE).exists()
    play(socket_folder, after)


def test_health_is_a_fault_of_the_sources_own(socket_folder: Path) -> None:
    ill = node(cards(card("GPU-1", health=False), card("GPU-2", index=1)))

    async def script(rig: Rig) -> None:
        await rig.say(ill)
        assert rig.state.unhealthy == {"GPU-1"}
        manual = Fault(UNHEALTHY, frozenset({"GPU-1"}), "by hand")
        rig.state.begin_faults(manual)
        await rig.say(TWO)
        assert list(rig.state.faults) == [manual]
        rig.state.end_faults(manual)
        await rig.say(ill)
        assert [fault.reason for fault in rig.state.faults] == ["HAMi's annotation says so"]
        await rig.say(node(cards(card("GPU-2", index=1))))
        assert list(rig.state.faults) == []
        await rig.say(ill)
        assert rig.state.unhealthy == {"GPU-1"}

    rig = play(socket_folder, script)
    assert rig.events(Kind.CARD_RECOVERED) == [
        "no longer unhealthy: by hand",
    ]


def test_a_card_that_somebody_mended_by_hand_stays_well(socket_folder: Path) -> None:
    async def script(rig: Rig) -> None:
        await rig.say(node(cards(card("GPU-1", health=False))))
        rig.state.end_faults_of({"GPU-1"})
        await rig.say(node(cards(card("GPU-1", health=False), card("GPU-2", index=1))))
        assert rig.state.unhealthy == set()

    play(socket_folder, script)


def test_other_settings_take_effect_at_once(socket_folder: Path) -> None:
    async def script(rig: Rig) -> None:
        changed = settings(socket_dir=socket_folder, nvidia_memory_factor=2)
        assert await rig.source.use(rig.settings) == []
        await rig.say(ONE)
        assert await rig.source.use(changed) == [
            "nvidia.com/gpumem: 32768 x 1 MiB → 16384 x 2 MiB, "
            "16384 retired until no pod holds them"
        ]
        assert rig.offered()["nvidia.com/gpumem"] == 16384

    play(socket_folder, script)


def test_a_list_over_the_limit_is_a_reason_and_the_others_go_on(socket_folder: Path) -> None:
    async def script(rig: Rig) -> None:
        await rig.say(ONE)
        rows = [card(f"GPU-{i}", index=i, devmem=81920) for i in range(8)]
        await rig.say(node(cards(*rows)))
        assert rig.offered() == {"nvidia.com/gpucores": 800, "nvidia.com/gpumem-percentage": 800}
        assert "the smallest memory factor that fits is 3" in rig.source.missing[0]

    play(socket_folder, script)


def test_what_can_not_be_recorded_is_a_reason_until_it_can(socket_folder: Path) -> None:
    in_the_way = (socket_folder / unit_record.FILE).with_suffix(".new")
    in_the_way.mkdir()

    async def script(rig: Rig) -> None:
        await rig.say(ONE)
        assert rig.offered() == {}
        assert rig.source.missing[0].endswith(
            "can't record which unit belongs to which card: hami-mock-units.new is not a regular "
            "file; nothing was changed"
        )
        in_the_way.rmdir()
        # A heartbeat: nothing else is new.
        await rig.say(ONE)
        assert rig.offered() == COUNTS
        assert not rig.source.missing

    play(socket_folder, script)


def test_what_nobody_foresaw_leaves_all_as_it_was_and_is_said_once(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("x" * 1000)

    async def script(rig: Rig) -> None:
        await rig.say(ONE)
        with monkeypatch.context() as patch:
            patch.setattr("hami_mock.sources.annotated.source.derive", fail)
            await rig.say(TWO)
            await rig.say({**TWO, "spec": {"unschedulable": True}})
        assert rig.offered() == COUNTS
        (reason,) = rig.source.missing
        assert reason.startswith("the node can't be understood: RecursionError: xxx")
        assert len(reason) < 400
        # A heartbeat: nothing else is new.
        await rig.say(TWO)
        assert rig.offered() == {name: count * 2 for name, count in COUNTS.items()}
        assert not rig.source.missing

    rig = play(socket_folder, script)
    assert len(rig.events(Kind.CONFIGURATION_REJECTED)) == 1


def test_a_role_that_comes_later_moves_the_units_with_the_next_heartbeat(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(_: PodResources) -> tuple[()]:
        return ()

    monkeypatch.setattr(PodResources, "holders", nobody)

    new = {**ONE, "status": {"nodeInfo": {"kubeletVersion": "v1.37.1"}}}

    def in_status(rig: Rig) -> set[bool]:
        return {resource.in_status for resource in rig.state.node.resources}

    async def script(rig: Rig) -> None:
        rig.permission = Permission(refusal="the role needs the verb patch for nodes/status")
        await rig.say(new)
        assert in_status(rig) == {False}
        await rig.say(new)
        assert (rig.asked, in_status(rig)) == (2, {False})
        rig.permission = Permission(is_allowed=True)
        await rig.say(new)
        assert (rig.asked, in_status(rig)) == (3, {True})
        assert rig.offered() == COUNTS
        await rig.say(new)
        assert rig.asked == 3
        # While the API server is away, nothing moves.
        rig.permission = Permission(refusal="can't reach the API server", is_known=False)
        await rig.source.use(rig.settings)
        assert (rig.asked, in_status(rig)) == (4, {True})

    rig = play(socket_folder, script)
    assert (
        "nvidia.com/gpumem: now in the Node's status" in rig.events(Kind.CONFIGURATION_CHANGED)[1]
    )


def test_a_companion_that_begins_without_an_answer_leaves_units_in_the_status(
    socket_folder: Path,
) -> None:
    unit_record.write(socket_folder, {"nvidia.com/gpumem": CountedUnits({})})

    async def script(rig: Rig) -> None:
        rig.permission = Permission(refusal="can't reach the API server", is_known=False)
        await rig.say(ONE)
        rows = {resource.name: resource.in_status for resource in rig.state.node.resources}
        assert {name for name, in_status in rows.items() if in_status} == {"nvidia.com/gpumem"}
        assert len(rows) > 1

    play(socket_folder, script)
