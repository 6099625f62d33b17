"""Labels of the node, against an API server: when they come, what is left alone, what stays."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from hami_mock.agent import Agent
from hami_mock.cluster import kubernetes as kubernetes_module
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.faults.actions import Action, perform
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import Backoff
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import LOST, UNHEALTHY
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import first_node
from hami_mock.vendors.labelling import LabelSet
from hami_mock.views.labels.labeller import Labeller, Registrations, Wanted
from hami_mock.views.labels.ownership import ANNOTATION
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.unit.builders import NODE, laid_out

COUNT, PRODUCT, STAMP = "nvidia.com/gpu.count", "nvidia.com/gpu.product", "nvidia.com/gfd.timestamp"
SETS = (LabelSet.GFD, LabelSet.HAMI)
HOSTNAME = {"kubernetes.io/hostname": NODE}


class Kubelet:
    """Whether the kubelet has every resource."""

    def __init__(self, *, has_all: bool = True) -> None:
        self.has_all = has_all
        self.registrations = Registrations(lambda: self.has_all, Broadcast())

    def take_all(self) -> None:
        self.has_all = True
        self.registrations.changes.send()


DRIVER = "580.95.05"


def state_of(cards: int = 2) -> NodeState:
    return NodeState(laid_out(nvidia_cards=cards, mlu_cards=0, iluvatar_cards=0, ascend_cards=0))


@asynccontextmanager
async def labelling(
    state: NodeState,
    kubelet: Kubelet | None = None,
    sets: tuple[LabelSet, ...] = SETS,
    *,
    remove: bool = False,
) -> AsyncIterator[Labeller]:
    registrations = (kubelet or Kubelet()).registrations
    async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
        labeller = Labeller(state, kubernetes, Wanted(sets, DRIVER, remove), registrations)
        await tasks.start(labeller.run)
        yield labeller
        tasks.cancel_scope.cancel()


def run(folder: Path, scenario: Callable[[FakeApiServer], Awaitable[None]]) -> None:
    async def with_server() -> None:
        with anyio.fail_after(60):
            async with api_server(folder) as server:
                server.put("nodes", {"metadata": {"name": NODE, "labels": dict(HOSTNAME)}})
                await scenario(server)

    anyio.run(with_server)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_module, "Backoff", lambda: Backoff(first=0.01, longest=0.1))


def note(server: FakeApiServer) -> str:
    return server.annotations("nodes", NODE).get(ANNOTATION, "")


async def writes_so_far(server: FakeApiServer) -> int:
    """How many writes there were, once the labeller has seen all that happened before.

    What is changed here reaches it by the same way, and after the rest.
    """
    server.label(NODE, {"gpu": "off"})
    await server.wait_until(lambda: server.labels(NODE)["gpu"] == "on")
    return len(server.writes) - 1


def test_labels_come_when_the_kubelet_has_every_resource_and_in_one_write(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        kubelet = Kubelet(has_all=False)
        async with labelling(state_of(), kubelet) as labeller:
            await server.wait_until(lambda: "watch nodes" in server.requests)
            server.label(NODE, {"x": "y"})
            await anyio.wait_all_tasks_blocked()
            assert server.labels(NODE) == {**HOSTNAME, "x": "y"}
            assert labeller.not_ready == "", "the resources themselves say that they are missing"
            kubelet.take_all()
            await server.wait_until(lambda: COUNT in server.labels(NODE))
            assert server.labels(NODE).items() >= {**HOSTNAME, COUNT: "2", "gpu": "on"}.items()
            assert await writes_so_far(server) == 1
            assert note(server).split(",") == labeller.status()["labels"]
            assert labeller.status()["error"] is None

    run(tmp_path, scenario)


def test_what_somebody_changes_or_removes_is_corrected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with labelling(state_of()):
            await server.wait_until(lambda: COUNT in server.labels(NODE))
            right = dict(server.labels(NODE))
            server.label(NODE, {COUNT: "80", PRODUCT: None, STAMP: None})
            await server.wait_until(lambda: server.labels(NODE) == right)
            assert server.writes[-1].labels.keys() == {COUNT, PRODUCT, STAMP}
            noted = note(server)
            server.annotate("nodes", NODE, {ANNOTATION: None})
            await server.wait_until(lambda: note(server) == noted)
            assert server.writes[-1].labels == {}

    run(tmp_path, scenario)
    assert (
        f"somebody else changed or removed the agent's labels: {STAMP}, {COUNT}, {PRODUCT}"
        in caplog.text
    )


def test_a_quarrel_is_no_hot_loop(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with labelling(state_of()):
            await server.wait_until(lambda: COUNT in server.labels(NODE))
            began, before = anyio.current_time(), len(server.writes)
            for number in range(1, 4):
                server.label(NODE, {"gpu": "off"})
                await server.wait_until(lambda: len(server.writes) == before + number)  # noqa: B023
            # Two pauses: of 0.25 s or more, and then of twice that.
            assert anyio.current_time() - began > 0.7

    run(tmp_path, scenario)


def test_somebody_elses_label_stays_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.label(NODE, {PRODUCT: "NVIDIA-H100"})
        async with labelling(state_of(), remove=True) as labeller:
            await server.wait_until(lambda: COUNT in server.labels(NODE))
            await writes_so_far(server)
            assert server.labels(NODE)[PRODUCT] == "NVIDIA-H100"
            assert labeller.status()["foreign"] == [PRODUCT]
            assert PRODUCT not in note(server)
            assert labeller.not_ready == ""
        assert server.labels(NODE) == {**HOSTNAME, PRODUCT: "NVIDIA-H100"}

    with caplog.at_level(logging.WARNING):
        run(tmp_path, scenario)
    told = [line for line in caplog.messages if "somebody else set" in line]
    assert told == [f"leaving the labels that somebody else set on the node: {PRODUCT}=NVIDIA-H100"]


def test_what_somebody_else_writes_at_the_same_moment_is_theirs(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async def before_us(_: web.Request) -> None:
            server.label(NODE, {PRODUCT: "NVIDIA-H100"})

        server.before_patch = before_us
        async with labelling(state_of()) as labeller:
            await server.wait_until(lambda: COUNT in server.labels(NODE))
            await writes_so_far(server)
            assert server.labels(NODE)[PRODUCT] == "NVIDIA-H100"
            assert PRODUCT not in labeller.status()["labels"]
            assert labeller.not_ready == ""

    run(tmp_path, scenario)


def test_labels_stay_at_the_end_and_the_next_agent_knows_them(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with labelling(state_of()):
            await server.wait_until(lambda: COUNT in server.labels(NODE))
        left = dict(server.labels(NODE))
        assert COUNT in left
        watches = server.requests.count("watch nodes")
        async with labelling(state_of()):
            await server.wait_until(lambda: server.requests.count("watch nodes") > watches)
            assert await writes_so_far(server) == 1, "the stamp alone is no reason to write"
        assert server.labels(NODE) == left
        # Other sets: what is ours and isn't wanted goes; cards that changed are told.
        async with labelling(state_of(cards=4), sets=(LabelSet.GFD,), remove=True):
            await server.wait_until(lambda: server.labels(NODE).get(COUNT) == "4")
            assert "gpu" not in server.labels(NODE)
        assert server.labels(NODE) == HOSTNAME
        assert note(server) == ""

    run(tmp_path, scenario)


def test_a_lost_card_is_not_counted_an_unhealthy_one_is(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        state = state_of()
        first, second = (card.uuid for card in state.node.cards)
        async with labelling(state):
            await server.wait_until(lambda: COUNT in server.labels(NODE))
            state.begin_faults(Fault(UNHEALTHY, frozenset({first})))
            assert await writes_so_far(server) == 1
            lost = Fault(LOST, frozenset({second}))
            state.begin_faults(lost)
            await server.wait_until(lambda: server.labels(NODE)[COUNT] == "1")
            state.end_faults(lost)
            await server.wait_until(lambda: server.labels(NODE)[COUNT] == "2")
            state.begin_faults(Fault(LOST, frozenset({first, second})))
            await server.wait_until(lambda: server.labels(NODE) == HOSTNAME)
            assert note(server) == ""

    run(tmp_path, scenario)


def test_without_permission_it_is_not_ready_and_says_why(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.refuse = lambda line: 403 if line.startswith("patch") else None
        async with labelling(state_of(), remove=True) as labeller:
            await server.wait_until(lambda: f"patch nodes {NODE}" in server.requests)
            while "the role needs the verb patch for nodes" not in labeller.not_ready:
                await anyio.lowlevel.checkpoint()
            server.refuse = lambda _: None
            await server.wait_until(lambda: COUNT in server.labels(NODE))
        assert server.labels(NODE) == HOSTNAME

    run(tmp_path, scenario)


def test_a_write_whose_answer_was_lost_is_ours_all_the_same(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.lose_answers = 1
        async with labelling(state_of(), remove=True) as labeller:
            await server.wait_until(lambda: COUNT in server.labels(NODE))
            assert await writes_so_far(server) == 1
            assert COUNT in labeller.status()["labels"]
        assert server.labels(NODE) == HOSTNAME

    run(tmp_path, scenario)


def test_an_end_amid_a_write_leaves_nothing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        arrived, go_on = anyio.Event(), anyio.Event()

        async def slowly(_: web.Request) -> None:
            arrived.set()
            await go_on.wait()

        server.before_patch = slowly
        async with labelling(state_of(), remove=True):
            await arrived.wait()
            go_on.set()
            await server.wait_until(lambda: COUNT in server.labels(NODE))
        assert server.labels(NODE) == HOSTNAME

    run(tmp_path, scenario)


@pytest.mark.parametrize("text", ["kubernetes.io/hostname", ",,,", "\ud800", "x" * 100_000])
def test_a_forged_note_removes_nothing_of_others(tmp_path: Path, text: str) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.annotate("nodes", NODE, {ANNOTATION: text})
        async with labelling(state_of(), remove=True):
            await server.wait_until(lambda: COUNT in server.labels(NODE))
            assert server.labels(NODE).items() >= HOSTNAME.items()
        assert server.labels(NODE) == HOSTNAME

    run(tmp_path, scenario)


def test_an_agent_labels_its_node_only_after_the_last_registration(
    tmp_path: Path, kubelet: GrpcioKubelet
) -> None:
    flags = {"node-name": NODE, "socket-dir": str(kubelet.folder), "http-listen": ""}
    settings = load(
        {**flags, "control-socket": "", "vendors": "nvidia", "labels": "gfd", "units": "plugin"}
    )

    async def scenario(server: FakeApiServer) -> None:
        node, _ = await first_node(settings)
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            agent = Agent(settings, node, {}, kubernetes)
            refused = perform(Action("refuse", ("nvidia.com/gpumem",)), agent.state)
            await tasks.start(agent.run)
            await server.wait_until(lambda: "watch nodes" in server.requests)
            others = {r.name for r in node.resources} - {"nvidia.com/gpumem"}
            await anyio.to_thread.run_sync(kubelet.wait_for_lists, others)
            await anyio.wait_all_tasks_blocked()
            assert server.labels(NODE) == HOSTNAME
            agent.state.end_faults(*refused)
            await server.wait_until(lambda: COUNT in server.labels(NODE))
            assert (await agent.status())["views"]["labels"]["foreign"] == []
            # A kubelet that goes takes no label along.
            await anyio.to_thread.run_sync(kubelet.kill)
            server.label(NODE, {COUNT: "80"})
            await server.wait_until(lambda: server.labels(NODE)[COUNT] == "2")
            tasks.cancel_scope.cancel()

    run(tmp_path, scenario)
