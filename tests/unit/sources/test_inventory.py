import errno
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from hami_mock.errors import UsageError
from hami_mock.kit.folder_watch import FolderWatch
from hami_mock.kubelet.holder import Holder
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.devices import CountedUnits
from hami_mock.node.event_kinds import Kind
from hami_mock.node.sizing import Past
from hami_mock.node.state import NodeState
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.node.ways import Permission
from hami_mock.settings.settings import load
from hami_mock.sources import host, inventory, unit_record
from hami_mock.sources.configured import ConfiguredSource, configured_node, first_node
from hami_mock.sources.holders import HolderReader
from hami_mock.sources.host import Host
from hami_mock.sources.inventory import Inventory
from tests.pod_resources import pod_resources
from tests.unit.builders import NODE, resource_named

GPUMEM, GPUCORES = "nvidia.com/gpumem", "nvidia.com/gpucores"
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
        held = self.devices
        return None if held is None else (Holder(("default", "train", "main"), {GPUMEM: [*held]}),)


@pytest.fixture(autouse=True)
def no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(inventory, "_AGAIN_SECONDS", 0.0)


def inventory_of(state: NodeState, folder: Path, kubelet: PodResources | None = None) -> Inventory:
    reader = HolderReader(state, kubelet or PodResources(""))
    return Inventory(load(FLAGS), state, reader, FolderWatch(folder))


def released(
    state: NodeState, kubelet: Callable[[], Kubelet], enough: Callable[[], bool], folder: Path
) -> None:
    async def run() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(inventory_of(state, folder, kubelet()).run)
                await state.wait_until(enough)
                tasks.cancel_scope.cancel()

    anyio.run(run)


def test_what_nobody_holds_is_released_with_a_word(tmp_path: Path) -> None:
    state = change(change(None, 50), 40)
    memory = resource_named(state.node, GPUMEM)
    held = {i for card in memory.cards for i in memory.devices.ids(card)}
    released(state, lambda: Kubelet(held, lambda: None), lambda: state.node.retired == 0, tmp_path)
    (event,) = state.events.after(0)
    assert event.kind is Kind.DEVICES_RELEASED
    assert event.message == "20 retired devices, 0 are still held"


def test_where_nobody_knows_who_holds_them_they_stay(tmp_path: Path) -> None:
    state = change(change(None, 50), 40)
    asked = [0]

    def count() -> None:
        asked[0] += 1
        if asked[0] == 5:
            # The only way out of here: nothing is retired any more.
            change(state, 50)

    released(state, lambda: Kubelet(None, count), lambda: state.node.retired == 0, tmp_path)
    assert asked[0] == 6  # once more at the end, for the record
    assert state.events.after(0) == []


def test_what_is_retired_while_the_kubelet_is_asked_has_its_own_time_to_settle(
    tmp_path: Path,
) -> None:
    state = change(change(None, 50), 40)
    seen: list[int] = []

    def happening() -> None:
        seen.append(state.node.retired)
        if len(seen) == 1:
            # The answer is on its way; it can't know of a pod that gets one of these now.
            change(state, 30)

    released(state, lambda: Kubelet(set(), happening), lambda: state.node.retired == 0, tmp_path)
    assert seen == [20, 40, 0]  # the last at the end, for the record
    (event,) = state.events.after(0)
    assert event.message == "40 retired devices, 0 are still held"


def keys(state: NodeState) -> dict[str, object]:
    return {resource.name: resource.devices.key for resource in state.node.resources}


def restarted(folder: Path, memory: int, *, cards: int = 2, pods: str = "") -> NodeState:
    """The state of an agent that starts after another one."""
    sizes = {"nvidia-memory": str(memory), "nvidia-cards": str(cards)}
    flags = {**FLAGS, **sizes, "socket-dir": str(folder), "pod-resources-socket": pods}
    return NodeState(anyio.run(first_node, load(flags))[0])


def playing(
    state: NodeState, folder: Path, play: Callable[[Inventory, FolderWatch], Awaitable[None]]
) -> None:
    """Play while the record is kept."""

    async def run() -> None:
        watch = FolderWatch(folder)
        kept = Inventory(load(FLAGS), state, HolderReader(state, PodResources("")), watch)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(watch.run)
                await tasks.start(kept.run)
                await play(kept, watch)
                tasks.cancel_scope.cancel()

    anyio.run(run)


async def nothing(kept: Inventory, watch: FolderWatch) -> None:
    await anyio.lowlevel.checkpoint()


def owners(state: NodeState) -> dict[str, str]:
    memory = resource_named(state.node, GPUMEM)
    return {i: card.uuid for card in memory.cards for i in memory.devices.ids(card)}


