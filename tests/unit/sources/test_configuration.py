"""The configuration of an agent that runs, without its sockets."""

import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.errors import UsageError
from hami_mock.kit.folder_watch import FolderWatch
from hami_mock.kubelet.holder import Holder
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import Event
from hami_mock.node.sizing import Past
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources import unit_record
from hami_mock.sources.configuration import Configuration
from hami_mock.sources.configured import ConfiguredSource, configured_node
from hami_mock.sources.holders import HolderReader
from hami_mock.sources.inventory import Inventory
from tests.unit.builders import NODE, config_file, counts

GPUMEM = "nvidia.com/gpumem"
POD = ("default", "train", "main")
SMALL = "iluvatar-cards: 0\nascend-cards: 0\nmlu-cards: 0\n"


class Holders(PodResources):
    """Pods that hold what they are told to hold; None if nobody knows."""

    def __init__(self, held: set[str] | None = None) -> None:
        super().__init__("")
        self.devices = held

    async def holders(self) -> tuple[Holder, ...] | None:
        return None if self.devices is None else (Holder(POD, {GPUMEM: [*self.devices]}),)


class Running:
    """What an agent has of its configuration."""

    def __init__(self, folder: Path, text: str, flags: Mapping[str, str]) -> None:
        self.folder = folder
        self.file = Path(config_file(folder, SMALL + text))
        given = {"config": str(self.file), "socket-dir": str(folder), "node-name": NODE, **flags}
        given = {name: value for name, value in given.items() if value}
        settings = load(given)
        self.state = NodeState(configured_node(settings, None))
        self.holders = Holders()
        reader = HolderReader(self.state, self.holders)
        inventory = Inventory(settings, self.state, reader, FolderWatch(folder))
        source = ConfiguredSource(settings, self.state, inventory)
        self.configuration = Configuration(settings, given, self.state, source)

    def write(self, text: str) -> None:
        self.file.write_text(SMALL + text)

    @property
    def memory(self) -> int:
        return counts(self.state.node)[GPUMEM]

    @property
    def events(self) -> list[Event]:
        return self.state.events.after(0)

    def reload(self) -> list[str]:
        return anyio.run(self.configuration.reload)

    def set(self, *, reset: bool = False, **values: str) -> list[str]:
        options = {name.replace("_", "-"): value for name, value in values.items()}

        async def act() -> list[str]:
            return await self.configuration.set_options(options, reset=reset)

        return anyio.run(act)


Start = Callable[..., Running]


@pytest.fixture
def start(socket_folder: Path) -> Start:
    def started(text: str = "nvidia-memory: 50", **flags: str) -> Running:
        named = {name.replace("_", "-"): value for name, value in flags.items()}
        return Running(socket_folder, text, named)

    return started


