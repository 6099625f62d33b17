"""Units in the Node's status, against an API server: when they come, and what puts them right."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from hami_mock.cluster import kubernetes as kubernetes_module
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.faults.actions import Action, perform
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import Backoff
from hami_mock.kubelet.holder import Holder
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from hami_mock.views.node_status import NodeStatus, PluginsSeen
from hami_mock.views.status_note import ANNOTATION
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.unit.builders import NODE, laid_out

GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
PERCENTAGE = "nvidia.com/gpumem-percentage"
ALL = {MEMORY: 2000, CORES: 200, PERCENTAGE: 200}
OWN = {"cpu": "2", "memory": "4Gi"}
"""What the kubelet itself says of the node."""

Shown = tuple[dict[str, int], dict[str, int]]


def node_of(units: str = "status", **flags: object) -> NodeState:
    small = {"mlu_cards": 0, "iluvatar_cards": 0, "ascend_cards": 0, "nvidia_memory": 1000}
    return NodeState(laid_out(None, units=units, **(small | flags)))


def fresh() -> dict[str, object]:
    return {"metadata": {"name": NODE}, "status": {"capacity": dict(OWN), "allocatable": dict(OWN)}}


@asynccontextmanager
async def keeping(
    state: NodeState,
    registrations: Broadcast | None = None,
    has_plugin: Callable[[str], bool] = lambda _: False,
    forget: Callable[[], None] = lambda: None,
) -> AsyncIterator[NodeStatus]:
    async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
        plugins = PluginsSeen(registrations or Broadcast(), has_plugin)
        view = NodeStatus(state, kubernetes, plugins, forget)
        await tasks.start(view.run)
        yield view
        tasks.cancel_scope.cancel()


def run(folder: Path, scenario: Callable[[FakeApiServer], Awaitable[None]]) -> None:
    async def with_server() -> None:
        with anyio.fail_after(60):
            async with api_server(folder) as server:
                server.put("nodes", fresh())
                await scenario(server)

    anyio.run(with_server)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_module, "Backoff", lambda: Backoff(first=0.01, longest=0.1))


def shown(server: FakeApiServer) -> Shown:
    """Capacity and allocatable, but for the kubelet's own."""
    status = server.objects["nodes", "", NODE]["status"]
    capacity, allocatable = (
        {name: int(count) for name, count in status[part].items() if name not in OWN}
        for part in ("capacity", "allocatable")
    )
    return capacity, allocatable


def noted(server: FakeApiServer) -> dict[str, int | None]:
    found: dict[str, int | None] = json.loads(server.annotations("nodes", NODE)[ANNOTATION])
    return found


async def shows(server: FakeApiServer, amounts: dict[str, int]) -> None:
    """Wait until the node shows these amounts, in its capacity and as allocatable."""
    await server.wait_until(lambda: shown(server) == (amounts, amounts))


async def is_offered(view: NodeStatus, *names: str) -> None:
    """Wait until the view itself has seen what it wrote."""
    while set(names) - {n for n, each in view._offerings.items() if each.is_offered}:
        await anyio.lowlevel.checkpoint()


async def writes_so_far(server: FakeApiServer) -> int:
    """How many writes there were, once the view has seen all that happened before.

    What is changed here reaches it by the same way, and after the rest.
    """
    server.set_status(NODE, capacity={CORES: "1"})
    await server.wait_until(lambda: shown(server)[0].get(CORES) == ALL[CORES])
    return len(server.writes) - 1


