"""The companion of a real plugin as a process: its node comes, changes, goes and returns."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tests.integration.agents import AgentProcess, agent_process
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.integration.grpcio_kubelet import GrpcioKubelet

REGISTER = "hami.io/node-nvidia-register"
GPUMEM = "nvidia.com/gpumem"
RESOURCES = {GPUMEM, f"{GPUMEM}-percentage", "nvidia.com/gpucores"}


def cards(*memory: int) -> str:
    common = {"count": 10, "devcore": 100, "type": "NVIDIA-V100", "health": True}
    rows = [{**common, "id": f"GPU-{i}", "index": i, "devmem": m} for i, m in enumerate(memory)]
    return json.dumps(rows)


class Cluster:
    """An API server in a thread of its own, with the node n1."""

    def __init__(self, portal: BlockingPortal, server: FakeApiServer) -> None:
        self._portal = portal
        self.server = server
        node = {"metadata": {"name": "n1", "annotations": {REGISTER: cards(50)}}}
        portal.call(server.put, "nodes", node)

    def register(self, value: str | None) -> None:
        self._portal.call(self.server.annotate, "nodes", "n1", {REGISTER: value})

    def wait_for_units(self, **amounts: int) -> None:
        """Wait until the node's status has these units, and no others."""
        wanted = {f"nvidia.com/{name}": str(count) for name, count in amounts.items()}

        def shown() -> list[dict[str, str]]:
            status = self.server.objects["nodes", "", "n1"].get("status", {})
            return [status.get(part, {}) for part in ("capacity", "allocatable")]

        self._portal.call(self.server.wait_until, lambda: shown() == [wanted, wanted])

    def interrupt(self) -> None:
        self._portal.call(lambda: self.server.end_watches(abrupt=True))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(api_server(tmp_path)) as server,
    ):
        yield Cluster(portal, server)


@contextmanager
def companion(kubelet: GrpcioKubelet) -> Iterator[AgentProcess]:
    with agent_process(kubelet.folder, "--source=hami", "--units=plugin") as agent:
        kubelet.wait_for_lists(RESOURCES)
        yield agent


def healthy(kubelet: GrpcioKubelet) -> int:
    return sum(health == "Healthy" for health in kubelet.devices(GPUMEM).values())


def wait_for_devices(kubelet: GrpcioKubelet, count: int) -> None:
    kubelet.wait_until(
        lambda: bool(kubelet.current(GPUMEM).lists) and healthy(kubelet) == count,
        f"{count} devices",
    )


def test_resources_whose_annotation_goes_and_returns_are_back(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    with companion(kubelet) as agent:
        for registrations in (2, 3):
            old = {name: kubelet.current(name) for name in RESOURCES}
            cluster.register(None)
            kubelet.wait_until(lambda: all(r.ended for r in old.values()), "the end of the lists")  # noqa: B023
            cluster.register(cards(50, 50))
            kubelet.wait_for_lists(RESOURCES, registrations)
            wait_for_devices(kubelet, 100)
        assert agent.stop() == 0


def test_resources_that_flicker_are_there_in_the_end(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    with companion(kubelet) as agent:
        for memory in range(51, 61):
            cluster.register(None)
            cluster.register(cards(memory))
        wait_for_devices(kubelet, 60)
        assert agent.stop() == 0


def test_resources_that_go_while_the_kubelet_is_away_return_with_it(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    with companion(kubelet) as agent:
        for memory in range(51, 61):
            cluster.register(None)
            cluster.register(cards(memory))
        wait_for_devices(kubelet, 60)
        kubelet.kill()
        cluster.register(None)
        agent.wait_for_log("ConfigurationRejected: node annotations: ")
        kubelet.start()
        cluster.register(cards(70))
        wait_for_devices(kubelet, 70)
        assert agent.stop() == 0


@pytest.mark.parametrize("answer", [b"{}", b"[" * 10**5], ids=["empty", "deep"])
def test_odd_answers_leave_what_there_was_and_end_nothing(
    kubelet: GrpcioKubelet, cluster: Cluster, answer: bytes
) -> None:
    with companion(kubelet) as agent:
        cluster.server.answer = lambda _: answer
        cluster.interrupt()
        agent.wait_for_log("can't watch node n1: can't get nodes n1: ")
        assert healthy(kubelet) == 50
        cluster.server.answer = lambda _: None
        cluster.register(cards(70))
        wait_for_devices(kubelet, 70)
        assert agent.stop() == 0


@pytest.mark.parametrize("value", ["", "[" * 10**5], ids=["empty", "deep"])
def test_an_annotation_of_no_use_ends_nothing(
    kubelet: GrpcioKubelet, cluster: Cluster, value: str
) -> None:
    with companion(kubelet) as agent:
        cluster.register(value)
        agent.wait_for_log("ConfigurationRejected: node annotations: ")
        cluster.register(cards(70))
        wait_for_devices(kubelet, 70)
        assert agent.stop() == 0


def test_units_stand_in_the_status_and_follow_the_annotation(
    kubelet: GrpcioKubelet, cluster: Cluster
) -> None:
    with agent_process(kubelet.folder, "--source=hami") as agent:
        # Nobody says which kubelet it is, so it counts as the newest; a real plugin has the slots.
        percents = {"gpucores": 100, "gpumem-percentage": 100}
        cluster.wait_for_units(gpumem=50, **percents)
        cluster.register(cards(300_000, 300_000))
        cluster.wait_for_units(gpumem=600_000, **dict.fromkeys(percents, 200))
        cluster.register(None)
        cluster.wait_for_units()
        cluster.register(cards(50))
        cluster.wait_for_units(gpumem=50, **percents)
        assert agent.stop() == 0
        cluster.wait_for_units()
    assert kubelet.registrations == []
