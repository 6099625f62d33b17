"""`hami-mock fleet` from the outside: up, status, verbs, scale, scenario, doctor, down."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from hami_mock.cli.fleet.up import up
from hami_mock.cli.main import main
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.control.protocol import Request
from hami_mock.errors import StartError
from hami_mock.fleet import control, names
from hami_mock.fleet.control import FleetCommands
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.running import Options, Running
from tests.integration.fake_api_server import FakeApiServer
from tests.integration.fleet_pods_rig import GPU, asking_pod
from tests.integration.fleet_rig import nodes, with_server, writes
from tests.integration.waiting import until
from tests.unit.fleet.rig import fleet_of

FILE = """\
hami: true
dra: nvidia
vendors: nvidia
pools:
  - {name: a100, nodes: 3, zone: [eu-1, eu-2], rack: 2, nvidia: {cards: 2, model: A100-SXM4-80GB}}
"""
SLICE = "resourceslices"
MEMORY = "nvidia.com/gpumem"

Command = Callable[..., Any]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command beside the event loop; return its exit code and what it printed."""

    async def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        place = ("--control-socket", str(tmp_path / "fleet.sock"))
        name = () if "--name" in words else ("--name", "test")
        code = await anyio.to_thread.run_sync(partial(main, ["fleet", *words, *place, *name]))
        return code, *capsys.readouterr()

    return run


