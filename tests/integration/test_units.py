"""Agents as processes whose units stand in the Node's status, and move there and back."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from hami_mock.views.status_note import ANNOTATION
from tests.integration.agents import AgentProcess, agent_process, get, run_cli
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.pod_resources import pod_resources

GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
UNITS = {MEMORY: 100, CORES: 200, f"{MEMORY}-percentage": 200}
REFUSAL = "the role needs the verb patch for nodes/status"


class Cluster:
    """An API server in a thread of its own, with the node n1."""

    def __init__(self, portal: BlockingPortal, server: FakeApiServer) -> None:
        self._portal = portal
        self.server = server
        status = {"nodeInfo": {"kubeletVersion": "v1.37.1"}, "capacity": {}, "allocatable": {}}
        portal.call(server.put, "nodes", {"metadata": {"name": "n1"}, "status": status})

    def report(self, **parts: dict[str, int]) -> None:
        """Let the kubelet report its node."""
        self._portal.call(self._report, parts)

    def _report(self, parts: dict[str, dict[str, int]]) -> None:
        for part, amounts in parts.items():
            self.server.set_status("n1", **{part: {n: str(each) for n, each in amounts.items()}})

    @property
    def shown(self) -> tuple[dict[str, int], dict[str, int]]:
        status = self.server.objects["nodes", "", "n1"]["status"]
        return tuple(  # type: ignore[return-value]
            {name: int(count) for name, count in status[part].items()}
            for part in ("capacity", "allocatable")
        )

    def wait_for(self, capacity: dict[str, int], allocatable: dict[str, int]) -> None:
        wanted = (capacity, allocatable)
        self._portal.call(self.server.wait_until, lambda: self.shown == wanted)

    def wait_for_note(self, note: dict[str, int | None] | None) -> None:
        def noted() -> object:
            text = self.server.annotations("nodes", "n1").get(ANNOTATION)
            return text and json.loads(text)

        self._portal.call(self.server.wait_until, lambda: noted() == note)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(api_server(tmp_path)) as server,
    ):
        yield Cluster(portal, server)


@contextmanager
def agent(kubelet: GrpcioKubelet, *flags: str, http: str = "") -> Iterator[AgentProcess]:
    socket = f"--control-socket={kubelet.folder}/control.sock"
    small = ("--nvidia-memory=50",) * (not any("memory" in flag for flag in flags))
    with agent_process(
        kubelet.folder, "--vendors=nvidia", socket, *small, *flags, http=http
    ) as running:
        kubelet.wait_for_lists({GPU})
        yield running


def ctl(kubelet: GrpcioKubelet, *words: str) -> str:
    socket = f"--control-socket={kubelet.folder}/control.sock"
    ran = run_cli("ctl", socket, *words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def status(kubelet: GrpcioKubelet) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ctl(kubelet, "status", "-o", "json"))
    return found


def ways(kubelet: GrpcioKubelet) -> dict[str, tuple[str, str]]:
    return {row["name"]: (row["way"], row["phase"]) for row in status(kubelet)["resources"]}


def test_units_go_there_and_back_while_the_agent_runs(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    socket = kubelet.folder / "pods.socket"
    with pod_resources(socket), agent(kubelet, f"--pod-resources-socket={socket}") as running:
        cluster.wait_for(UNITS, UNITS)
        wanted = {GPU: ("plugin", "watched"), **dict.fromkeys(UNITS, ("status", "in status"))}
        kubelet.wait_until(lambda: ways(kubelet) == wanted, str(wanted))
        (memory,) = (row for row in status(kubelet)["resources"] if row["name"] == MEMORY)
        assert memory["why"].startswith("kubelet 1.37 writes every device")
        assert {r.resource for r in kubelet.registrations} == {GPU}

        said = ctl(kubelet, "set", "units=plugin")
        assert f"{MEMORY}: now with a device plugin" in said
        kubelet.wait_for_lists({*UNITS})
        cluster.wait_for_note(None)
        assert cluster.shown == (UNITS, UNITS), "the kubelet's own report will say the same"

        assert f"{MEMORY}: now in the Node's status" in ctl(kubelet, "set", "units=status")
        # The numbers may be those of the plugins, so they are no answer.
        cluster.wait_for(UNITS, dict.fromkeys(UNITS, 0))
        cluster.wait_for_note(dict.fromkeys(UNITS))
        kubelet.wait_until(lambda: all(kubelet.current(name).ended for name in UNITS), "the ends")
        assert ways(kubelet)[MEMORY] == ("status", "waiting")
        cluster.report(capacity=dict.fromkeys(UNITS, 0))
        cluster.wait_for(UNITS, dict.fromkeys(UNITS, 0))
        cluster.report(allocatable=UNITS)
        cluster.wait_for_note({**UNITS})
        assert running.stop() == 0
    assert cluster.shown == ({}, {})


def test_a_plugin_that_the_kubelet_has_yet_to_report_is_one_all_the_same(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    """A kubelet reports every 10 s: a plugin may have come and gone in between."""
    socket = kubelet.folder / "pods.socket"
    flags = "--kubelet-version=1.35", f"--pod-resources-socket={socket}"
    with pod_resources(socket), agent(kubelet, *flags) as running:
        kubelet.wait_for_lists({*UNITS})
        assert cluster.shown == ({}, {})
        ctl(kubelet, "set", "units=status")
        cluster.wait_for(UNITS, dict.fromkeys(UNITS, 0))
        cluster.wait_for_note(dict.fromkeys(UNITS))
        cluster.report(allocatable=UNITS)
        cluster.wait_for_note({**UNITS})
        assert running.stop() == 0
    assert cluster.shown == ({}, {})


def test_what_only_a_plugin_can_do_is_refused(kubelet: GrpcioKubelet, cluster: Cluster) -> None:
    with agent(kubelet):
        socket = f"--control-socket={kubelet.folder}/control.sock"
        for words in ("delay allocate 2s", "hang allocate 2s", "break allocate", "refuse", "drop"):
            ran = run_cli("ctl", socket, *words.split(), MEMORY)
            assert ran.returncode == 2
            assert f"'{MEMORY}': {MEMORY} has no device plugin" in ran.stderr
        ctl(kubelet, "delay", "allocate", "10ms", "nvidia")
        assert [row["name"] for row in status(kubelet)["resources"] if row["faults"]] == [GPU]
        ctl(kubelet, "down", MEMORY)
        others = {name: count for name, count in UNITS.items() if name != MEMORY}
        cluster.wait_for(others, others)
        ctl(kubelet, "up", MEMORY)
        cluster.wait_for(UNITS, UNITS)


def test_where_it_may_not_write_auto_has_plugins_and_says_which_rule_it_lacks(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    cluster.server.refuse = lambda line: 403 if line.startswith("patch nodes/status") else None
    with agent(kubelet):
        kubelet.wait_for_lists({GPU, *UNITS})
        rows = {row["name"]: row for row in status(kubelet)["resources"]}
        assert {row["way"] for row in rows.values()} == {"plugin"}
        assert REFUSAL in rows[MEMORY]["why"]
        kubelet.wait_until(lambda: status(kubelet)["ready"], "readiness")
        assert REFUSAL in status(kubelet)["notices"]["source"]
        assert "notice: units have device plugins, and their limits: " in ctl(kubelet, "status")
    assert cluster.shown == ({}, {})


LARGE = ("--nvidia-cards=8", "--nvidia-memory=183359", "--units=auto")
"""Eight B200: no list has room for their memory."""
AMOUNTS = {MEMORY: 8 * 183359, CORES: 800, f"{MEMORY}-percentage": 800}


def gone(server: FakeApiServer) -> None:
    """Let the API server have an error of its own for every request.

    It asks for so much patience of the first that nobody has it; the others are tried again soon.
    """
    asked = [0]

    def refuse(line: str) -> int:
        asked[0] += 1
        server.retry_after = "60" if asked[0] == 1 else "0"
        return 503

    server.refuse = refuse
    server.end_watches()


@pytest.mark.parametrize(
    ("flags", "amounts"), [((), UNITS), (LARGE, AMOUNTS), (("--hami=on",), UNITS)],
    ids=["a list has room", "no list has room", "with HAMi"],
)  # fmt: skip
def test_an_agent_that_begins_while_the_api_server_is_away_leaves_the_units_where_they_are(
    kubelet: GrpcioKubelet, cluster: Cluster, flags: tuple[str, ...], amounts: dict[str, int]
) -> None:
    with agent(kubelet, *flags) as first:
        cluster.wait_for(amounts, amounts)
        first.process.kill()
        first.process.wait()
    gone(cluster.server)
    kubelet.restart()
    with agent(kubelet, *flags) as second:
        kubelet.wait_for_lists({GPU}, registrations=2)
        assert ways(kubelet) == {
            GPU: ("plugin", "watched"),
            **dict.fromkeys(amounts, ("status", "waiting")),
        }
        (memory,) = (row for row in status(kubelet)["resources"] if row["name"] == MEMORY)
        assert memory["why"].startswith("they were there before, and it isn't known now whether")
        told = status(kubelet)
        assert "no get nodes n1 today (503)" in told["notices"]["source"]
        assert not told["ready"]
        assert cluster.shown == (amounts, amounts)
        cluster.server.refuse = lambda _: None
        wanted = dict.fromkeys(amounts, ("status", "in status"))
        kubelet.wait_until(lambda: wanted.items() <= ways(kubelet).items(), str(wanted))
        assert {r.resource for r in kubelet.registrations} == {GPU}
        assert second.stop() == 0
    assert cluster.shown == ({}, {})
    assert not [*kubelet.folder.glob("*.json")]


def test_without_a_record_it_serves_what_has_room_and_waits_with_the_rest(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    gone(cluster.server)
    with agent(kubelet, *LARGE):
        kubelet.wait_for_lists({GPU, CORES, f"{MEMORY}-percentage"})
        assert ways(kubelet)[MEMORY] == ("status", "waiting")
        cluster.server.refuse = lambda _: None
        own = {MEMORY: AMOUNTS[MEMORY]}
        cluster.wait_for(own, own)


def test_where_it_may_not_read_pods_it_says_which_rule_it_lacks(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    cluster.server.refuse = lambda line: 403 if line == "list pods" else None
    with agent(kubelet):
        cluster.wait_for(UNITS, UNITS)
        kubelet.wait_until(lambda: "403" in status(kubelet)["notices"].get("pods", ""), "the rule")
        told = status(kubelet)["notices"]["pods"]
        assert told.startswith("the pods of this node have not been read yet: can't list pods")
        assert "the role needs the verb list for pods (apiGroups" in told


def test_where_it_must_write_and_may_not_it_is_not_ready(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    cluster.server.refuse = lambda line: 403 if line.startswith("patch nodes/status") else None
    with agent(kubelet, "--units=status", http="127.0.0.1:0") as running:
        address = running.wait_for_log("HTTP at ").split("HTTP at ")[1].strip()
        running.wait_for_log(REFUSAL)
        code, text = get(f"http://{address}/readyz")
        assert code == 503
        told = json.loads(text)
        assert REFUSAL in told["failures"]["node status"]
        assert REFUSAL in told["resources"][MEMORY]["reason"]
        assert REFUSAL in status(kubelet)["failures"]["node status"]
        assert ways(kubelet)[MEMORY] == ("status", "waiting")
        cluster.server.refuse = lambda _: None
        cluster.wait_for(UNITS, UNITS)


def test_without_an_api_server_the_status_can_not_be_had(
    kubelet: GrpcioKubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with agent(kubelet):
        socket = f"--control-socket={kubelet.folder}/control.sock"
        ran = run_cli("ctl", socket, "set", "units=status")
        assert ran.returncode == 2
        assert "--units status: this agent isn't connected to the API server" in ran.stderr
        assert ways(kubelet)[MEMORY][0] == "plugin"
