"""The nodes of a fleet against an API server: made, kept, corrected, deleted, found again."""

import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hami_mock.cluster import kubernetes as kubernetes_module
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.resources import NODES
from hami_mock.fleet import controller as controller_module
from hami_mock.fleet import names
from hami_mock.fleet.fleet import Fleet
from hami_mock.hami.register import decode
from hami_mock.kit.concurrency import Backoff
from tests.integration.fake_api_server import FakeApiServer
from tests.integration.fleet_rig import keeping, nodes, with_server, writes
from tests.integration.waiting import until
from tests.unit.fleet.rig import fleet_of, pod

REGISTER = "hami.io/node-nvidia-register"
Scenario = Callable[[FakeApiServer], Awaitable[None]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_module, "Backoff", lambda: Backoff(first=0.01, longest=0.1))
    monkeypatch.setattr(kubernetes_module, "PAGE", 2)
    monkeypatch.setattr(
        controller_module, "Backoff", lambda first=0.01: Backoff(first=0.01, longest=0.1)
    )


async def all_there(fleet: Fleet) -> None:
    await until(lambda: all(m.is_there and m.right for m in fleet.members.values()))


def act(fleet: Fleet, verb: str, *words: str, seconds: float | None = None, **given: Any) -> None:
    fleet.act(verb, fleet.find(words), given, seconds)


def allocatable(server: FakeApiServer, name: str, resource: str = "nvidia.com/gpumem") -> str:
    found: str = nodes(server)[name]["status"]["allocatable"].get(resource, "")
    return found


def test_nodes_are_made_with_all_that_they_show(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of()
        async with keeping(fleet):
            await all_there(fleet)
        assert sorted(nodes(server)) == ["a100-0", "a100-1", "a100-2"]
        made = nodes(server)["a100-2"]
        labels = made["metadata"]["labels"]
        assert labels[names.FLEET] == "test"
        assert labels[names.RACK] == "a100-r1"
        assert labels["topology.kubernetes.io/zone"] == "eu-2"
        assert made["metadata"]["annotations"][names.KWOK_NODE] == "fake"
        assert made["status"]["capacity"]["nvidia.com/gpumem"] == str(2 * 81920)
        assert made["status"]["allocatable"] == made["status"]["capacity"]
        devices = decode(made["metadata"]["annotations"][REGISTER])
        assert [device.healthy for device in devices] == [True, True]
        assert writes(server) == 3

    with_server(tmp_path, scenario)


def test_a_fleet_that_is_as_it_should_be_writes_nothing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()):
            await all_there(fleet)
        before = writes(server)
        async with keeping(fleet := fleet_of()) as controller:
            await all_there(fleet)
            # What others write of a node is no business of ours.
            server.annotate("nodes", "a100-0", {"hami.io/mutex.lock": "x", "other": "y"})
            server.set_status("a100-1", capacity={"example.com/other": "1"})
            server.put("nodes", ready(nodes(server)["a100-2"]))
            await until(lambda: fleet.members["a100-2"].is_ready)
            assert controller.status()["to_write"] == 0
        assert writes(server) == before

    with_server(tmp_path, scenario)