def rejected(act: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        act()
    (line,) = caught.value.problems
    return line


def test_a_file_that_changed_is_applied_as_one_step(start: Start) -> None:
    agent = start()
    told = agent.state.changes.next()
    agent.write("nvidia-memory: 60")
    assert agent.reload() == [
        "nvidia-memory: 50 → 60",
        "nvidia/0: V100-SXM2-32GB 50 MiB → V100-SXM2-32GB 60 MiB",
        "nvidia/1: V100-SXM2-32GB 50 MiB → V100-SXM2-32GB 60 MiB",
        f"{GPUMEM}: 100 x 1 MiB → 120 x 1 MiB",
    ]
    assert agent.memory == 120
    assert told.is_set()
    (event,) = agent.events
    assert (event.kind, event.subject) == (Kind.CONFIGURATION_CHANGED, str(agent.file))
    assert agent.configuration.changed is not None
    assert agent.configuration.as_data() == {
        "file": str(agent.file),
        "error": None,
        "changed": agent.configuration.changed,
        "overrides": {},
        "missing": [],
    }


def test_a_file_that_did_not_change_changes_nothing(start: Start) -> None:
    agent = start()
    before = [resource.devices.key for resource in agent.state.node.resources]
    assert agent.reload() == []
    assert [resource.devices.key for resource in agent.state.node.resources] == before
    assert agent.events == []
    assert agent.configuration.changed is None


@pytest.mark.parametrize("part", ["configuration.load", "configured.plan"])
def test_what_nobody_foresaw_leaves_the_old_settings_in_force_and_is_told(
    start: Start, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = start()
    node, settings = agent.state.node, agent.configuration.settings

    def fail(*_: object, **__: object) -> None:
        raise RecursionError("x" * 1000)

    monkeypatch.setattr(f"hami_mock.sources.{part}", fail)
    agent.write("nvidia-memory: 60")
    anyio.run(agent.configuration.follow)
    (line,) = agent.configuration.error
    assert line.startswith("the configuration can't be used: RecursionError: xxx")
    assert len(line) < 400
    (event,) = agent.events
    assert (event.kind, event.message) == (Kind.CONFIGURATION_REJECTED, line)
    assert rejected(lambda: agent.set(nvidia_memory="70")) == line
    assert (agent.state.node, agent.configuration.settings) == (node, settings)
    monkeypatch.undo()
    assert agent.reload()
    assert agent.configuration.error == ()


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_takes_the_place_of_the_file_is_not_waited_for(
    start: Start, put: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = start()
    agent.file.unlink()
    put(agent.file)
    loaded = anyio.Event()

    def load(*_: object) -> None:
        loaded.set()
        raise UsageError("it is no file")

    monkeypatch.setattr("hami_mock.sources.configuration.load", load)
    monkeypatch.setattr("hami_mock.sources.configuration._SETTLE_SECONDS", 0.0)

    async def scenario() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(agent.configuration.run)
                await loaded.wait()
                tasks.cancel_scope.cancel()

    anyio.run(scenario)
    assert agent.configuration.error == ("it is no file",)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("nvidia-memory: -1", "nvidia-memory: -1 is not allowed"),
        ("nvidia-crads: 1", "did you mean nvidia-cards?"),
        ("nvidia: [", "not valid YAML"),
        ("nvidia-memory: 300000", "the smallest memory factor that fits is 3"),
    ],
)
def test_a_file_with_a_mistake_leaves_the_old_settings_in_force(
    start: Start, text: str, part: str
) -> None:
    agent = start()
    node, settings = agent.state.node, agent.configuration.settings
    agent.write(text)
    line = rejected(agent.reload)
    assert part in line
    assert agent.configuration.error == (line,)
    assert agent.configuration.as_data()["error"] == [line]
    assert agent.state.node is node
    assert agent.configuration.settings is settings
    (event,) = agent.events
    assert (event.kind, event.subject, event.message) == (
        Kind.CONFIGURATION_REJECTED,
        str(agent.file),
        line,
    )


def test_a_mended_file_clears_the_error(start: Start) -> None:
    agent = start()
    agent.write("nvidia-memory: -1")
    rejected(agent.reload)
    agent.write("nvidia-memory: 50")
    assert agent.reload() == []
    assert agent.configuration.error == ()
    assert [event.kind for event in agent.events] == [Kind.CONFIGURATION_REJECTED]


def test_follow_keeps_the_error_to_itself(start: Start) -> None:
    agent = start()
    agent.file.unlink()
    anyio.run(agent.configuration.follow)
    (line,) = agent.configuration.error
    assert line.startswith(f"--config: can't read '{agent.file}'")
    assert agent.memory == 100


def test_options_that_are_set_beat_flags_and_file(start: Start) -> None:
    agent = start("nvidia-cards: 3", nvidia_memory="50")
    assert agent.memory == 150
    agent.set(nvidia_memory="60")
    assert agent.memory == 180
    agent.set(nvidia_cards="1")
    assert agent.memory == 60
    assert agent.configuration.overrides == {"nvidia-memory": "60", "nvidia-cards": "1"}
    agent.write("nvidia-cards: 4")
    assert agent.reload() == []
    agent.set(reset=True, nvidia_split="3")
    assert agent.memory == 200
    assert agent.configuration.overrides == {"nvidia-split": "3"}
    agent.set(reset=True)
    assert agent.configuration.overrides == {}


def test_an_option_that_is_wrong_is_not_set_and_no_error_of_the_file(start: Start) -> None:
    agent = start()
    agent.set(nvidia_memory="60")
    line = rejected(lambda: agent.set(nvidia_memory="-1"))
    assert line.startswith("nvidia-memory: '-1' is not allowed")
    assert "there is no such option; did you mean nvidia-cards?" in rejected(
        lambda: agent.set(nvidia_crads="1")
    )
    assert agent.configuration.overrides == {"nvidia-memory": "60"}
    assert agent.configuration.error == ()
    assert agent.memory == 120


def test_an_option_that_makes_a_rejected_file_fit_clears_its_error(start: Start) -> None:
    agent = start()
    agent.write("nvidia-memory: 300000")
    rejected(agent.reload)
    agent.set(nvidia_memory_factor="1000")
    assert agent.memory == 600
    assert agent.configuration.error == ()


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        (
            "node_name",
            "other",
            "node-name: 'other' is not allowed: in a running agent it stays",
        ),
        ("hami", "on", "hami: 'on' is not allowed: in a running agent it stays 'off'"),
        (
            "source",
            "hami",
            "source: 'hami' is not allowed: in a running agent it stays 'flags'",
        ),
    ],
)
def test_what_makes_another_node_of_it_can_not_change(
    start: Start, name: str, value: str, line: str
) -> None:
    agent = start()
    before = getattr(agent.configuration.settings, name)
    option = {name.replace("_", "-"): value}
    with pytest.raises(UsageError) as caught:
        anyio.run(agent.configuration.set_options, option)
    assert caught.value.problems[0].startswith(line)
    assert getattr(agent.configuration.settings, name) == before