def test_a_record_that_somebody_removes_is_written_again(socket_folder: Path) -> None:
    record = socket_folder / unit_record.FILE
    state = change(change(None, 50), 60)

    async def empty_the_folder(kept: Inventory, watch: FolderWatch) -> None:
        for _ in range(2):
            assert record.exists()
            record.unlink()
            await watch.wait_until(record.exists)

    playing(state, socket_folder, empty_the_folder)
    assert keys(restarted(socket_folder, 60)) == keys(state)
    assert keys(change(None, 60)) != keys(state)


def test_a_record_comes_with_the_folder(socket_folder: Path) -> None:
    folder = socket_folder / "later"
    state = change(change(None, 50), 60)

    async def make_the_folder(_: Inventory, watch: FolderWatch) -> None:
        folder.mkdir()
        await watch.wait_until((folder / unit_record.FILE).exists)

    playing(state, folder, make_the_folder)
    assert keys(restarted(folder, 60)) == keys(state)


def test_units_stay_on_their_cards_when_an_agent_starts_with_other_flags(
    socket_folder: Path,
) -> None:
    first = change(None, 50)
    playing(first, socket_folder, nothing)
    for memory in (40, 60, 30, 70):
        state = restarted(socket_folder, memory)
        now = owners(state)
        assert all(now.get(i, uuid) == uuid for i, uuid in owners(first).items())
        assert state.node.retired == 0
        playing(state, socket_folder, nothing)
    assert len(owners(state)) == 140


def test_a_vendor_that_was_away_for_a_start_finds_its_units_again(socket_folder: Path) -> None:
    grown = change(change(None, 50), 60)
    playing(grown, socket_folder, nothing)
    playing(restarted(socket_folder, 60, cards=0), socket_folder, nothing)
    assert keys(restarted(socket_folder, 60)) == keys(grown)


def test_units_that_pods_hold_are_retired_over_a_restart(socket_folder: Path) -> None:
    before = change(None, 50)
    playing(before, socket_folder, nothing)
    last = [*owners(before)][-1]
    socket = socket_folder / "pods.socket"
    with pod_resources(socket) as pods:
        pods.pods = {("default", "train", "main"): {GPUMEM: [last]}}
        for _ in range(2):
            state = restarted(socket_folder, 40, pods=str(socket))
            memory = resource_named(state.node, GPUMEM)
            assert list(memory.devices.retired.values()) == [1]
            assert memory.devices.owner(last) == (memory.cards[-1].uuid, True)
            playing(state, socket_folder, nothing)
        pods.pods = {}
        assert restarted(socket_folder, 40, pods=str(socket)).node.retired == 0


