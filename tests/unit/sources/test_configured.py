"""The settings' cards, when the API server changes its mind about the Node's status."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.errors import UsageError
from hami_mock.kit.folder_watch import FolderWatch
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.node.event_kinds import Kind
from hami_mock.node.state import NodeState
from hami_mock.node.ways import Permission
from hami_mock.settings.settings import Settings, load
from hami_mock.sources import configured, host
from hami_mock.sources.configured import ConfiguredSource, configured_node
from hami_mock.sources.holders import HolderReader
from hami_mock.sources.host import Host
from hami_mock.sources.inventory import Inventory
from tests.unit.builders import NODE, resource_named

MEMORY = "nvidia.com/gpumem"
UNITS = {MEMORY, "nvidia.com/gpucores", f"{MEMORY}-percentage"}
REFUSED = Permission(refusal="the role needs the verb patch for nodes/status")
ALLOWED = Permission(is_allowed=True)
AWAY = Permission(refusal="can't reach the API server", is_known=False)


class Server:
    """An API server that answers with these, the last of them for good."""

    def __init__(self, *answers: Permission) -> None:
        self._answers = [*answers]
        self.asked = 0

    async def ask(self, settings: Settings, if_unknown: Permission) -> Host:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return Host((1, 37), answer)


class Rig:
    def __init__(
        self, folder: Path, known: Permission = REFUSED, *, is_connected: bool = True, **flags: Any
    ) -> None:
        self.settings = settings_of(**flags)
        self.state = NodeState(configured_node(self.settings, (1, 37), permission=known))
        reader = HolderReader(self.state, PodResources(""))
        inventory = Inventory(self.settings, self.state, reader, FolderWatch(folder))
        # Nobody can say what pods hold, but there are none: the plugins have just begun.
        self.state.holders.name([])
        self.source = ConfiguredSource(
            self.settings, self.state, inventory, is_connected=is_connected
        )
        self.source.known = Host((1, 37), known)

    @property
    def is_in_status(self) -> bool:
        return resource_named(self.state.node, MEMORY).in_status

    @property
    def in_status(self) -> set[str]:
        return {each.name for each in self.state.node.resources if each.in_status}


def settings_of(**flags: Any) -> Settings:
    values = {"node_name": NODE, "vendors": "nvidia", "nvidia_memory": 50, **flags}
    return load({name.replace("_", "-"): str(value) for name, value in values.items()})


@pytest.fixture(autouse=True)
def no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "_AGAIN_SECONDS", 0.0)

    async def holders(_: PodResources) -> tuple[()]:
        return ()

    monkeypatch.setattr(PodResources, "holders", holders)


def test_a_role_that_comes_later_moves_the_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(REFUSED, REFUSED, ALLOWED)
    monkeypatch.setattr(host, "ask", server.ask)
    rig = Rig(tmp_path)
    assert not rig.is_in_status

    async def scenario() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(rig.source.run)
                assert REFUSED.refusal in rig.source.notice
                await rig.state.wait_until(lambda: rig.is_in_status)
                assert rig.source.notice == ""
                asked = server.asked
                rig.state.changes.send()
                await anyio.wait_all_tasks_blocked()
                assert server.asked == asked == 3, "it has what it wanted"
                tasks.cancel_scope.cancel()

    anyio.run(scenario)
    assert caplog.text.count(REFUSED.refusal) == 1, "once, however often it is asked"
    (event,) = rig.state.events.after(0)
    assert (event.kind, event.subject) == (Kind.CONFIGURATION_CHANGED, "--units auto")
    assert f"{MEMORY}: now in the Node's status" in event.message


@pytest.mark.parametrize(
    "flags", [{"is_connected": False}, {"units": "plugin"}, {"nvidia_cards": 0}]
)
def test_who_was_not_refused_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: dict[str, Any]
) -> None:
    server = Server(ALLOWED)
    monkeypatch.setattr(host, "ask", server.ask)
    rig = Rig(tmp_path, **flags)

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(rig.source.run)
            rig.state.changes.send()
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    anyio.run(scenario)
    assert server.asked == 0


def test_an_api_server_that_is_away_moves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "ask", Server(ALLOWED, AWAY, REFUSED).ask)
    rig = Rig(tmp_path)
    for memory, is_in_status in ((60, True), (70, True), (80, False)):
        anyio.run(rig.source.use, settings_of(nvidia_memory=memory))
        assert resource_named(rig.state.node, MEMORY).count == 2 * memory
        assert rig.is_in_status == is_in_status


LARGE: dict[str, Any] = {"nvidia_cards": 8, "nvidia_memory": 183359}


@pytest.mark.parametrize("flags", [{}, LARGE], ids=["all have plugins", "one has no room"])
def test_who_began_without_an_answer_asks_until_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: dict[str, Any]
) -> None:
    server = Server(AWAY, ALLOWED)
    monkeypatch.setattr(host, "ask", server.ask)
    rig = Rig(tmp_path, AWAY, **flags)
    assert rig.is_in_status == bool(flags)
    unknown = f"it isn't known whether units may be put in the Node's status: {AWAY.refusal}"
    assert rig.source.notice == unknown

    async def scenario() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(rig.source.run)
                await rig.state.wait_until(lambda: rig.in_status == UNITS)
                tasks.cancel_scope.cancel()

    anyio.run(scenario)
    assert server.asked == 2
    assert rig.source.notice == ""


def test_who_is_refused_in_the_end_and_has_no_other_place_lives_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(REFUSED, REFUSED, REFUSED, ALLOWED)
    monkeypatch.setattr(host, "ask", server.ask)
    rig = Rig(tmp_path, AWAY, **LARGE)
    before = rig.state.node
    notices = []

    async def ask(settings: Settings, if_unknown: Permission) -> Host:
        notices.append(rig.source.notice)
        assert rig.state.node is before
        return await server.ask(settings, if_unknown)

    monkeypatch.setattr(host, "ask", ask)

    async def scenario() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(rig.source.run)
                await rig.state.wait_until(lambda: rig.state.node is not before)
                tasks.cancel_scope.cancel()

    anyio.run(scenario)
    assert notices[1] == notices[2] == notices[3]
    assert notices[1].startswith(f"units stay where they are: {MEMORY}: ")
    assert notices[1].endswith(f"they aren't put there: {REFUSED.refusal}")
    assert caplog.text.count("units stay where they are") == 1
    assert rig.source.notice == ""


def test_what_was_set_in_between_is_what_is_asked_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "ask", Server(REFUSED, ALLOWED).ask)
    rig = Rig(tmp_path)

    async def scenario() -> None:
        await rig.source.use(settings_of(nvidia_memory=60))
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                await tasks.start(rig.source.run)
                await rig.state.wait_until(lambda: rig.is_in_status)
                tasks.cancel_scope.cancel()

    anyio.run(scenario)
    assert resource_named(rig.state.node, MEMORY).count == 120


def test_the_status_needs_a_connection(tmp_path: Path) -> None:
    rig = Rig(tmp_path, is_connected=False)
    with pytest.raises(UsageError, match="--units status: this agent isn't connected"):
        anyio.run(rig.source.use, settings_of(units="status"))
    assert not rig.is_in_status


def test_with_a_connection_units_go_there_and_back(tmp_path: Path) -> None:
    rig = Rig(tmp_path, units="plugin")
    for units, is_in_status in (("status", True), ("plugin", False)):
        assert anyio.run(rig.source.use, settings_of(units=units))
        assert rig.is_in_status == is_in_status
