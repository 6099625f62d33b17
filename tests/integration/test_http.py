"""/healthz, /readyz and /metrics of a running agent."""

import json
import socket
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.defaults import DEFAULT_COUNTS
from tests.integration.agents import ONLY_NVIDIA, agent_process, get
from tests.integration.grpcio_kubelet import GrpcioKubelet

ALL = set(DEFAULT_COUNTS)


def address(line: str) -> str:
    return f"http://{line.split('HTTP at ')[1].strip()}"


def metrics(url: str) -> dict[tuple[str, ...], float]:
    status, text = get(f"{url}/metrics")
    assert status == 200
    return {
        (sample.name, *(sample.labels[k] for k in ("resource", "health") if k in sample.labels)): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_ready_when_every_resource_is_watched(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, http="127.0.0.1:0") as agent:
        url = address(agent.wait_for_log("HTTP at"))
        kubelet.wait_for_lists(ALL)
        kubelet.wait_until(lambda: get(f"{url}/readyz")[0] == 200, "readiness")
        body = json.loads(get(f"{url}/readyz")[1])
        assert body["ready"] is True
        assert {r: s["phase"] for r, s in body["resources"].items()} == dict.fromkeys(
            ALL, "watched"
        )
        assert get(f"{url}/healthz") == (200, "ok\n")
        assert get(f"{url}/nonsense")[0] == 404


def test_metrics_count_devices_lists_registrations_and_allocations(kubelet: GrpcioKubelet) -> None:
    with agent_process(kubelet.folder, http="127.0.0.1:0") as agent:
        url = address(agent.wait_for_log("HTTP at"))
        kubelet.wait_for_lists(ALL)
        kubelet.wait_until(lambda: get(f"{url}/readyz")[0] == 200, "readiness")
        ids = list(kubelet.devices("nvidia.com/gpumem"))[:7]
        kubelet.plugin("nvidia.com/gpumem").allocate(ids)
        found = metrics(url)
        for name, count in DEFAULT_COUNTS.items():
            assert found["hami_mock_devices", name, "healthy"] == count
            assert found["hami_mock_devices", name, "unhealthy"] == 0
            assert found["hami_mock_registrations_total", name] == 1
            assert found["hami_mock_lists_total", name] == 1
            size = len(kubelet.current(name).lists[0])
            assert found["hami_mock_list_bytes_total", name] == size
            assert found["hami_mock_watched", name] == 1
        assert found["hami_mock_allocations_total", "nvidia.com/gpumem"] == 1
        assert found["hami_mock_allocated_devices_total", "nvidia.com/gpumem"] == 7
        assert found["hami_mock_allocation_seconds_count", "nvidia.com/gpumem"] == 1


def test_docs_list_every_metric_with_its_help(kubelet: GrpcioKubelet) -> None:
    page = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `hami_mock_")]
    told = {row[1].strip().strip("`").removesuffix("_total"): row[3].strip() for row in rows}
    with agent_process(kubelet.folder, http="127.0.0.1:0") as agent:
        _, text = get(f"{address(agent.wait_for_log('HTTP at'))}/metrics")
    shown = {each.name: each.documentation for each in text_string_to_metric_families(text)}
    # Only an agent that uses the API server has it; those of DRA: tests/unit/views/http.
    assert told.pop("hami_mock_api_writes").startswith("Writes to the API server")
    assert {name: text for name, text in told.items() if "_dra_" not in name} == shown


def test_one_refused_resource_leaves_the_others_alone_and_is_tried_again(
    kubelet: GrpcioKubelet,
) -> None:
    kubelet.refused = {"gpumem"}
    others = {"nvidia.com/gpu", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage"}
    flags = (*ONLY_NVIDIA, "-resource-mem=gpumem")
    with agent_process(kubelet.folder, *flags, http="127.0.0.1:0") as agent:
        url = address(agent.wait_for_log("HTTP at"))
        agent.wait_for_log('gpumem: failed: the kubelet refused: the ResourceName "gpumem" is')
        kubelet.wait_for_lists(others)
        status, text = get(f"{url}/readyz")
        assert status == 503
        resources = json.loads(text)["resources"]
        assert "the kubelet refused" in resources["gpumem"]["reason"]
        kubelet.wait_until(lambda: kubelet.events.count(("refuse", "gpumem")) >= 3, "retries")
        kubelet.refused = set()
        kubelet.wait_for_lists(others | {"gpumem"})
        kubelet.wait_until(lambda: get(f"{url}/readyz")[0] == 200, "readiness")
        assert len(kubelet.registrations) == 4
        assert metrics(url)["hami_mock_registration_errors_total", "gpumem"] >= 3


def test_an_address_in_use_is_a_clear_error(kubelet: GrpcioKubelet) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with agent_process(kubelet.folder, http=f"127.0.0.1:{port}") as agent:
            line = agent.wait_for_log("--http-listen")
            assert f"can't listen on '127.0.0.1:{port}'" in line
            assert agent.process.wait(timeout=10) == 1