def test_numbers_that_leave_no_room_are_forgotten_with_a_word(
    socket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    playing(change(None, 131_072), socket_folder, nothing)
    playing(restarted(socket_folder, 10), socket_folder, nothing)
    state = restarted(socket_folder, 262_144, cards=1)
    # The numbers of the card that is gone aren't free, and the IDs of higher ones are longer.
    assert "units are renumbered" in caplog.text
    assert len(owners(state)) == 262_144


def test_a_change_that_can_not_be_recorded_is_refused(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state = change(None, 50)
    before = keys(state)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def grow(kept: Inventory, _: FolderWatch) -> None:
        source = ConfiguredSource(load(FLAGS), state, kept)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(UsageError) as caught:
            await source.use(load({**FLAGS, "nvidia-memory": "60"}))
        assert str(caught.value) == (
            f"{socket_folder / unit_record.FILE}: can't record which unit belongs to which card: "
            "No space left on device; nothing was changed"
        )
        assert keys(state) == before
        monkeypatch.undo()
        assert await source.use(load({**FLAGS, "nvidia-memory": "60"}))
        assert keys(state) != before

    playing(state, socket_folder, grow)
    assert keys(restarted(socket_folder, 60)) == keys(state)


def test_a_start_that_can_not_be_recorded_goes_on_with_a_warning(
    socket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = socket_folder / unit_record.FILE
    record.with_suffix(".new").mkdir()

    async def make_room(_: Inventory, watch: FolderWatch) -> None:
        record.with_suffix(".new").rmdir()
        await watch.wait_until(record.exists)

    with caplog.at_level(logging.WARNING):
        playing(change(None, 50), socket_folder, make_room)
    assert (
        f"a restart may renumber units: {record}: hami-mock-units.new is not a regular file"
        in caplog.text
    )


@pytest.mark.parametrize(
    ("held", "stays"), [(set(), False), ({"0"}, True), (None, True)], ids=["none", "one", "unknown"]
)
def test_the_record_goes_with_the_agent_where_no_pod_holds_anything(
    tmp_path: Path, held: set[str] | None, stays: bool
) -> None:
    state = change(None, 50)
    seen = []

    def look() -> None:
        seen.append((tmp_path / unit_record.FILE).exists())

    class Answering(Kubelet):
        async def holders(self) -> tuple[Holder, ...] | None:
            look()
            return (await super().holders()) if self.devices != set() else ()

    released(state, lambda: Answering(held, lambda: None), lambda: True, tmp_path)
    assert seen == [True]
    assert (tmp_path / unit_record.FILE).exists() == stays


def moved(state: NodeState | None, units: str, used: set[str]) -> NodeState:
    """The state after --units was set, while pods hold devices of these resources."""
    before = state.node.resources if state else ()
    past = Past({r.name: r.devices for r in before}, (), used)
    settings = load({**FLAGS, "nvidia-memory": "50", "units": units})
    node = configured_node(settings, None, past)
    if state is None:
        return NodeState(node)
    state.change(node)
    return state


def test_a_resource_moves_to_the_status_when_its_last_holder_has_gone(tmp_path: Path) -> None:
    state = moved(moved(None, "plugin", set()), "status", {GPUMEM})
    memory = resource_named(state.node, GPUMEM)
    ids = {*memory.devices.ids(memory.cards[0])}
    asked = [0]
    kubelet = Kubelet(ids, lambda: None)

    def end_the_pod_after_some_time() -> None:
        asked[0] += 1
        assert not resource_named(state.node, GPUMEM).in_status
        if asked[0] == 3:
            kubelet._happening = lambda: None
            kubelet.devices = set()

    kubelet._happening = end_the_pod_after_some_time
    released(
        state,
        lambda: kubelet,
        lambda: resource_named(state.node, GPUMEM).in_status,
        tmp_path,
    )
    assert asked[0] == 3
    (event,) = state.events.after(0)
    assert (event.kind, event.subject) == (Kind.DEVICES_RELEASED, GPUMEM)
    assert "it moves to the Node's status" in event.message
    assert not state.node.is_settling


def test_of_what_stands_in_the_status_only_that_is_on_record(tmp_path: Path) -> None:
    state = moved(None, "status", set())
    settings = load({**FLAGS, "nvidia-memory": "50"})

    async def play(kept: Inventory, _: FolderWatch) -> None:
        found = unit_record.read(tmp_path, settings)
        assert {type(own) for own in found.values()} == {CountedUnits}
        assert GPUMEM in found
        past = await kept.past()
        assert resource_named(state.node, GPUMEM).devices is past.devices[GPUMEM]

    playing(state, tmp_path, play)


class NobodyHolds(PodResources):
    async def holders(self) -> tuple[Holder, ...]:
        return ()


@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_what_may_be_left_in_the_status_stays_on_record(tmp_path: Path, is_withdrawn: bool) -> None:
    state = moved(None, "plugin", set())
    moved(state, "status", {GPUMEM})
    settings = load({**FLAGS, "nvidia-memory": "50"})
    kept = inventory_of(state, tmp_path, NobodyHolds(""))

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(kept.run)
            before = unit_record.read(tmp_path, settings)
            assert {name for name, own in before.items() if isinstance(own, UnitDevices)} == {
                GPUMEM
            }
            if is_withdrawn:
                kept.forget_units_in_status()
            tasks.cancel_scope.cancel()

    anyio.run(run)
    # Nobody holds a device, so their numbers are on no record any more.
    after = unit_record.read(tmp_path, settings)
    assert {*after} == (set() if is_withdrawn else {GPUCORES, f"{GPUMEM}-percentage"})
    assert (tmp_path / unit_record.FILE).exists() != is_withdrawn


def test_what_pods_hold_stays_on_record_when_the_status_is_empty(tmp_path: Path) -> None:
    state = moved(None, "plugin", set())
    moved(state, "status", {GPUMEM})
    settings = load({**FLAGS, "nvidia-memory": "50"})

    async def play(kept: Inventory, _: FolderWatch) -> None:
        kept.forget_units_in_status()
        assert {*unit_record.read(tmp_path, settings)} == {GPUMEM}

    playing(state, tmp_path, play)


def test_a_record_of_the_status_alone_need_not_be_replaced_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No pod can hold a device of what has none."""
    unit_record.write(tmp_path, {GPUMEM: CountedUnits({})})
    record = tmp_path / unit_record.FILE
    record.with_suffix(".new").mkdir()
    playing(moved(None, "plugin", set()), tmp_path, nothing)
    assert f"a restart may renumber units: {record}" in caplog.text


def test_units_that_are_renumbered_leave_the_status_alone(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    playing(change(None, 131_072), socket_folder, nothing)
    playing(restarted(socket_folder, 10), socket_folder, nothing)
    numbered = unit_record.read(socket_folder, load(FLAGS))
    unit_record.write(socket_folder, {**numbered, GPUCORES: CountedUnits({})})

    async def away(*_: object) -> Host:
        return Host(None, Permission(refusal="the API server is away", is_known=False))

    monkeypatch.setattr(host, "ask", away)
    state = restarted(socket_folder, 262_144, cards=1)
    assert "units are renumbered" in caplog.text
    assert len(owners(state)) == 262_144
    assert [each.name for each in state.node.resources if each.in_status] == [GPUCORES]