def test_an_agent_that_runs_follows_the_file_that_it_was_started_with(
    start: Start, tmp_path: Path
) -> None:
    agent = start()
    other = config_file(tmp_path, "nvidia-memory: 60")
    assert rejected(lambda: agent.set(config=other)).startswith(f"config: {other!r} is not allowed")
    assert agent.memory == 100


def test_what_waits_for_the_next_start_is_told_and_the_rest_applied(start: Start) -> None:
    agent = start()
    agent.write("nvidia-memory: 60\nhttp-listen: ':1'\nlog-format: json")
    lines = agent.reload()
    assert lines[-2:] == [
        "http-listen: takes effect at the next start",
        "log-format: takes effect at the next start",
    ]
    assert agent.memory == 120
    # Once is enough.
    assert agent.reload() == []


@pytest.mark.parametrize(
    ("name", "value"), [("http_listen", ":1"), ("kubernetes_events", "on"), ("seed", "7")]
)
def test_what_only_a_start_can_change_is_not_set(start: Start, name: str, value: str) -> None:
    agent = start()
    option = name.replace("_", "-")
    assert rejected(lambda: agent.set(reset=False, **{name: value})) == (
        f"{option}: it can't change while the agent is running: restart the agent with "
        f"--{option}={value}"
    )
    assert agent.configuration.overrides == {}
    assert agent.set(log_format="text") == []


def test_a_reload_without_a_file_says_so(start: Start) -> None:
    (line,) = start(config="").reload()
    assert line.startswith("there is no file to reload")


def test_cards_that_are_set_over_groups_are_the_first_of_them(start: Start) -> None:
    agent = start("nvidia-groups: [{cards: 4, model: A100-SXM4-80GB, memory: 10, numa: 1}]")
    agent.set(nvidia_cards="2")
    assert [(card.model.name, card.numa) for card in agent.state.node.cards] == [
        ("A100-SXM4-80GB", 1)
    ] * 2
    assert "at most 4, the number of cards in" in rejected(lambda: agent.set(nvidia_cards="5"))
    assert "lists the cards" in rejected(lambda: agent.set(nvidia_model="T4"))
    assert len(agent.state.node.cards) == 2


def test_log_level_and_ignored_xids_take_effect_at_once(start: Start) -> None:
    agent = start()
    assert agent.set(log_level="debug", ignored_xids="79, 13") == [
        "log-level: info → debug",
        "ignored-xids: 13,31,43,45,68,109 → 13,79",
    ]
    assert logging.getLogger().level == logging.DEBUG
    assert agent.state.ignored_xids == {79, 13}
    agent.set(reset=True)
    assert logging.getLogger().level == logging.INFO


