"""What export-kwok writes is a fleet by itself: no process of ours runs here."""

from pathlib import Path

import pytest
import yaml

from hami_mock.cli.fleet import export_kwok
from hami_mock.cli.main import main
from hami_mock.fleet.sandbox import Sandbox
from hami_mock.fleet.stages import Bind
from tests.fleet.api import NODES, PODS, Api, Object, phase, readiness
from tests.fleet.played import bind_pod, lock_of
from tests.fleet.pods import pod

NAMESPACES = "/api/v1/namespaces"
TRACE_HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time"
FILE = """\
hami: true
vendors: [nvidia, ascend]
nvidia: {cards: 0}
ascend: {cards: 0}
pools:
  - {name: a, nodes: 20, nvidia: {cards: 8, model: A100-SXM4-80GB}}
"""


@pytest.fixture(scope="module")
def bind() -> Bind:
    return Bind.STAGES


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, api: Api) -> Path:
    """The exported folder, with its nodes made."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "fleet.yaml").write_text(FILE)
    words = [str(folder / "fleet.yaml"), "--bind", "stages", "-o", str(folder)]
    export_kwok.run(export_kwok.parser().parse(words))
    for node in yaml.safe_load_all((folder / "nodes.yaml").read_text()):
        api.post(NODES, node)
    return folder


def test_what_kwok_is_told_is_what_runs_here(exported: Path, cluster: Sandbox) -> None:
    assert (exported / "kwok.yaml").read_text() == cluster.places.kwok_config.read_text()


@pytest.mark.usefixtures("exported")
def test_nodes_are_ready_with_their_cards(api: Api) -> None:
    api.wait("ready", NODES, readiness, lambda seen: seen == {"True": 20}, seconds=60)
    for node in api.all(NODES):
        assert node["status"]["allocatable"]["nvidia.com/gpumem"] == "655360"


@pytest.mark.usefixtures("exported")
def test_a_pod_runs_for_its_duration_however_often_it_is_changed(api: Api) -> None:
    api.post(PODS, pod("short-0", {"nvidia.com/gpu": 1}, duration="1s"))
    api.post(PODS, pod("long-0", {"nvidia.com/gpu": 1}, duration="1h"))
    api.post(PODS, pod("odd-0", {"nvidia.com/gpu": 1}, duration="some time"))
    api.post(PODS, pod("changed-0", {"nvidia.com/gpu": 1}, duration="4s"))
    api.wait(
        "running", PODS, _name_and_phase, lambda seen: ("changed-0", "Running") in +seen, seconds=30
    )
    for number in range(3):
        api.merge(f"{PODS}/changed-0", {"metadata": {"labels": {"touched": str(number)}}})
    ends = {("short-0", "Succeeded"), ("changed-0", "Succeeded")}
    api.wait("over", PODS, _name_and_phase, lambda seen: ends <= {*+seen}, seconds=30)
    for name in ("long-0", "odd-0"):
        assert phase(api.get(f"{PODS}/{name}")) == "Running"
    status = api.get(f"{PODS}/changed-0")["status"]
    state = status["containerStatuses"][0]["state"]["terminated"]
    assert state["reason"] == "Completed"
    assert state["startedAt"] == status["startTime"]


@pytest.mark.usefixtures("exported")
def test_a_trace_is_played_and_its_namespace_goes(
    api: Api, cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "trace.csv"
    rows = [f"t{number},1000,1024,1,500,{10 + number},{30 + number}" for number in range(6)]
    trace.write_text("\n".join([TRACE_HEADER, *rows]))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    words = ["fleet", "play", str(trace), "--time-factor", "10", "--namespace"]
    assert main([*words, "kept", "--keep"]) == 0
    pods = "/api/v1/namespaces/kept/pods"
    api.wait("over", pods, phase, lambda seen: +seen == {"Succeeded": 6}, seconds=60)
    for each in api.all(pods):
        assert each["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpucores"] == "50"
    assert main([*words, "kept"]) == 1
    assert len(api.names(pods)) == 6
    assert main([*words, "gone"]) == 0
    api.wait("gone", NAMESPACES, _name, lambda seen: "gone" not in +seen, seconds=60)


@pytest.mark.usefixtures("exported")
def test_kwok_answers_hamis_scheduler(api: Api) -> None:
    """As HAMi's does: the node is locked, the pod marked and bound; then it waits."""
    lock = {"hami.io/mutex.lock": "2026-01-01T00:00:00Z,default,hami-0"}
    api.merge(f"{NODES}/a-7", {"metadata": {"annotations": lock}})
    marked = pod("hami-0", {"nvidia.com/gpu": 1}, schedulerName="hami")
    marked["metadata"]["annotations"] = {"hami.io/bind-phase": "allocating"}
    api.post(PODS, marked)
    bind_pod(api, "hami-0", "a-7")
    api.wait(
        "running", PODS, _name_and_phase, lambda seen: ("hami-0", "Running") in +seen, seconds=30
    )
    bound = api.get(f"{PODS}/hami-0")
    assert bound["metadata"]["annotations"]["hami.io/bind-phase"] == "success"
    api.wait("unlocked", NODES, lock_of, lambda seen: set(+seen) == {""}, seconds=30)


@pytest.mark.usefixtures("exported")
def test_a_pod_that_hami_gave_up_does_not_run(api: Api) -> None:
    marked = pod("failed-0", {"nvidia.com/gpu": 1}, schedulerName="hami")
    marked["metadata"]["annotations"] = {"hami.io/bind-phase": "failed"}
    api.post(PODS, marked)
    bind_pod(api, "failed-0", "a-1")
    # Bound after it, so KWOK has looked at both when this one runs.
    api.post(PODS, pod("after-0", {"nvidia.com/gpu": 1}))
    api.wait(
        "running", PODS, _name_and_phase, lambda seen: ("after-0", "Running") in +seen, seconds=30
    )
    assert phase(api.get(f"{PODS}/failed-0")) == "Pending"


@pytest.mark.usefixtures("exported")
def test_a_deleted_node_stays_deleted(api: Api) -> None:
    """KWOK removes its lock with a write that could make it anew."""
    marked = pod("late-0", {"nvidia.com/gpu": 1}, schedulerName="hami")
    api.post(PODS, marked)
    bind_pod(api, "late-0", "a-19")
    api.delete(f"{NODES}/a-19")
    allocating = {"hami.io/bind-phase": "allocating"}
    api.merge(f"{PODS}/late-0", {"metadata": {"annotations": allocating}})
    api.post(PODS, pod("later-0", {"nvidia.com/gpu": 1}))
    api.wait(
        "running", PODS, _name_and_phase, lambda seen: ("later-0", "Running") in +seen, seconds=30
    )
    assert "a-19" not in api.names(NODES)


def _name(seen: Object) -> str:
    return str(seen["metadata"]["name"])


def _name_and_phase(seen: Object) -> tuple[str, str]:
    return seen["metadata"]["name"], phase(seen)
