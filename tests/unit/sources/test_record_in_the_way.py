"""The record of units where there is no room for it, or something else stands in its place."""

import json
import logging
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from hami_mock.errors import StartError, UsageError
from hami_mock.kit.folder_watch import FolderWatch
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.event_kinds import Kind
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings, load
from hami_mock.sources import inventory, unit_record
from hami_mock.sources.configuration import Configuration
from hami_mock.sources.configured import ConfiguredSource, configured_node, first_node
from hami_mock.sources.holders import HolderReader
from hami_mock.sources.inventory import Inventory
from tests.unit.builders import NODE

FLAGS = {"node-name": NODE, "mlu-cards": "0", "iluvatar-cards": "0", "ascend-cards": "0"}


def settings(folder: Path, **more: str) -> Settings:
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return load({**FLAGS, "nvidia-memory": "50", "socket-dir": str(folder), **named})


class Rig:
    """An agent's source, its record and its configuration."""

    def __init__(self, folder: Path, **flags: str) -> None:
        self.settings = settings(folder, **flags)
        self.state = NodeState(configured_node(self.settings, None))
        self.folder = FolderWatch(folder)
        reader = HolderReader(self.state, PodResources(""))
        self.inventory = Inventory(self.settings, self.state, reader, self.folder)
        named = {name.replace("_", "-"): value for name, value in flags.items()}
        source = ConfiguredSource(self.settings, self.state, self.inventory)
        self.configuration = Configuration(self.settings, {**FLAGS, **named}, self.state, source)

    @property
    def keys(self) -> list[object]:
        return [resource.devices.key for resource in self.state.node.resources]