def test_the_units_are_written_at_once_and_in_one_write(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(node_of()) as view:
            await shows(server, ALL)
            assert noted(server) == ALL
            await is_offered(view, *ALL)
            assert view.not_ready == ""
            assert view.status() == {"resources": ALL, "error": None}
            # A node changes every few seconds: that is no reason to write.
            server.label(NODE, {"x": "y"})
            assert await writes_so_far(server) == 1
        assert GPU not in shown(server)[0], "slots have a plugin"

    run(tmp_path, scenario)


def test_at_the_end_they_go_and_the_note_with_them(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(node_of()):
            await shows(server, ALL)
        assert server.objects["nodes", "", NODE]["status"] == fresh()["status"]
        assert server.annotations("nodes", NODE) == {}

    run(tmp_path, scenario)


@pytest.mark.parametrize("is_away", [False, True])
def test_they_are_forgotten_only_if_they_have_gone(tmp_path: Path, is_away: bool) -> None:
    async def scenario(server: FakeApiServer) -> None:
        forgotten: list[bool] = []
        async with keeping(node_of(), forget=lambda: forgotten.append(True)):
            await shows(server, ALL)
            server.refuse = lambda _: 503 if is_away else None
        assert forgotten == [True] * (not is_away)
        assert shown(server) == ((ALL, ALL) if is_away else ({}, {}))

    run(tmp_path, scenario)


def test_what_could_never_be_looked_at_is_not_forgotten(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.refuse = lambda _: 503
        forgotten: list[bool] = []
        async with keeping(node_of(), forget=lambda: forgotten.append(True)):
            await server.wait_until(lambda: bool(server.requests))
        assert forgotten == []

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "edit",
    [
        {"capacity": {MEMORY: "5"}},
        {"allocatable": {MEMORY: "5"}},
        {"capacity": {MEMORY: None}, "allocatable": {MEMORY: None}},
        # What a kubelet does that finds no checkpoint of its device manager.
        {part: dict.fromkeys(ALL, "0") for part in ("capacity", "allocatable")},
    ],
    ids=["the capacity", "allocatable", "removed", "zeroed by the kubelet"],
)
def test_what_somebody_changes_is_put_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, edit: dict[str, dict[str, str | None]]
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(node_of()) as view:
            await shows(server, ALL)
            await is_offered(view, *ALL)
            server.set_status(NODE, **edit)
            await shows(server, ALL)
            assert set(server.writes[-1].status["capacity"]) == set(edit.get("capacity", ()))
            while not told():
                await anyio.lowlevel.checkpoint()

    def told() -> list[str]:
        words = "somebody else changed or removed units in the Node's status: "
        return [line for line in caplog.messages if line.startswith(words) and MEMORY in line]

    run(tmp_path, scenario)
    assert len(told()) == 1


def test_a_note_that_was_removed_comes_back(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(node_of()):
            await shows(server, ALL)
            server.annotate("nodes", NODE, {ANNOTATION: None})
            await server.wait_until(lambda: ANNOTATION in server.annotations("nodes", NODE))
            assert noted(server) == ALL
            assert shown(server) == (ALL, ALL)

    run(tmp_path, scenario)


def test_a_quarrel_is_no_hot_loop(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(node_of()) as view:
            await is_offered(view, *ALL)
            began, before = anyio.current_time(), len(server.writes)
            for number in range(1, 4):
                server.set_status(NODE, capacity={CORES: "1"})
                await server.wait_until(lambda: len(server.writes) == before + number)  # noqa: B023
            # Two pauses: of 0.25 s or more, and then of twice that.
            assert anyio.current_time() - began > 0.7

    run(tmp_path, scenario)


def test_a_node_that_is_made_anew_gets_them_again(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(node_of()) as view:
            await is_offered(view, *ALL)
            server.remove("nodes", NODE)
            server.put("nodes", fresh())
            await shows(server, ALL)
            assert noted(server) == ALL

    run(tmp_path, scenario)


def test_what_was_a_plugins_waits_for_the_kubelet(tmp_path: Path) -> None:
    """It stands in the capacity alone until the kubelet copies it, however often we look."""

    async def scenario(server: FakeApiServer) -> None:
        server.set_status(NODE, capacity={MEMORY: "0"}, allocatable={MEMORY: "0"})
        others = {name: count for name, count in ALL.items() if name != MEMORY}
        async with keeping(node_of()) as view:
            await server.wait_until(lambda: shown(server) == (ALL, {**others, MEMORY: 0}))
            await is_offered(view, *others)
            assert noted(server) == {**others, MEMORY: None}
            waiting = view.offering(next(r for r in view._resources if r.name == MEMORY))
            assert waiting.phase == "waiting"
            assert "still takes it for a device plugin's" in waiting.reason
            # Nor does it go further by itself, and the kubelet may insist for minutes.
            for count in (1, 2):
                server.set_status(NODE, capacity={MEMORY: "99"})
                await server.wait_until(lambda: shown(server)[0] == ALL)
                assert await writes_so_far(server) == 2 * count
                assert shown(server)[1][MEMORY] == 0
            server.set_status(NODE, allocatable={MEMORY: str(ALL[MEMORY])})
            await server.wait_until(lambda: noted(server) == ALL)
            await is_offered(view, *ALL)
            # From now on it is ours.
            server.set_status(NODE, allocatable={MEMORY: "0"})
            await shows(server, ALL)

    run(tmp_path, scenario)


def test_a_number_that_a_plugin_has_left_is_no_answer_of_the_kubelets(tmp_path: Path) -> None:
    """Of as many as we want: the kubelet sets it to 0 only when it next reports."""

    async def scenario(server: FakeApiServer) -> None:
        count = str(ALL[MEMORY])
        server.set_status(NODE, capacity={MEMORY: count}, allocatable={MEMORY: count})
        async with keeping(node_of()) as view:
            await server.wait_until(lambda: shown(server)[1].get(MEMORY) == 0)
            await is_offered(view, CORES)
            assert noted(server)[MEMORY] is None
            server.set_status(NODE, capacity={MEMORY: "0"})
            await server.wait_until(lambda: shown(server)[0] == ALL)
            assert shown(server)[1][MEMORY] == 0
            server.set_status(NODE, allocatable={MEMORY: count})
            await is_offered(view, *ALL)

    run(tmp_path, scenario)


def test_a_plugin_that_has_not_ended_yet_is_waited_for(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        plugins, ended = {MEMORY}, Broadcast()
        others = {name: count for name, count in ALL.items() if name != MEMORY}
        async with keeping(node_of(), ended, plugins.__contains__) as view:
            await is_offered(view, *others)
            assert shown(server) == (others, others)
            plugins.clear()
            ended.send()
            await shows(server, ALL)

    run(tmp_path, scenario)


def test_down_takes_a_resource_away_and_up_brings_it_back(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        state = node_of()
        async with keeping(state) as view:
            await shows(server, ALL)
            perform(Action("down", (MEMORY,)), state)
            others = {name: count for name, count in ALL.items() if name != MEMORY}
            await shows(server, others)
            assert noted(server) == others
            await is_offered(view, *others)
            assert view._offerings[MEMORY].reason == "down on command"
            perform(Action("up", (MEMORY,)), state)
            await shows(server, ALL)

    run(tmp_path, scenario)


def test_a_card_that_fails_or_is_lost_takes_its_units_along(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        state = node_of()
        half = {name: count // 2 for name, count in ALL.items()}
        async with keeping(state):
            await shows(server, ALL)
            for verb, undo in (("fail", "recover"), ("lose", "return")):
                perform(Action(verb, ("nvidia/0",)), state)
                await shows(server, half)
                perform(Action(undo, ("nvidia/0",)), state)
                await shows(server, ALL)
            assert await writes_so_far(server) == 1 + 4, "one at first, and one for each change"

    run(tmp_path, scenario)


def test_what_pods_have_of_a_failed_card_stays(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        state = node_of()
        first = state.node.cards[0].uuid
        state.holders.name([Holder(("default", "a", "main"), {GPU: (f"{first}-0",)})])
        pod = Pod("default", "a", containers=("main",), requests={"main": {GPU: 1, MEMORY: 300}})
        async with keeping(state):
            await shows(server, ALL)
            state.pods["default", "a"] = pod
            state.pod_changes.send()
            perform(Action("fail", ("nvidia/0",)), state)
            await shows(server, {MEMORY: 1300, CORES: 100, PERCENTAGE: 100})
            state.pods.clear()
            state.holders.name([])
            state.pod_changes.send()
            await shows(server, {MEMORY: 1000, CORES: 100, PERCENTAGE: 100})

    run(tmp_path, scenario)


def test_what_moves_to_a_plugin_is_left_to_the_kubelet(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        state = node_of()
        async with keeping(state):
            await shows(server, ALL)
            state.change(node_of("plugin").node)
            await server.wait_until(lambda: ANNOTATION not in server.annotations("nodes", NODE))
            assert shown(server) == (ALL, ALL)
        assert shown(server) == (ALL, ALL), "nor does the end take it away"

    run(tmp_path, scenario)


def test_a_card_more_or_less_is_a_write(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        state = node_of()
        async with keeping(state):
            await shows(server, ALL)
            state.change(node_of(nvidia_cards=128, nvidia_memory=294912).node)
            await server.wait_until(lambda: shown(server)[1].get(MEMORY) == 128 * 294912)
            state.change(node_of(nvidia_cards=0).node)
            await shows(server, {})
            assert server.annotations("nodes", NODE) == {}

    run(tmp_path, scenario)


@pytest.mark.parametrize("units", ["status", "plugin"])
def test_what_a_dead_agent_has_left_goes(tmp_path: Path, units: str) -> None:
    left = "amd.com/gpumem"

    async def scenario(server: FakeApiServer) -> None:
        server.set_status(NODE, capacity={left: "7"}, allocatable={left: "7"})
        server.annotate("nodes", NODE, {ANNOTATION: json.dumps({left: 7, "b.c/gone": 3})})
        async with keeping(node_of(units)):
            await shows(server, ALL if units == "status" else {})
        assert server.annotations("nodes", NODE) == {}

    run(tmp_path, scenario)


def test_who_finds_nothing_left_and_has_no_units_asks_once(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        state = node_of("plugin")
        async with keeping(state) as view:
            await server.wait_until(lambda: bool(server.requests))
            assert view.not_ready == ""
            state.change(node_of().node)
            await shows(server, ALL)
        assert server.requests[:2] == [f"get nodes {NODE}"] * 2

    run(tmp_path, scenario)


def test_an_agent_that_was_killed_is_taken_over_without_a_gap(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        texts = {name: str(count) for name, count in ALL.items()}
        server.set_status(NODE, capacity=dict(texts), allocatable=dict(texts))
        server.annotate("nodes", NODE, {ANNOTATION: json.dumps(ALL, sort_keys=True)})
        async with keeping(node_of()) as view:
            await is_offered(view, *ALL)
            assert server.writes == []
        assert shown(server) == ({}, {})

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "text",
    ['{"cpu": 2, "memory": 1}', "[", "[]", "7", "null", "[" * 100_000, '{"a/b": {"c": 1}}',
     "x" * 100_000],
    ids=["the node's own", "no JSON", "a list", "a number", "null", "deep", "no amount", "long"],
)  # fmt: skip
def test_a_forged_note_removes_nothing_of_others(tmp_path: Path, text: str) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.annotate("nodes", NODE, {ANNOTATION: text})
        server.set_status(NODE, capacity={"a/b": "1"})
        async with keeping(node_of()):
            await server.wait_until(lambda: shown(server)[1] == ALL)
            assert server.objects["nodes", "", NODE]["status"]["capacity"].items() >= OWN.items()
        status = server.objects["nodes", "", NODE]["status"]
        assert status == {"capacity": {**OWN, "a/b": "1"}, "allocatable": OWN}

    run(tmp_path, scenario)


def test_a_refused_write_is_told_and_tried_again(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.refuse = lambda line: 403 if line.startswith("patch nodes/status") else None
        async with keeping(node_of()) as view:
            await server.wait_until(lambda: f"patch nodes/status {NODE}" in server.requests)
            while "the role needs the verb patch for nodes/status" not in view.not_ready:
                await anyio.lowlevel.checkpoint()
            told = "units in the Node's status have been out of date for "
            assert view.not_ready.startswith(told)
            assert "nodes/status" in view.status()["error"]
            server.refuse = lambda _: None
            await shows(server, ALL)
            await is_offered(view, *ALL)
            assert view.not_ready == ""

    run(tmp_path, scenario)


def test_a_write_whose_answer_was_lost_is_ours_all_the_same(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.lose_answers = 1
        async with keeping(node_of()) as view:
            await is_offered(view, *ALL)
        assert shown(server) == ({}, {})

    run(tmp_path, scenario)


def test_an_end_amid_a_removal_leaves_nothing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        arrived, go_on = anyio.Event(), anyio.Event()

        async def slowly(_: web.Request) -> None:
            arrived.set()
            await go_on.wait()

        state = node_of()
        async with keeping(state):
            await shows(server, ALL)
            server.before_patch = slowly
            state.change(node_of(nvidia_cards=0).node)
            await arrived.wait()
        assert shown(server) == ({}, {})
        go_on.set()

    run(tmp_path, scenario)


def test_an_end_amid_a_write_leaves_nothing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        arrived, go_on = anyio.Event(), anyio.Event()

        async def slowly(_: web.Request) -> None:
            arrived.set()
            await go_on.wait()

        server.before_patch = slowly
        async with keeping(node_of()):
            await arrived.wait()
            go_on.set()
            await shows(server, ALL)
        assert shown(server) == ({}, {})
        assert server.annotations("nodes", NODE) == {}

    run(tmp_path, scenario)
