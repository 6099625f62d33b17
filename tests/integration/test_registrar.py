"""The registrar, against an API server: what the node shows, and how often it is written."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from hami_mock.agent import Agent
from hami_mock.cluster import kubernetes as kubernetes_module
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.hami import handshake
from hami_mock.hami.kinds import COLON
from hami_mock.hami.register import decode
from hami_mock.kit.concurrency import Backoff
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import DEGRADED, LOST, UNHEALTHY
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.hami.registrar import Registrar
from hami_mock.views.http.view import readiness
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.integration.waiting import until
from tests.makers import BY_WORD
from tests.unit.builders import NODE
from tests.unit.views.hami.rig import MR_V100, cards_of, count_resource, state_with

REGISTER = BY_WORD["NVIDIA"].node.register
SCORE = "hami.io/node-nvidia-score"
ILUVATAR_REGISTER = MR_V100.node.register
ILUVATAR_HANDSHAKE = MR_V100.node.handshake
REPORT = re.compile(r"Reported_\d{4}\.\d\d\.\d\d \d\d:\d\d:\d\d")


@asynccontextmanager
async def running(registrar: Registrar) -> AsyncIterator[Registrar]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(registrar.run)
        yield registrar
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def registering(
    server: FakeApiServer, state: NodeState, *, keep: bool = False
) -> AsyncIterator[Kubernetes]:
    async with Kubernetes() as kubernetes, running(Registrar(state, kubernetes, keep=keep)):
        yield kubernetes


def run(folder: Path, scenario: Callable[[FakeApiServer], Awaitable[None]]) -> None:
    async def with_server() -> None:
        with anyio.fail_after(60):
            async with api_server(folder) as server:
                server.put("nodes", {"metadata": {"name": NODE, "annotations": {"x": "y"}}})
                await scenario(server)

    anyio.run(with_server)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_module, "Backoff", lambda: Backoff(first=0.01, longest=0.1))


def shown(server: FakeApiServer) -> dict[str, str]:
    return server.annotations("nodes", NODE)


def health(server: FakeApiServer, register: str = REGISTER) -> list[bool]:
    return [device.healthy for device in decode(shown(server)[register])]


async def writes_so_far(server: FakeApiServer) -> int:
    """How many writes there were, once the registrar has seen all that happened before.

    What is changed here reaches it by the same way, and after the rest.
    """
    server.annotate("nodes", NODE, {REGISTER: "[]"})
    await server.wait_until(lambda: shown(server)[REGISTER] != "[]")
    assert server.writes[-1].annotations.keys() >= {REGISTER}
    return len(server.writes) - 1


def test_the_cards_are_written_once_and_removed_at_the_end(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        state = state_with(count_resource(has_scores=True), count_resource(MR_V100))
        async with registering(server, state) as kubernetes:
            await server.wait_until(lambda: REGISTER in shown(server))
            assert health(server) == health(server, ILUVATAR_REGISTER) == [True, True]
            assert decode(shown(server)[ILUVATAR_REGISTER], COLON)
            assert len(json.loads(shown(server)[SCORE])) == 2
            assert REPORT.fullmatch(shown(server)[ILUVATAR_HANDSHAKE])
            # The scheduler's requests are no reason to write: the next report has its time.
            request = {ILUVATAR_HANDSHAKE: "Requesting_2026-11-15 23:25:11"}
            server.annotate("nodes", NODE, {**request, "hami.io/node-handshake": "Requesting_x"})
            assert await writes_so_far(server) == 1
            assert kubernetes.writes == len(server.writes) == 2
        assert shown(server) == {"x": "y", "hami.io/node-handshake": "Requesting_x"}
        assert len(server.writes) == 3

    run(tmp_path, scenario)


def test_what_is_there_already_is_not_written_and_can_be_kept(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with registering(server, state_with(count_resource()), keep=True):
            await server.wait_until(lambda: REGISTER in shown(server))
        before = dict(shown(server))
        async with registering(server, state_with(count_resource()), keep=True):
            assert await writes_so_far(server) == 1
        assert shown(server) == before
        # An agent that found everything as it should be still takes it along in the end.
        watches = server.requests.count("watch nodes")
        async with registering(server, state_with(count_resource())):
            await server.wait_until(lambda: server.requests.count("watch nodes") > watches)
        assert shown(server) == {"x": "y"}

    run(tmp_path, scenario)


def test_health_shows_together_with_a_report(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        iluvatar = count_resource(MR_V100)
        state = state_with(count_resource(), iluvatar)
        async with registering(server, state):
            await server.wait_until(lambda: REGISTER in shown(server))
            server.annotate("nodes", NODE, {ILUVATAR_HANDSHAKE: "Requesting_2026-11-15 23:25:11"})
            fault = Fault(UNHEALTHY, frozenset({iluvatar.cards[1].uuid}))
            state.begin_faults(fault)
            await server.wait_until(lambda: health(server, ILUVATAR_REGISTER) == [True, False])
            assert set(server.writes[-1].annotations) == {ILUVATAR_REGISTER, ILUVATAR_HANDSHAKE}
            assert REPORT.fullmatch(shown(server)[ILUVATAR_HANDSHAKE])
            state.end_faults(fault)
            await server.wait_until(lambda: health(server, ILUVATAR_REGISTER) == [True, True])
            # A degraded card is as good as any to HAMi.
            writes = len(server.writes)
            state.begin_faults(Fault(DEGRADED, frozenset({iluvatar.cards[0].uuid})))
            assert await writes_so_far(server) == writes

    run(tmp_path, scenario)


def test_a_vendor_without_cards_vanishes_and_its_handshake_is_left_alone(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        iluvatar = count_resource(MR_V100)
        state = state_with(count_resource(), iluvatar)
        async with registering(server, state):
            await server.wait_until(lambda: REGISTER in shown(server))
            lost = Fault(LOST, frozenset(card.uuid for card in iluvatar.cards))
            state.begin_faults(lost)
            await server.wait_until(lambda: ILUVATAR_REGISTER not in shown(server))
            assert ILUVATAR_HANDSHAKE not in shown(server)
            writes = len(server.writes)
            server.annotate("nodes", NODE, {ILUVATAR_HANDSHAKE: "Requesting_2026-11-15 23:25:11"})
            assert await writes_so_far(server) == writes
            state.end_faults(lost)
            await server.wait_until(lambda: ILUVATAR_REGISTER in shown(server))
            assert REPORT.fullmatch(shown(server)[ILUVATAR_HANDSHAKE])

    run(tmp_path, scenario)


def test_reports_come_again_and_again_for_all_vendors_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "REPORT_INTERVAL", timedelta(seconds=0.1))

    async def scenario(server: FakeApiServer) -> None:
        other = count_resource(BY_WORD["BI-V100"])
        state = state_with(count_resource(), count_resource(MR_V100), other)
        async with registering(server, state):
            await server.wait_until(lambda: len(server.writes) >= 5)
        reports = [write.annotations for write in server.writes[1:4]]
        both = {ILUVATAR_HANDSHAKE, "hami.io/node-handshake-BI-V100"}
        assert [set(report) for report in reports] == [both] * 3

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        pytest.param(ILUVATAR_HANDSHAKE, "Deleted_2026.11.15 23:25:11", id="deleted"),
        pytest.param(ILUVATAR_HANDSHAKE, None, id="vanished"),
        pytest.param("hami.io/node-handshake", "Deleted_2026.11.15 23:25:11", id="of NVIDIA"),
    ],
)
def test_a_scheduler_that_gave_up_the_node_is_answered_at_once(
    tmp_path: Path, annotation: str, value: str | None
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with registering(server, state_with(count_resource(), count_resource(MR_V100))):
            await server.wait_until(lambda: ILUVATAR_HANDSHAKE in shown(server))
            server.annotate("nodes", NODE, {annotation: value})
            await server.wait_until(lambda: "Reported" in shown(server).get(annotation, ""))

    run(tmp_path, scenario)


def test_what_somebody_else_changes_is_corrected_but_not_in_a_hot_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with registering(server, state_with(count_resource())):
            await server.wait_until(lambda: REGISTER in shown(server))
            started = anyio.current_time()
            for value in ("[]", None, "[]"):
                server.annotate("nodes", NODE, {REGISTER: value})
                await server.wait_until(lambda: shown(server).get(REGISTER, "[]") != "[]")
            # The first at once, the others after at least a half of 0.5 and of 1 s.
            assert anyio.current_time() - started > 0.7
            assert len(server.writes) == 4

    run(tmp_path, scenario)
    assert f"somebody else changed or removed HAMi's annotations: {REGISTER}" in caplog.text


def test_an_outage_delays_the_change_and_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        resource = count_resource()
        state = state_with(resource)
        async with (
            Kubernetes() as kubernetes,
            running(Registrar(state, kubernetes)) as registrar,
        ):
            await server.wait_until(lambda: REGISTER in shown(server))
            server.refuse = lambda _: 503
            state.begin_faults(Fault(UNHEALTHY, frozenset({resource.cards[0].uuid})))
            await server.wait_until(lambda: server.requests.count(f"patch nodes {NODE}") >= 3)
            assert "503" in registrar.status()["error"]
            server.refuse = lambda _: None
            await server.wait_until(lambda: health(server) == [False, True])
            await until(lambda: registrar.status()["error"] is None)
            assert REGISTER in registrar.status()["annotations"]

    run(tmp_path, scenario)
    assert "HAMi's annotations are out of date" in caplog.text


def test_a_watch_that_lags_behind_our_own_writes_leads_to_none(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        resource = count_resource()
        state = state_with(resource)
        async with registering(server, state):
            await server.wait_until(lambda: server.requests.count("watch nodes") == 1)
            await server.wait_until(lambda: REGISTER in shown(server))
            server.hold_events = True
            server.annotate("nodes", NODE, {"x": "older than the next write"})
            state.begin_faults(Fault(UNHEALTHY, frozenset({resource.cards[0].uuid})))
            await server.wait_until(lambda: health(server) == [False, True])
            server.release_events()
            assert await writes_so_far(server) == 2

    run(tmp_path, scenario)


def test_annotations_that_may_not_be_removed_stay_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with registering(server, state_with(count_resource())):
            await server.wait_until(lambda: REGISTER in shown(server))
            server.refuse = lambda line: 403 if "patch" in line else None
        async with registering(server, state_with()):
            pass  # nothing is ours, nothing is asked for

    run(tmp_path, scenario)
    assert "annotations stay on the node: can't patch nodes" in caplog.text


def test_an_end_without_an_api_server_is_bounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async def hang(_: object) -> None:
            await anyio.sleep_forever()

        async with registering(server, state_with(count_resource())):
            await server.wait_until(lambda: REGISTER in shown(server))
            server.before_patch = hang
            started = anyio.current_time()
        assert anyio.current_time() - started < 3

    run(tmp_path, scenario)
    assert "stay on the node: no answer" in caplog.text


def test_another_configuration_is_another_registration(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        first = count_resource(has_scores=True)
        state = state_with(first)
        async with registering(server, state):
            await server.wait_until(lambda: REGISTER in shown(server))
            state.change(state_with(count_resource()).node)
            await server.wait_until(lambda: SCORE not in shown(server))
            more = count_resource(cards=cards_of(first.vendor, 4), split=5, has_scores=True)
            state.change(state_with(more).node)
            await server.wait_until(lambda: len(decode(shown(server)[REGISTER])) == 4)
            assert {device.count for device in decode(shown(server)[REGISTER])} == {5}
            state.change(state_with(count_resource(MR_V100)).node)
            await server.wait_until(lambda: REGISTER not in shown(server))
            assert SCORE not in shown(server)
            assert ILUVATAR_REGISTER in shown(server)

    run(tmp_path, scenario)


@pytest.mark.parametrize("status", [403, 503])
def test_a_registrar_that_can_not_write_is_not_ready_until_it_can(
    tmp_path: Path, status: int
) -> None:
    settings = load({"node-name": NODE})
    agent = Agent(settings, configured_node(settings, None))

    def readyz() -> int:
        return readiness([], agent.configuration, agent.failures()).status

    async def scenario(server: FakeApiServer) -> None:
        server.refuse = lambda line: status if line.startswith("patch") else None
        state = state_with(count_resource())
        async with Kubernetes() as kubernetes, running(Registrar(state, kubernetes)) as registrar:
            agent.views.append(registrar)
            await server.wait_until(lambda: server.requests.count(f"patch nodes {NODE}") >= 2)
            why = registrar.not_ready
            assert re.match(
                r"HAMi's annotations have been out of date for \d+ s: can't patch nodes", why
            )
            assert f"({status})" in why
            assert readyz() == 503
            server.refuse = lambda _: None
            await server.wait_until(lambda: REGISTER in shown(server))
            await until(lambda: registrar.not_ready == "")
            assert readyz() == 200

    run(tmp_path, scenario)


def test_a_failure_that_is_mended_by_somebody_else_is_over(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        resource = count_resource()
        state = state_with(resource)
        async with Kubernetes() as kubernetes, running(Registrar(state, kubernetes)) as registrar:
            await server.wait_until(lambda: REGISTER in shown(server))
            server.refuse = lambda line: 403 if line.startswith("patch") else None
            fault = Fault(UNHEALTHY, frozenset({resource.cards[0].uuid}))
            state.begin_faults(fault)
            await server.wait_until(lambda: server.requests.count(f"patch nodes {NODE}") >= 2)
            await until(lambda: "403" in registrar.not_ready)
            state.end_faults(fault)  # now the node shows again what it should
            await until(lambda: registrar.not_ready == "")

    run(tmp_path, scenario)


def test_a_registrar_that_can_not_read_the_node_is_not_ready(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.refuse = lambda line: 403 if line.startswith("get nodes") else None
        state = state_with(count_resource())
        async with Kubernetes() as kubernetes, running(Registrar(state, kubernetes)) as registrar:
            await server.wait_until(lambda: len(server.requests) >= 2)
            assert "the node hasn't been read from the API server yet" in registrar.not_ready
            server.refuse = lambda _: None
            await server.wait_until(lambda: REGISTER in shown(server))
            await until(lambda: registrar.not_ready == "")

    run(tmp_path, scenario)


def test_cards_that_hami_can_not_carry_end_nothing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        state = state_with(count_resource(memory_scaling=1e6))
        async with Kubernetes() as kubernetes, running(Registrar(state, kubernetes)) as registrar:
            await server.wait_until(lambda: "watch nodes" in server.requests)
            problem = "memory: '32768000000' must be a whole number"
            await until(lambda: problem in registrar.not_ready)
            state.change(state_with(count_resource()).node)
            await server.wait_until(lambda: REGISTER in shown(server))
            await until(lambda: registrar.not_ready == "")

    run(tmp_path, scenario)