@pytest.fixture
def full_disk(socket_folder: Path) -> Iterator[Path]:
    """A file system with room for nothing but names."""
    folder = socket_folder / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mount is not allowed here")
    fill(folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> None:
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(b"x" * 4096)


def make_room(folder: Path) -> None:
    (folder / "filler").unlink()


def test_on_a_full_disk_a_set_is_refused_and_nothing_changes(full_disk: Path) -> None:
    rig = Rig(full_disk, nvidia_memory="50", socket_dir=str(full_disk))
    before = rig.keys

    async def scenario() -> None:
        with pytest.raises(UsageError) as caught:
            await rig.configuration.set_options({"nvidia-memory": "60"})
        assert str(caught.value) == (
            f"{full_disk / unit_record.FILE}: can't record which unit belongs to which card: "
            "No space left on device; nothing was changed"
        )
        assert rig.keys == before
        assert rig.configuration.overrides == {}
        assert [path.name for path in full_disk.iterdir()] == ["filler"]
        make_room(full_disk)
        assert await rig.configuration.set_options({"nvidia-memory": "60"})
        assert rig.keys != before

    anyio.run(scenario)
    assert sorted(path.name for path in full_disk.iterdir()) == [unit_record.FILE]


def test_on_a_full_disk_a_followed_file_is_rejected_with_an_event(
    full_disk: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("nvidia-memory: 50\n")
    rig = Rig(full_disk, config=str(config), socket_dir=str(full_disk))
    before = rig.keys
    config.write_text("nvidia-memory: 60\n")
    anyio.run(rig.configuration.follow)
    assert rig.keys == before
    (event,) = rig.state.events.after(0)
    assert event.kind is Kind.CONFIGURATION_REJECTED
    assert "can't record which unit belongs to which card: No space left on device" in event.message
    assert rig.configuration.as_data()["error"] == [event.message]


def test_a_record_is_whole_or_the_one_before(full_disk: Path) -> None:
    make_room(full_disk)
    rig = Rig(full_disk, nvidia_memory="50", socket_dir=str(full_disk))
    rig.inventory.change(rig.state.node)
    anyio.run(lambda: rig.configuration.set_options({"nvidia-memory": "60"}))
    recorded = (full_disk / unit_record.FILE).read_bytes()
    fill(full_disk)
    with pytest.raises(UsageError):
        anyio.run(lambda: rig.configuration.set_options({"nvidia-memory": "70"}))
    assert (full_disk / unit_record.FILE).read_bytes() == recorded
    node, _ = anyio.run(first_node, settings(full_disk, nvidia_memory="60"))
    assert [r.devices.key for r in node.resources] == rig.keys


def test_what_is_on_record_already_needs_no_room(full_disk: Path) -> None:
    make_room(full_disk)
    rig = Rig(full_disk, nvidia_memory="50", socket_dir=str(full_disk))
    anyio.run(lambda: rig.configuration.set_options({"nvidia-memory": "60"}))
    fill(full_disk)
    unit_record.write(full_disk, {r.name: r.devices for r in rig.state.node.resources})
    with pytest.raises(OSError, match="No space left"):
        unit_record.write(full_disk, {})


def test_a_start_with_other_flags_is_refused_on_a_full_disk(full_disk: Path) -> None:
    make_room(full_disk)
    first = Rig(full_disk, nvidia_memory="50", socket_dir=str(full_disk))
    anyio.run(lambda: first.configuration.set_options({"nvidia-memory": "60"}))
    recorded = (full_disk / unit_record.FILE).read_bytes()
    fill(full_disk)
    other = Rig(full_disk, nvidia_memory="70", socket_dir=str(full_disk))
    with pytest.raises(
        StartError, match="can't record which unit belongs to which card: No space left"
    ):
        anyio.run(other.inventory.run)
    assert (full_disk / unit_record.FILE).read_bytes() == recorded


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link(path: Path) -> None:
    theirs = path.with_name("theirs")
    theirs.write_text("{}")
    path.symlink_to(theirs)


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


IN_THE_WAY = {
    "link to what has no end": endless,
    "link to a file": link,
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "pipe": os.mkfifo,
    "folder": lambda path: path.mkdir(),
    "socket": listen,
}
in_the_way = pytest.mark.parametrize("put", IN_THE_WAY.values(), ids=IN_THE_WAY)


@pytest.fixture(autouse=True)
def no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_AGAIN_SECONDS", 0.0)


@in_the_way
def test_what_is_no_file_neither_stops_the_start_nor_is_touched(
    socket_folder: Path, put: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = socket_folder / unit_record.FILE
    assert callable(put)
    put(path)
    before = path.lstat()
    rig = Rig(socket_folder, socket_dir=str(socket_folder))

    async def scenario() -> None:
        with anyio.fail_after(20):
            await first_node(rig.settings)
            async with anyio.create_task_group() as tasks:
                await tasks.start(rig.folder.run)
                await tasks.start(rig.inventory.run)
                for _ in range(100):
                    await anyio.lowlevel.checkpoint()
                with pytest.raises(
                    UsageError, match="can't record which unit belongs to which card"
                ):
                    await rig.configuration.set_options({"nvidia-memory": "60"})
                tasks.cancel_scope.cancel()

    with caplog.at_level(logging.WARNING, "hami_mock"):
        anyio.run(scenario)
    told = [record.getMessage() for record in caplog.records]
    assert any(line.startswith(f"{path} can't be used, so units are renumbered") for line in told)
    assert len([line for line in told if line.startswith("a restart may renumber units")]) == 1
    assert (before.st_ino, before.st_mode) == (path.lstat().st_ino, path.lstat().st_mode)
    assert not [each for each in socket_folder.iterdir() if each.suffix == ".new"]


@in_the_way
def test_what_stands_where_the_new_one_is_written_is_not_touched(
    socket_folder: Path, put: object
) -> None:
    path = (socket_folder / unit_record.FILE).with_suffix(".new")
    assert callable(put)
    put(path)
    before = path.lstat()
    with pytest.raises(OSError):  # noqa: PT011
        unit_record.write(socket_folder, {})
    assert (before.st_ino, before.st_mode) == (path.lstat().st_ino, path.lstat().st_mode)
    theirs = socket_folder / "theirs"
    assert not theirs.exists() or theirs.read_text() == "{}"


def test_what_a_killed_agent_left_half_written_is_replaced(socket_folder: Path) -> None:
    path = socket_folder / unit_record.FILE
    path.with_suffix(".new").write_text('{"nvidia.com/gpum')
    unit_record.write(socket_folder, {})
    assert [each.name for each in socket_folder.iterdir()] == [path.name]
    assert json.loads(path.read_text()) == {}


@pytest.mark.parametrize(
    "content",
    ["[" * 10**5, '{"a":' * 10**5, '{"a": {"cards": {"b": [[0, 1e999]]}}}', " " * (17 * 2**20)],
    ids=["deep lists", "deep mappings", "infinite", "huge"],
)
def test_a_file_that_no_agent_wrote_is_passed_over_with_a_word(
    socket_folder: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    path = socket_folder / unit_record.FILE
    path.write_text(content.replace('"a"', '"nvidia.com/gpumem"'))
    with caplog.at_level(logging.WARNING):
        assert unit_record.read(socket_folder, settings(socket_folder)) == {}
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith(f"{path} can't be used, so units are renumbered: ")
    assert len(line) < 700