@asynccontextmanager
async def running(tmp_path: Path, fleet: Fleet | None = None) -> AsyncIterator[Fleet]:
    fleet = fleet or fleet_of(options="hami: true\nvendors: nvidia\ndra: nvidia")
    options = Options(writes=0, control_socket=str(tmp_path / "fleet.sock"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(up, fleet, options)
        await until(lambda: all(member.right for member in fleet.members.values()))
        yield fleet
        tasks.cancel_scope.cancel()


def test_status_tells_of_the_pools_and_the_writes(tmp_path: Path, command: Command) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with running(tmp_path):
            await server.wait_until(lambda: sum(kind == SLICE for kind, *_ in server.objects) == 3)
            await command("fail", "rack=a100-r0:0", "--xid", "79")
            _, out, _ = await command("status", "-o", "json")
            status = json.loads(out)
            (pool,) = status["pools"]
            shown = {key: pool[key] for key in ("nodes", "there", "cards", "unhealthy", "faults")}
            assert shown == {"nodes": 3, "there": 3, "cards": 6, "unhealthy": 2, "faults": 2}
            memory = pool["resources"]["nvidia.com/gpumem"]
            assert memory == {"allocatable": 4 * 81920, "allocated": 0}
            assert status["writes"]["total"] >= 6
            code, out, _ = await command("status")
            assert code == 0
            assert "a100" in out
            assert "2 unhealthy" in out

    with_server(tmp_path, scenario)


def test_verbs_act_on_what_they_name(tmp_path: Path, command: Command) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with running(tmp_path) as fleet:
            code, out, _ = await command("fail", "a100-1", "--reason", "test", "--for", "5m")
            assert (code, out.splitlines()) == (
                0,
                ["2 cards now unhealthy: test: a100-1", "it ends by itself after 5m"],
            )
            await server.wait_until(lambda: names.FAULTS in server.annotations("nodes", "a100-1"))
            assert faults_of(fleet, "a100-1") == 2
            _, out, _ = await command("stop-node", "rack=a100-r0", "--reason", "no power")
            assert out == "2 nodes now stopped: no power: a100-0, a100-1\n"
            _, out, _ = await command("delay", "allocate", "2s", "a100-2")
            assert out == "1 resource now with allocate slow for 2 s: a100-2\n"
            code, out, _ = await command("recover", "all", "-o", "json")
            assert json.loads(out)["nodes"] == ["a100-0", "a100-1", "a100-2"]
            assert faults_of(fleet, "a100-1") == 1
            code, _, err = await command("fail", "a10")
            assert code == 2
            assert "there is no node and no pool 'a10'; did you mean a100?" in err
            code, _, err = await command("fail", "a100-0:nvidia/7")
            assert code == 2
            assert "there is no card 'nvidia/7'" in err

    with_server(tmp_path, scenario)


def faults_of(fleet: Fleet, name: str) -> int:
    return len(fleet.members[name].faults)


def test_what_pods_have_of_a_card_that_failed_counts_for_as_long_as_they_are_there(
    tmp_path: Path, command: Command
) -> None:
    asked = {GPU: "1", MEMORY: "1000"}

    async def scenario(server: FakeApiServer) -> None:
        def shown(what: str) -> int:
            return int(nodes(server)["a100-0"]["status"]["allocatable"][what])

        def plain() -> Fleet:
            return fleet_of(options="hami: true\nvendors: nvidia\nlabels: gfd")

        fleet = plain()
        member = fleet.members["a100-0"]
        card = fleet.state(member).node.cards[0].uuid
        thing = asking_pod("p", "a100-0", card, asks=asked, phase="Running", bind_phase="success")
        async with running(tmp_path, fleet):
            server.put("pods", thing)
            await until(lambda: bool(member.pods))
            await command("fail", "a100-0:0")
            await server.wait_until(lambda: shown(MEMORY) == 81920 + 1000)
            server.put("pods", thing | {"metadata": thing["metadata"] | {"name": "q"}})
            await server.wait_until(lambda: shown(MEMORY) == 81920 + 2000)
            server.remove("pods", "q", "default")
            await server.wait_until(lambda: shown(MEMORY) == 81920 + 1000)
        before = writes(server)
        path = tmp_path / "f.yaml"
        path.write_text(FILE.replace("dra: nvidia", "labels: gfd"))
        _, out, _ = await command("doctor", str(path))
        assert "differ from the file" not in out
        async with running(tmp_path, plain()):
            assert shown(MEMORY) == 81920 + 1000
            assert writes(server) == before
            server.remove("pods", "p", "default")
            await server.wait_until(lambda: shown(MEMORY) == 81920)

    with_server(tmp_path, scenario)


def test_pods_that_come_and_go_write_nothing_of_a_node_with_a_fault_that_they_do_not_have(
    tmp_path: Path, command: Command
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of(options="hami: true\nvendors: nvidia\nlabels: gfd")
        member = fleet.members["a100-0"]
        card = fleet.state(member).node.cards[0].uuid
        async with running(tmp_path, fleet):
            await command("degrade", "a100-0")
            await server.wait_until(lambda: names.FAULTS in server.annotations("nodes", "a100-0"))
            before = writes(server)
            server.put("pods", asking_pod("p", "a100-0", card, phase="Running"))
            await until(lambda: bool(member.pods))
            server.remove("pods", "p", "default")
            await until(lambda: not member.pods and not fleet.changed)
            assert writes(server) == before

    with_server(tmp_path, scenario)


FAIL = Request("fail", {"targets": ["a100-1"]})


def test_what_is_asked_before_the_nodes_are_read_is_done_after(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with running(tmp_path):
            pass
        fleet, answers = fleet_of(), []
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            process = Running(fleet, kubernetes, Options(writes=0))

            async def ask() -> None:
                answers.append(await FleetCommands(process, tasks).run(FAIL))

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await tasks.start(process.run)
            await server.wait_until(lambda: names.FAULTS in server.annotations("nodes", "a100-1"))
            assert [answer["summary"] for answer in answers] == [["2 cards now unhealthy: a100-1"]]
            tasks.cancel_scope.cancel()

    with_server(tmp_path, scenario)


def test_what_is_asked_while_the_nodes_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_PATIENCE_SECONDS", 0)

    async def scenario(_: FakeApiServer) -> None:
        async with Kubernetes() as kubernetes, anyio.create_task_group() as tasks:
            commands = FleetCommands(Running(fleet_of(), kubernetes, Options()), tasks)
            with pytest.raises(StartError, match="hasn't read its nodes"):
                await commands.run(FAIL)

    with_server(tmp_path, scenario)


def test_scale_and_scenario_over_the_socket(tmp_path: Path, command: Command) -> None:
    drill = tmp_path / "drill.yaml"
    drill.write_text("length: forever\nsteps: [{stop-node: rack=a100-r1}]")

    async def scenario(server: FakeApiServer) -> None:
        async with running(tmp_path) as fleet:
            code, out, _ = await command("scale", "a100=4")
            assert code == 0
            assert out.startswith("a100: 3 nodes, now 4\n")
            await server.wait_until(lambda: len(nodes(server)) == 4)
            code, _, err = await command("scale", "b=4")
            assert (code, err) == (2, "hami-mock: there is no pool 'b': use one of a100\n")
            code, _, err = await command("scale", "a100=x")
            assert code == 2
            assert "it must be POOL=NUMBER" in err
            code, *_ = await command("scenario", "play", str(drill))
            assert code == 0
            await until(lambda: fleet.members["a100-2"].is_stopped)
            code, out, _ = await command("scenario", "stop")
            assert code == 0
            assert "stopped" in out
            assert not fleet.members["a100-2"].is_stopped

    with_server(tmp_path, scenario)


def test_down_ends_the_process_and_removes_exactly_what_it_made(
    tmp_path: Path, command: Command
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        server.put("nodes", {"metadata": {"name": "real"}})
        metadata = {"name": "other-0", "labels": {names.FLEET: "other"}}
        server.put("nodes", {"metadata": metadata})
        server.put(SLICE, {"metadata": {"name": "real-0"}, "spec": {}})
        for node in ("real", "a100-0"):
            metadata = {"name": f"on-{node}", "namespace": "default"}
            server.put("pods", {"metadata": metadata, "spec": {"nodeName": node}})
        before = {key for key in server.objects if key[2] != "on-a100-0"}
        async with running(tmp_path):
            await server.wait_until(lambda: sum(kind == SLICE for kind, *_ in server.objects) == 4)
            code, out, _ = await command("down", "--pods")
            assert (code, out) == (0, "deleted: 3 nodes, 3 slices, 1 pods\n")
            assert set(server.objects) == before
            code, out, _ = await command("status")
            assert "fleet test: its process isn't running here" in out

    with_server(tmp_path, scenario)


def test_down_works_without_a_process_and_keeps_pods(tmp_path: Path, command: Command) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with running(tmp_path):
            await server.wait_until(lambda: sum(kind == SLICE for kind, *_ in server.objects) == 3)
        metadata = {"name": "p", "namespace": "default"}
        server.put("pods", {"metadata": metadata, "spec": {"nodeName": "a100-0"}})
        (tmp_path / "fleet.sock").unlink(missing_ok=True)
        code, out, _ = await command("status", "-o", "json")
        assert json.loads(out)["pools"] == {"a100": {"nodes": 3, "ready": 0, "faulty": 0}}
        code, out, _ = await command("down")
        assert (code, out) == (0, "deleted: 3 nodes, 3 slices, 0 pods\n")
        assert [key[2] for key in server.objects] == ["p"]

    with_server(tmp_path, scenario)


@pytest.mark.parametrize("words", [("down",), ("fail", "all"), ("status",), ("doctor",)])
def test_the_socket_of_another_fleet_is_refused(
    words: tuple[str, ...], tmp_path: Path, command: Command
) -> None:
    async def scenario(server: FakeApiServer) -> None:
        async with running(tmp_path) as fleet:
            code, _, err = await command(*words, "--name", "other")
            assert code == 2
            assert "--name: the fleet at this socket is 'test', not 'other'" in err
            assert sorted(nodes(server)) == sorted(fleet.members)
            code, out, _ = await command("status")
            assert (code, out.splitlines()[0]) == (0, "fleet test")

    with_server(tmp_path, scenario)


def test_a_second_process_of_a_fleet_is_refused(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(FILE)

    async def scenario(_: FakeApiServer) -> None:
        async with running(tmp_path):
            code, _, err = await command("up", str(path))
            assert code == 1
            assert "another agent listens on it; is the fleet 'test' running already?" in err

    with_server(tmp_path, scenario)


def test_the_doctor_sees_that_nobody_plays_the_nodes(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(FILE)

    async def scenario(server: FakeApiServer) -> None:
        async with running(tmp_path):
            server.refuse = lambda line: 403 if "deployments" in line else None
            code, out, _ = await command("doctor", "-o", "json")
            assert code == 1
            (found,) = json.loads(out)
            assert found["where"] == "KWOK"
            assert found["what"].startswith("3 nodes were never ready")
        server.set_status("a100-1", allocatable={"nvidia.com/gpumem": "1"})
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        for thing in nodes(server).values():
            server.put("nodes", {**thing, "status": {**thing["status"], **ready}})
        before = writes(server)
        code, out, _ = await command("doctor", str(path), "-o", "json")
        changed = next(row for row in json.loads(out) if row["severity"] == "warning")
        assert changed["what"] == "1 differ from the file: a100-1: nvidia.com/gpumem"
        assert writes(server) == before

    with_server(tmp_path, scenario)


def test_the_doctor_reads_leases_and_hami_s_flags(tmp_path: Path, command: Command) -> None:
    async def scenario(server: FakeApiServer) -> None:
        for index in range(20):
            metadata = {
                "name": f"a100-{index}",
                "labels": {names.FLEET: "test"},
                "annotations": {names.KWOK_NODE: "fake"},
            }
            conditions = [{"type": "Ready", "status": "Unknown"}]
            server.put("nodes", {"metadata": metadata, "status": {"conditions": conditions}})
        spec = {"renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 40}
        lease = {"name": "a100-0", "namespace": "kube-node-lease"}
        server.put("leases", {"metadata": lease, "spec": spec})
        container = {"command": ["scheduler"], "args": ["--kube-qps=1"]}
        server.put(
            "deployments",
            {
                "metadata": {"name": "hami-scheduler", "namespace": "kube-system"},
                "spec": {"template": {"spec": {"containers": [container]}}},
            },
        )
        _, out, _ = await command("doctor", "-o", "json")
        told = {row["where"]: row["what"] for row in json.loads(out)}
        assert told["leases"].startswith("20 nodes aren't ready because their leases have expired")
        assert told["HAMi's scheduler"].startswith("with --kube-qps 1 its first pass over 20 nodes")

    with_server(tmp_path, scenario)


def test_a_dry_run_makes_nothing_and_shows_everything(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(FILE)

    async def scenario(server: FakeApiServer) -> None:
        code, out, _ = await command("up", str(path), "--dry-run", "-o", "json")
        assert code == 0
        plan = json.loads(out)
        assert (plan["nodes"], plan["cards"], plan["slices"]) == (3, 6, 3)
        assert plan["pools"][0]["node"]["kind"] == "Node"
        code, out, _ = await command("up", str(path), "--dry-run")
        assert "3 nodes with 6 cards, 3 ResourceSlices" in out
        assert not server.requests

    with_server(tmp_path, scenario)