def test_numbers_that_are_not_obvious_are_kept_for_the_next_agent(start: Start) -> None:
    agent = start()
    agent.set(nvidia_memory="60")
    assert (agent.folder / unit_record.FILE).exists()
    settings = agent.configuration.settings
    again = configured_node(settings, None, Past(unit_record.read(agent.folder, settings)))
    assert [r.devices.key for r in again.resources] == [
        r.devices.key for r in agent.state.node.resources
    ]


def test_only_what_pods_hold_needs_room_in_a_full_list(start: Start) -> None:
    agent = start("nvidia-groups: [{cards: 1, memory: 200000}, {cards: 1, memory: 10}]")
    agent.write("nvidia-groups: [{cards: 1, memory: 10}, {cards: 1, memory: 200000}]")
    assert "199990 of them no longer fit" in rejected(agent.reload)
    agent.holders.devices = set()
    agent.reload()
    assert (agent.memory, agent.state.node.retired) == (200_010, 0)


def test_changes_at_the_same_time_are_made_one_after_the_other(start: Start) -> None:
    agent = start()

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.configuration.set_options, {"nvidia-memory": "60"})
            tasks.start_soon(agent.configuration.reload)
            tasks.start_soon(agent.configuration.reload)

    anyio.run(both)
    assert agent.memory == 120


def following(agent: Running, play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Play while the file is watched."""

    async def run() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(agent.configuration.run)
                await play()
                tasks.cancel_scope.cancel()

    anyio.run(run)


def test_a_file_is_read_when_nobody_writes_to_it_any_more(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = start()
    naps: list[float] = []
    texts = ["nvidia-memory: 6", "nvidia-memory: 60"]

    async def nap(seconds: float) -> None:
        # As long as somebody writes, the content is another one after each nap.
        naps.append(seconds)
        if texts:
            agent.write(texts.pop(0))

    monkeypatch.setattr("hami_mock.sources.configuration.anyio.sleep", nap)

    async def play() -> None:
        agent.write("nvidia-mem")
        await agent.state.wait_until(lambda: agent.memory == 120)

    following(agent, play)
    assert len(naps) == 3
    assert [event.kind for event in agent.events] == [Kind.CONFIGURATION_CHANGED]


def test_a_device_config_file_that_a_reload_names_is_followed(start: Start, tmp_path: Path) -> None:
    agent = start()
    file, other = tmp_path / "device-config.yaml", tmp_path / "other.yaml"
    file.write_text("nvidia: {deviceSplitCount: 3}")
    other.write_text("nvidia: {deviceSplitCount: 5}")

    async def until_slots(count: int) -> None:
        await agent.state.wait_until(lambda: counts(agent.state.node)["nvidia.com/gpu"] == count)

    async def play() -> None:
        agent.write(f"nvidia-memory: 50\ndevice-config-file: {file}")
        await until_slots(6)
        file.write_text("nvidia: {deviceSplitCount: 4}")
        await until_slots(8)
        # By command too, and then no longer the first.
        await agent.configuration.set_options({"device-config-file": str(other)})
        await until_slots(10)
        file.write_text("nvidia: {deviceSplitCount: 1}")
        other.write_text("nvidia: {deviceSplitCount: 6}")
        await until_slots(12)

    following(agent, play)
    assert agent.configuration.error == ()


def test_an_agent_that_was_started_without_files_follows_the_first_that_is_named(
    start: Start, tmp_path: Path
) -> None:
    agent = start(config="", nvidia_memory="50")
    file = tmp_path / "device-config.yaml"
    file.write_text("nvidia: {deviceSplitCount: 3}")

    async def play() -> None:
        await agent.configuration.set_options({"device-config-file": str(file)})
        file.write_text("nvidia: {deviceSplitCount: 4}")
        await agent.state.wait_until(lambda: counts(agent.state.node)["nvidia.com/gpu"] == 8)

    following(agent, play)
    assert agent.configuration.as_data()["file"] is None
