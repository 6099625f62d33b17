import dataclasses
import json
import re
from pathlib import Path

import anyio
import pytest
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from prometheus_client.parser import text_string_to_metric_families

from hami_mock import __version__
from hami_mock.agent import Agent
from hami_mock.errors import StartError
from hami_mock.faults.actions import Action, perform
from hami_mock.kit.text import cut
from hami_mock.kubelet.dra_gates import DROPPED
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.deviceplugin.counters import BUCKETS, Histogram
from hami_mock.views.deviceplugin.lifecycle import Phase
from hami_mock.views.dra.view import DriverFigures
from hami_mock.views.http import metrics
from hami_mock.views.http.metrics import NodeCollector, render
from hami_mock.views.http.scrapes import CONTENT_TYPE
from hami_mock.views.http.server import Answer, respond, serve_http
from hami_mock.views.http.view import agent_routes, readiness
from tests.unit.builders import NODE
from tests.unit.deploy.program import ROOT

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def make_agent(folder: Path) -> Agent:
    settings = load({"socket-dir": str(folder), "node-name": NODE})
    return Agent(settings, configured_node(settings, None))


def samples(agent: Agent) -> Samples:
    return read(NodeCollector(agent.state, agent.offerings, agent.configuration))


def read(collector: NodeCollector) -> Samples:
    text = render(collector).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(found: Samples, name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = Histogram()
    for value in (0.00005, 0.0001, 0.003, 0.5, 100.0):
        histogram.observe(value)
    assert histogram.number == 5
    assert histogram.total == pytest.approx(100.50315)
    assert dict(zip(BUCKETS, histogram.counts, strict=True)) == {
        0.0001: 2, 0.0005: 2, 0.001: 2, 0.005: 3, 0.01: 3, 0.05: 3, 0.1: 3, 0.5: 4, 1.0: 4, 5.0: 4,
    }  # fmt: skip


def test_two_histograms_share_nothing() -> None:
    first, second = Histogram(), Histogram()
    first.observe(0.1)
    assert second.counts == [0] * len(BUCKETS)


def test_devices_are_counted_by_resource_and_health(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    nvidia = agent.plugins[0].resource.cards[1]
    perform(Action("fail", (nvidia.uuid,)), agent.state)
    found = samples(agent)

    def devices(resource: str) -> tuple[float, float]:
        return (
            of(found, "hami_mock_devices", resource=resource, health="healthy"),
            of(found, "hami_mock_devices", resource=resource, health="unhealthy"),
        )

    assert devices("nvidia.com/gpu") == (10, 10)
    assert devices("nvidia.com/gpumem") == (32768, 32768)
    assert devices("cambricon.com/vmlu") == (20, 0)
    assert devices("huawei.com/Ascend910-memory") == (131072, 0)


def test_every_counter_is_a_metric_of_its_resource(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    counters = agent.plugins[0].counters
    counters.registrations = 2
    counters.registration_errors = 3
    counters.lists = 5
    counters.list_bytes = 7000
    counters.allocations = 11
    counters.allocation_errors = 13
    counters.allocated_devices = 17
    found = samples(agent)
    names = ("registrations", "registration_errors", "lists", "list_bytes", "allocations",
             "allocation_errors", "allocated_devices")  # fmt: skip
    values = [of(found, f"hami_mock_{n}_total", resource="nvidia.com/gpu") for n in names]
    assert values == [2, 3, 5, 7000, 11, 13, 17]
    assert {of(found, f"hami_mock_{n}_total", resource="nvidia.com/gpucores") for n in names} == {0}


def test_the_latency_of_allocations_is_a_histogram(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    agent.plugins[0].counters.allocation_seconds.observe(0.003)
    agent.plugins[0].counters.allocation_seconds.observe(60)
    found = samples(agent)
    name, resource = "hami_mock_allocation_seconds", "nvidia.com/gpu"
    buckets = [
        of(found, f"{name}_bucket", resource=resource, le=le) for le in ("0.001", "0.005", "+Inf")
    ]
    assert buckets == [0, 1, 2]
    assert of(found, f"{name}_count", resource=resource) == 2
    assert of(found, f"{name}_sum", resource=resource) == pytest.approx(60.003)


def test_dra_drivers_are_metrics_and_without_dra_there_are_none(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    assert not any(name.startswith("hami_mock_dra") for name, _ in samples(agent))
    seconds = Histogram()
    seconds.observe(0.003)
    figures = DriverFigures("d.io", True, 2, 1, 3, 4, 5, ["DRADeviceTaints"], seconds)
    collector = NodeCollector(
        agent.state, agent.offerings, agent.configuration, drivers=lambda: [figures]
    )
    found = read(collector)
    names = ("registered", "devices", "slices", "slice_writes_total", "claims",
             "claim_errors_total", "prepare_seconds_count", "prepare_seconds_sum")  # fmt: skip
    values = [of(found, f"hami_mock_dra_{name}", driver="d.io") for name in names]
    assert values == [1, 2, 1, 3, 4, 5, 1, 0.003]
    gates = {
        gate: of(found, "hami_mock_dra_gate_off", driver="d.io", gate=gate) for gate in DROPPED
    }
    assert gates == {
        "DRAConsumableCapacity": 0, "DRAPartitionableDevices": 0, "DRADeviceTaints": 1,
    }  # fmt: skip


def test_the_docs_list_every_metric_with_its_labels_and_its_help() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(hami_mock_\w+)` \| ([^|]*)\| ([^|]+) \|$", text, re.MULTILINE)
    told = {name: (labels.strip(), meaning) for name, labels, meaning in rows}
    for short, (kind, meaning, *labels) in metrics._METRICS.items():
        name = f"hami_mock_{short}" + ("_total" if kind == "counter" else "")
        listed, written = told.pop(name)
        assert listed == ", ".join(labels)
        assert written.partition(";")[0].rstrip(".") == meaning.rstrip(".")
    assert set(told) == {"hami_mock_allocation_seconds", "hami_mock_dra_prepare_seconds"}


def test_watched_resources_and_the_version_are_metrics(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    agent.plugins[0].phase = Phase.WATCHED
    found = samples(agent)
    assert of(found, "hami_mock_watched", resource="nvidia.com/gpu") == 1
    assert of(found, "hami_mock_watched", resource="nvidia.com/gpucores") == 0
    assert of(found, "hami_mock_info", version=__version__) == 1


def ready_with(agent: Agent, phase: Phase) -> Answer:
    for plugin in agent.plugins:
        plugin.phase, plugin.reason = Phase.WATCHED, ""
    agent.plugins[0].phase, agent.plugins[0].reason = phase, "because"
    return readiness(agent.plugins, agent.configuration)


@pytest.mark.parametrize("phase", [p for p in Phase if p is not Phase.WATCHED])
def test_one_resource_that_is_not_watched_makes_the_agent_unready(
    socket_folder: Path, phase: Phase
) -> None:
    agent = make_agent(socket_folder)
    answer = ready_with(agent, phase)
    body = json.loads(answer.body)
    assert answer.status == 503
    assert body["ready"] is False
    assert body["resources"]["nvidia.com/gpu"] == {"phase": phase.value, "reason": "because"}
    assert body["resources"]["nvidia.com/gpucores"]["phase"] == "watched"


def test_the_agent_is_ready_when_all_are_watched(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    answer = ready_with(agent, Phase.WATCHED)
    assert (answer.status, json.loads(answer.body)["ready"]) == (200, True)
    assert len(json.loads(answer.body)["resources"]) == 8


def test_an_agent_without_resources_is_ready(socket_folder: Path) -> None:
    assert readiness([], make_agent(socket_folder).configuration).status == 200


class Hindered:
    """A view that isn't ready."""

    name = "hindered"
    not_ready = "the cat sits on it"

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        task_status.started()

    def status(self) -> dict[str, object]:
        return {}


def test_a_view_that_is_not_ready_makes_the_agent_unready(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    ready_with(agent, Phase.WATCHED)
    assert readiness(agent.plugins, agent.configuration, agent.failures()).status == 200
    agent.views.append(Hindered())
    answer = readiness(agent.plugins, agent.configuration, agent.failures())
    assert answer.status == 503
    assert json.loads(answer.body)["failures"] == {"hindered": "the cat sits on it"}


def test_a_configuration_with_an_error_shows_and_the_agent_stays_ready(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    assert of(samples(agent), "hami_mock_configuration_error") == 0
    agent.configuration.error = ("nvidia-cards: 'x' is not allowed",)
    answer = ready_with(agent, Phase.WATCHED)
    assert answer.status == 200
    assert json.loads(answer.body)["configuration"]["error"] == list(agent.configuration.error)
    assert of(samples(agent), "hami_mock_configuration_error") == 1


def test_cards_faults_events_and_xids_are_metrics(socket_folder: Path) -> None:
    agent = make_agent(socket_folder)
    perform(Action("fail", ("nvidia/1",), {"xid": 79}), agent.state)
    perform(Action("fail", ("nvidia",), {"xid": 31}), agent.state)
    perform(Action("lose", ("mlu/0",)), agent.state)
    perform(Action("degrade", ("nvidia/0",), {"reason": "thermal"}), agent.state)
    found = samples(agent)

    def card(name: str, figure: str) -> float:
        (known,) = (c for c in agent.node.cards if c.name == name)
        labels = {"card": name, "uuid": known.uuid, "model": known.model.name}
        return of(found, f"hami_mock_card_{figure}", **labels)

    healthy = {name: card(name, "healthy") for name in ("nvidia/0", "nvidia/1", "mlu/0", "mlu/1")}
    assert healthy == {"nvidia/0": 1, "nvidia/1": 0, "mlu/0": 0, "mlu/1": 1}
    assert (card("nvidia/0", "degraded"), card("nvidia/1", "degraded")) == (1, 0)
    first, second = (c.uuid for c in agent.node.cards[:2])
    assert of(found, "hami_mock_xids_total", card="nvidia/1", uuid=second, xid="79") == 1
    assert of(found, "hami_mock_xids_total", card="nvidia/0", uuid=first, xid="31") == 1
    assert of(found, "hami_mock_faults", effect="unhealthy") == 1
    assert of(found, "hami_mock_faults", effect="lost") == 1
    assert of(found, "hami_mock_faults", effect="down") == 0
    assert of(found, "hami_mock_events_total", kind="Xid") == 3
    assert of(found, "hami_mock_events_total", kind="CardLost") == 1
    assert of(found, "hami_mock_events_total", kind="ScenarioStarted") == 0
    lost = of(found, "hami_mock_devices", resource="cambricon.com/vmlu", health="lost")
    assert lost == 10


def ask(request: str, folder: Path) -> tuple[str, dict[str, str], str]:
    """The status line, the headers and the body."""
    agent = make_agent(folder)
    routes = agent_routes(NodeCollector(agent.state, agent.offerings, agent.configuration))
    answer = respond(f"{request}\r\nHost: x\r\n\r\n".encode("latin-1"), routes)
    head, _, body = answer.decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    return status, dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    ("request_line", "status", "kind"),
    [
        ("GET /healthz HTTP/1.1", "200 OK", "text/plain; charset=utf-8"),
        ("GET /healthz?verbose=1 HTTP/1.1", "200 OK", "text/plain; charset=utf-8"),
        ("GET /readyz HTTP/1.1", "503 Service Unavailable", "application/json"),
        ("GET /metrics HTTP/1.0", "200 OK", CONTENT_TYPE),
        ("GET / HTTP/1.1", "404 Not Found", "text/plain; charset=utf-8"),
        ("GET /healthz/ HTTP/1.1", "404 Not Found", "text/plain; charset=utf-8"),
        ("GET /\xff HTTP/1.1", "404 Not Found", "text/plain; charset=utf-8"),
        ("POST /healthz HTTP/1.1", "405 Method Not Allowed", "text/plain; charset=utf-8"),
        ("DELETE / HTTP/1.1", "405 Method Not Allowed", "text/plain; charset=utf-8"),
        ("get /healthz HTTP/1.1", "405 Method Not Allowed", "text/plain; charset=utf-8"),
        ("", "405 Method Not Allowed", "text/plain; charset=utf-8"),
        ("GET", "404 Not Found", "text/plain; charset=utf-8"),
    ],
)
def test_requests_are_answered(
    socket_folder: Path, request_line: str, status: str, kind: str
) -> None:
    first, headers, body = ask(request_line, socket_folder)
    assert first == f"HTTP/1.1 {status}"
    assert headers == {
        "Content-Type": kind,
        "Content-Length": str(len(body.encode())),
        "Connection": "close",
    }
    assert body.endswith("\n")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/nothing"])
def test_head_is_get_without_the_body(socket_folder: Path, path: str) -> None:
    get = ask(f"GET {path} HTTP/1.1", socket_folder)
    head = ask(f"HEAD {path} HTTP/1.1", socket_folder)
    assert head[2] == ""
    assert (head[0], head[1]["Content-Type"]) == (get[0], get[1]["Content-Type"])
    assert int(head[1]["Content-Length"]) > 0


def test_an_unknown_path_is_told_the_known_ones(socket_folder: Path) -> None:
    assert ask("GET /x HTTP/1.1", socket_folder)[2] == "try /healthz /readyz /metrics\n"


@pytest.mark.parametrize("address", ["127.0.0.1:0", ":0", "localhost:0"])
def test_http_is_served_at_the_address_and_a_second_server_can_not_have_it(address: str) -> None:
    async def scenario() -> tuple[str, str]:
        async with serve_http(address, {"/x": lambda: Answer(b"yes")}) as bound:
            port = int(bound.rpartition(":")[2])
            async with await anyio.connect_tcp("127.0.0.1", port) as client:
                await client.send(b"GET /x HTTP/1.1\r\n\r\n")
                answer = await client.receive()
            with pytest.raises(StartError) as caught:
                await serve_http(f"127.0.0.1:{port}", {}).__aenter__()
        return answer.decode(), str(caught.value)

    answer, error = anyio.run(scenario)
    assert answer.endswith("\r\n\r\nyes")
    assert error.startswith("--http-listen: can't listen on '127.0.0.1:")


@pytest.mark.parametrize(
    "text", ["\ud800", 'a"b\\c', "a\nhami_mock_info 7", "a\x00b", "é 卡", "x" * 100_000]
)
def test_whatever_text_a_card_has_the_metrics_can_be_read(socket_folder: Path, text: str) -> None:
    agent = make_agent(socket_folder)
    first, *others = agent.state.node.cards
    strange = dataclasses.replace(first, uuid=text)
    node = dataclasses.replace(agent.state.node, cards=(strange, *others))
    agent.state.node = node
    agent.state.xids[text, 79] = 3
    found = samples(agent)
    healthy = [labels for name, labels in found if name == "hami_mock_card_healthy"]
    assert len(healthy) == len(agent.node.cards)
    (shown,) = (dict(labels)["uuid"] for name, labels in found if name == "hami_mock_xids_total")
    assert shown == (text if text.isprintable() and len(text) < 100 else cut(text))
    assert of(found, "hami_mock_info", version=__version__) == 1


def test_a_crowd_of_scrapes_gets_the_same_text_and_a_later_one_a_new_one(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("hami_mock.views.http.scrapes.time.monotonic", lambda: now)
    agent = make_agent(socket_folder)
    scrape = agent_routes(NodeCollector(agent.state, agent.offerings, agent.configuration))[
        "/metrics"
    ]
    lists = []
    for number in range(25):
        agent.plugins[0].counters.lists = number
        found = re.search(rb'hami_mock_lists_total{resource="nvidia.com/gpu"} (\d+)', scrape().body)
        assert found
        lists.append(int(found[1]))
        now += 0.01
    assert lists == [*range(10), *[9] * 15]
    now += 1
    assert b'hami_mock_lists_total{resource="nvidia.com/gpu"} 24' in scrape().body
