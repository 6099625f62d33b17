"""What a fleet writes again and again, and its ResourceSlices."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.cluster import kubernetes as kubernetes_module
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.fleet import handshakes as handshakes_module
from hami_mock.fleet import names
from hami_mock.fleet import slices as slices_module
from hami_mock.fleet.budget import Budget
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.handshakes import Handshakes
from hami_mock.fleet.slices import Slices
from hami_mock.kit.concurrency import Backoff
from tests.integration.fake_api_server import FakeApiServer
from tests.integration.fleet_rig import with_server, writes
from tests.integration.waiting import until
from tests.unit.fleet.rig import A100, fleet_of

ILUVATAR = "{name: ilu, nodes: 4, vendors: iluvatar, iluvatar: {cards: 2}}"
HANDSHAKE = "hami.io/node-handshake-MR-V100"
DRA = "dra: nvidia\nvendors: nvidia"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_module, "Backoff", lambda: Backoff(first=0.01, longest=0.1))
    monkeypatch.setattr(handshakes_module, "REPORT_INTERVAL", timedelta(seconds=0.6))
    monkeypatch.setattr(slices_module, "_REST_SECONDS", 0.01)


def put(server: FakeApiServer, fleet: Fleet) -> None:
    """Let the nodes of a fleet be there."""
    for name, member in fleet.members.items():
        metadata = {"name": name, "labels": {names.FLEET: fleet.name}, "uid": f"uid-{name}"}
        server.put("nodes", {"metadata": metadata})
        member.is_there = True


async def run_while(part: Any, condition: Any) -> None:
    async with anyio.create_task_group() as tasks:
        await tasks.start(part.run)
        await condition()
        tasks.cancel_scope.cancel()


def test_each_node_reports_once_in_a_round_and_not_all_at_once(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of(ILUVATAR, A100)
        put(server, fleet)
        async with Kubernetes() as kubernetes:
            part = Handshakes(fleet, kubernetes, Budget(0))
            await run_while(part, lambda: until(lambda: part.round_seconds > 0))
        reported = [write.name for write in server.writes]
        assert reported[:4] == [f"ilu-{index}" for index in range(4)]
        # The next round may have begun.
        assert max(map(reported.count, reported)) <= 2
        value = server.annotations("nodes", "ilu-0")[HANDSHAKE]
        assert re.match(r"Reported_\d{4}", value)

    with_server(tmp_path, scenario)


def test_nvidia_pools_write_nothing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of()
        put(server, fleet)
        async with Kubernetes() as kubernetes:
            part = Handshakes(fleet, kubernetes, Budget(0))
            with anyio.fail_after(5):
                async with anyio.create_task_group() as tasks:
                    await tasks.start(part.run)  # it returns: there is nobody to report
            assert part.status()["nodes"] == 0
        assert writes(server) == 0

    with_server(tmp_path, scenario)


def test_who_is_stopped_or_has_lost_all_cards_reports_nothing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of(ILUVATAR)
        put(server, fleet)
        fleet.act("stop-node", fleet.find(["ilu-0"]))
        fleet.act("lose", fleet.find(["ilu-1"]))
        async with Kubernetes() as kubernetes:
            part = Handshakes(fleet, kubernetes, Budget(0))
            await run_while(part, lambda: server.wait_until(lambda: len(server.writes) >= 4))
        assert {write.name for write in server.writes} == {"ilu-2", "ilu-3"}

    with_server(tmp_path, scenario)


def slices(server: FakeApiServer) -> dict[str, Any]:
    return {name: each for (kind, _, name), each in server.objects.items() if kind == SLICES}


SLICES = "resourceslices"


def test_each_node_gets_its_slices_and_what_is_wrong_shows_in_them(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of(options=DRA)
        put(server, fleet)
        async with Kubernetes() as kubernetes:

            async def watched() -> None:
                await server.wait_until(lambda: len(slices(server)) == 3)
                made = slices(server)["a100-0-gpu.nvidia.com-0"]
                assert made["metadata"]["labels"] == {names.FLEET: "test"}
                assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-a100-0"
                assert len(made["spec"]["devices"]) == 2
                before = writes(server)
                fleet.act("fail", fleet.find(["a100-0:1"]), {"xid": 79})
                await server.wait_until(lambda: bool(_taints(slices(server), "a100-0")))
                assert _taints(slices(server), "a100-0") == ["79"]
                fleet.act("recover", fleet.find(["all"]))
                await server.wait_until(lambda: not _taints(slices(server), "a100-0"))
                assert writes(server) == before + 2

            await run_while(Slices(fleet, kubernetes, Budget(0)), watched)

    with_server(tmp_path, scenario)


def _taints(found: dict[str, Any], node: str) -> list[str]:
    devices = found[f"{node}-gpu.nvidia.com-0"]["spec"]["devices"]
    return [taint["value"] for device in devices for taint in device.get("taints", ())]


def test_slices_that_are_right_are_left_and_others_are_put_right(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of(options=DRA)
        put(server, fleet)

        async def made() -> None:
            await server.wait_until(lambda: len(slices(server)) == 3)

        async with Kubernetes() as kubernetes:
            await run_while(Slices(fleet, kubernetes, Budget(0)), made)
            before = writes(server)
            again = Slices(fleet, kubernetes, Budget(0))

            async def kept() -> None:
                await server.wait_until(lambda: again.status()["nodes"] == 3)
                assert writes(server) == before
                # Twice: the first time it may still be looking at this node.
                for _ in range(2):
                    server.remove(SLICES, "a100-1-gpu.nvidia.com-0")
                    await made()

            await run_while(again, kept)

    with_server(tmp_path, scenario)


def test_a_slice_that_goes_while_nobody_watches_is_made_again(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of(options=DRA)
        put(server, fleet)
        async with Kubernetes() as kubernetes:
            part = Slices(fleet, kubernetes, Budget(0))

            async def watched() -> None:
                await until(lambda: part.status()["slices"] == 3)
                server.hold_events = True
                server.remove(SLICES, "a100-1-gpu.nvidia.com-0")
                server.forget_history = True
                server.end_watches()
                await server.wait_until(lambda: len(slices(server)) == 3)

            await run_while(part, watched)

    with_server(tmp_path, scenario)


def test_slices_of_a_driver_that_the_file_no_longer_names_go(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        before = fleet_of("{name: a, nodes: 1}", "{name: b, nodes: 1}", options=DRA)
        put(server, before)
        async with Kubernetes() as kubernetes:

            async def made() -> None:
                await server.wait_until(lambda: len(slices(server)) == 2)

            await run_while(Slices(before, kubernetes, Budget(0)), made)
            rows = "{name: a, nodes: 1, dra: hami}", "{name: b, nodes: 1}"
            fleet = fleet_of(*rows, options="vendors: nvidia")
            put(server, fleet)

            async def changed() -> None:
                await server.wait_until(
                    lambda: [*slices(server)] == ["a-0-hami-core-gpu.project-hami.io-0"]
                )

            await run_while(Slices(fleet, kubernetes, Budget(0)), changed)

    with_server(tmp_path, scenario)


def test_slices_go_with_their_nodes(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer) -> None:
        fleet = fleet_of(options=DRA)
        put(server, fleet)
        async with Kubernetes() as kubernetes:

            async def scaled() -> None:
                await server.wait_until(lambda: len(slices(server)) == 3)
                fleet.scale("a100", 1)
                await server.wait_until(lambda: len(slices(server)) == 1)
                assert [*slices(server)] == ["a100-0-gpu.nvidia.com-0"]

            await run_while(Slices(fleet, kubernetes, Budget(0)), scaled)

    with_server(tmp_path, scenario)