def ready(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node as KWOK makes it."""
    conditions = [{"type": "Ready", "status": "True"}]
    return {**node, "status": {**node["status"], "conditions": conditions}}


def test_what_somebody_else_changes_is_put_right(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()) as controller:
            await all_there(fleet)
            before = nodes(server)["a100-1"]
            server.set_status("a100-1", allocatable={"nvidia.com/gpumem": "1"})
            server.label("a100-1", {names.RACK: "elsewhere"})
            server.annotate("nodes", "a100-1", {REGISTER: None})
            await server.wait_until(
                lambda: (
                    nodes(server)["a100-1"]["status"] == before["status"]
                    and server.labels("a100-1") == before["metadata"]["labels"]
                    and server.annotations("nodes", "a100-1") == before["metadata"]["annotations"]
                )
            )
            assert controller.status()["disputes"] == ["a100-1"]

    with_server(tmp_path, scenario)


def test_who_insists_waits_longer_each_time(tmp_path: Path, monkeypatch: Any) -> None:
    asked: list[float] = []

    class Noted(Backoff):
        def next(self, least: float = 0.0) -> float:
            asked.append(super().next(least))
            return 0.0

    monkeypatch.setattr(controller_module, "Backoff", lambda first: Noted(first, random=Middle()))

    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()):
            await all_there(fleet)
            for _ in range(4):
                server.label("a100-0", {names.POOL: "mine"})
                await server.wait_until(lambda: server.labels("a100-0")[names.POOL] == "a100")
                await all_there(fleet)
        assert asked == sorted(asked)
        assert asked[-1] == 8 * asked[0]

    with_server(tmp_path, scenario)


def test_the_label_by_which_the_fleet_knows_its_nodes_is_put_back(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()) as controller:
            await all_there(fleet)
            server.label("a100-1", {names.FLEET: None})
            # The list doesn't have it any more; a real server's watch says that it is deleted.
            server.forget_history = True
            server.end_watches()
            await server.wait_until(lambda: server.labels("a100-1").get(names.FLEET) == "test")
            server.forget_history = False
            await all_there(fleet)
            assert controller.status()["problems"] == {}

    with_server(tmp_path, scenario)


def test_who_changes_a_node_again_meanwhile_is_not_answered_sooner(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(controller_module, "Backoff", lambda first: Backoff(first=1000))

    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()) as controller:
            await all_there(fleet)
            server.label("a100-0", {names.POOL: "mine"})
            await until(lambda: controller.status()["disputes"] == ["a100-0"])
            before = writes(server)
            server.label("a100-0", {names.RACK: "mine"})
            server.put("nodes", ready(nodes(server)["a100-0"]))
            await until(lambda: fleet.members["a100-0"].is_ready)
            # This one comes after it: were it written, it would have been by now.
            act(fleet, "fail", "a100-1")
            await server.wait_until(lambda: allocatable(server, "a100-1") == "0")
            assert writes(server) == before + 1
            assert server.labels("a100-0")[names.POOL] == "mine"

    with_server(tmp_path, scenario)


class Middle(Random):
    def uniform(self, a: float, b: float) -> float:
        return b


def test_a_node_that_somebody_deletes_is_made_again(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()):
            await all_there(fleet)
            act(fleet, "fail", "a100-0:0")
            await server.wait_until(lambda: allocatable(server, "a100-0") == "81920")
            server.remove("nodes", "a100-0")
            await server.wait_until(lambda: "a100-0" in nodes(server))
            assert allocatable(server, "a100-0") == "81920"

    with_server(tmp_path, scenario)


UNITS = {f"nvidia.com/gpu{unit}" for unit in ("mem", "mem-percentage", "cores")}


def test_a_fault_shows_in_all_that_the_node_says(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()):
            await all_there(fleet)
            before = nodes(server)["a100-1"]
            act(fleet, "fail", "a100-1:nvidia/0", xid=79)
            await server.wait_until(lambda: allocatable(server, "a100-1") == "81920")
            notes = server.annotations("nodes", "a100-1")
            assert [device.healthy for device in decode(notes[REGISTER])] == [False, True]
            # A kubelet counts the slots of a failed card; a number in the status lacks its units.
            capacity = nodes(server)["a100-1"]["status"]["capacity"]
            whole = before["status"]["capacity"]
            assert {key for key in whole if capacity[key] != whole[key]} == UNITS
            assert capacity["nvidia.com/gpumem"] == "81920"
            (row,) = json.loads(notes[names.FAULTS])
            assert row["targets"] == ["nvidia/0"]
            act(fleet, "recover", "a100-1")
            await server.wait_until(lambda: allocatable(server, "a100-1") == "163840")
            assert server.annotations("nodes", "a100-1") == before["metadata"]["annotations"]
            assert nodes(server)["a100-1"]["status"] == before["status"]

    with_server(tmp_path, scenario)


def test_lost_cards_are_gone_from_capacity_labels_and_annotations(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of(options="hami: true\nvendors: nvidia\nlabels: gfd")
        async with keeping(fleet):
            await all_there(fleet)
            assert server.labels("a100-0")["nvidia.com/gpu.count"] == "2"
            act(fleet, "lose", "a100-0:1")
            await server.wait_until(lambda: allocatable(server, "a100-0") == "81920")
            assert nodes(server)["a100-0"]["status"]["capacity"]["nvidia.com/gpumem"] == "81920"
            assert server.labels("a100-0")["nvidia.com/gpu.count"] == "1"
            act(fleet, "lose", "a100-0:0")
            await server.wait_until(lambda: allocatable(server, "a100-0") == "0")
            assert REGISTER not in server.annotations("nodes", "a100-0")
            assert "nvidia.com/gpu.count" not in server.labels("a100-0")
            act(fleet, "down", "a100-0:nvidia.com/gpumem")
            await server.wait_until(lambda: allocatable(server, "a100-0") == "")

    with_server(tmp_path, scenario)


def test_a_fault_ends_by_itself(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of()
        fleet._clock = time.time
        async with keeping(fleet):
            await all_there(fleet)
            act(fleet, "fail", "a100-0", seconds=0.2)
            await server.wait_until(lambda: allocatable(server, "a100-0") == "0")
            await server.wait_until(lambda: allocatable(server, "a100-0") == "163840")
            assert names.FAULTS not in server.annotations("nodes", "a100-0")

    with_server(tmp_path, scenario)


def test_a_fleet_that_was_killed_comes_back_to_its_nodes_and_faults(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()):
            await all_there(fleet)
            act(fleet, "fail", "a100-1", xid=79)
            act(fleet, "stop-node", "a100-2")
            await server.wait_until(
                lambda: names.KWOK_NODE not in server.annotations("nodes", "a100-2")
            )
            await server.wait_until(lambda: allocatable(server, "a100-1") == "0")
        before, objects = writes(server), json.dumps(nodes(server))
        async with keeping(again := fleet_of()):
            await all_there(again)
            assert again.members["a100-2"].is_stopped
            assert [fault.text for fault in again.members["a100-1"].faults] == [
                "unhealthy: Xid 79 (GPU has fallen off the bus)"
            ] * 2
            assert writes(server) == before
            assert json.dumps(nodes(server)) == objects
            act(again, "recover", "all")
            await server.wait_until(lambda: allocatable(server, "a100-1") == "163840")

    with_server(tmp_path, scenario)


def test_a_fleet_of_other_cards_takes_away_what_its_nodes_had(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of("{name: a, nodes: 2, labels: {x/y: z}}")):
            await all_there(fleet)
        row, options = "{name: a, nodes: 2, ascend: {cards: 1}}", "hami: true\nvendors: ascend"
        async with keeping(fleet := fleet_of(row, options=options)):
            act(fleet, "fail", "a-1")
            await all_there(fleet)
            act(fleet, "recover", "a-1")
            await all_there(fleet)
        for name in ("a-0", "a-1"):
            told = json.dumps(nodes(server)[name])
            assert "nvidia" not in told
            assert "x/y" not in told
            assert [key for key in nodes(server)[name]["status"]["allocatable"] if "/" in key] == [
                *fleet.state(fleet.members[name]).resources
            ]

    with_server(tmp_path, scenario)


def test_a_node_that_is_stopped_is_nobodys_and_not_ready(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()):
            await all_there(fleet)
            server.put("nodes", ready(nodes(server)["a100-0"]))
            await until(lambda: fleet.members["a100-0"].is_ready)
            act(fleet, "stop-node", "a100-0")
            await until(lambda: not fleet.members["a100-0"].is_ready)
            conditions = nodes(server)["a100-0"]["status"]["conditions"]
            assert {each["status"] for each in conditions} == {"Unknown"}
            assert names.KWOK_NODE not in server.annotations("nodes", "a100-0")
            # KWOK may not have seen it yet.
            server.put("nodes", ready(nodes(server)["a100-0"]))
            await server.wait_until(
                lambda: nodes(server)["a100-0"]["status"]["conditions"][0]["status"] == "Unknown"
            )
            act(fleet, "start-node", "a100-0")
            await server.wait_until(
                lambda: server.annotations("nodes", "a100-0").get(names.KWOK_NODE) == "fake"
            )

    with_server(tmp_path, scenario)


def test_a_pool_is_scaled_and_its_pods_go_with_the_nodes(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()):
            await all_there(fleet)
            fleet.scale("a100", 5)
            await server.wait_until(lambda: len(nodes(server)) == 5)
            await all_there(fleet)
            for name in ("a100-0", "a100-4"):
                key = ("default", f"on-{name}")
                fleet.members[name].pods = {key: pod(key[1])}
                metadata = {"name": key[1], "namespace": key[0]}
                server.put("pods", {"metadata": metadata, "spec": {"nodeName": name}})
            fleet.scale("a100", 1)
            await server.wait_until(lambda: [*nodes(server)] == ["a100-0"])
            pods = [name for kind, _, name in server.objects if kind == "pods"]
            assert pods == ["on-a100-0"]
            gone = server.requests.index("delete pods on-a100-4")
            assert gone < server.requests.index("delete nodes a100-4")

    with_server(tmp_path, scenario)


def test_a_pool_that_is_scaled_down_and_up_again_is_in_dispute_with_nobody(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()) as controller:
            await all_there(fleet)
            fleet.scale("a100", 0)
            fleet.scale("a100", 3)
            await server.wait_until(lambda: server.requests.count("delete nodes a100-2") > 0)
            await all_there(fleet)
            assert sorted(nodes(server)) == ["a100-0", "a100-1", "a100-2"]
            assert controller.status()["disputes"] == []

    with_server(tmp_path, scenario)


def test_who_comes_back_with_fewer_or_other_nodes_settles_on_them(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()):
            await all_there(fleet)
            fleet.scale("a100", 5)
            await all_there(fleet)
            for name in ("a100-1", "a100-2"):
                fleet.members[name].pods = None
                fleet.members[name].is_there = True
        server.remove("nodes", "a100-0")
        server.put("nodes", {"metadata": {"name": "old-0", "labels": {names.FLEET: "test"}}})
        async with keeping(again := fleet_of()):
            await server.wait_until(lambda: len(nodes(server)) == 3)
            # What is there is kept: nobody moves pods for a number.
            await server.wait_until(lambda: sorted(nodes(server)) == ["a100-1", "a100-2", "a100-3"])
            assert sorted(again.members) == ["a100-1", "a100-2", "a100-3"]

    with_server(tmp_path, scenario)


def test_a_node_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        foreign = server.put("nodes", {"metadata": {"name": "a100-1"}})
        async with keeping(fleet_of()) as controller:
            await server.wait_until(lambda: len(nodes(server)) == 3)
            await until(lambda: bool(controller.status()["problems"]))
            told = controller.status()["problems"]
            assert told == {"a100-1": "a node with that name exists, and isn't this fleet's"}
        assert nodes(server)["a100-1"] == foreign

    with_server(tmp_path, scenario)


def test_an_api_server_that_has_too_much_is_left_alone_for_a_while(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        left = 3

        def refuse(line: str) -> int | None:
            nonlocal left
            if line.startswith("create") and left:
                left -= 1
                return 429
            return None

        server.refuse = refuse
        async with keeping(fleet := fleet_of()) as controller:
            await all_there(fleet)
            assert controller.status()["error"] == ""
        assert len(nodes(server)) == 3

    with_server(tmp_path, scenario)


def test_a_watch_that_breaks_loses_nothing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with keeping(fleet := fleet_of()):
            await all_there(fleet)
            server.hold_events = True
            server.remove("nodes", "a100-2")
            server.forget_history = True
            server.end_watches()
            await server.wait_until(lambda: "a100-2" in nodes(server))
            server.forget_history = False
            server.release_events()
            await all_there(fleet)

    with_server(tmp_path, scenario)


def test_a_list_in_pages_is_the_same_list(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        for index in range(5):
            labels = {"of": "us"} if index != 3 else {}
            server.put("nodes", {"metadata": {"name": f"n{index}", "labels": labels}})
        async with Kubernetes() as kubernetes:
            pages = [page async for page in kubernetes.pages(NODES, labels="of=us", limit=2)]
            assert [[n["metadata"]["name"] for n in page] for page in pages] == [
                ["n0", "n1"],
                ["n2", "n4"],
            ]
            assert sum(line == "list nodes" for line in server.requests) == 2

    with_server(tmp_path, scenario)
