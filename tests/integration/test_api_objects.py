"""Kubernetes, with the objects of any API group, and a node's status."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from hami_mock.errors import Away, Conflict, Invalid, NotAllowed, NotThere
from tests.integration.fake_api_server import FakeApiServer, api_server

Scenario = Callable[[FakeApiServer, Kubernetes], Awaitable[None]]
CAPACITY = "/status/capacity/example.com~1memory"


def run(folder: Path, scenario: Scenario) -> None:
    async def with_server() -> None:
        with anyio.fail_after(60):
            async with api_server(folder) as server, Kubernetes() as kubernetes:
                node = {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "2"}}}
                server.put("nodes", node)
                await scenario(server, kubernetes)

    anyio.run(with_server)


def resource_slice(name: str, node: str = "n1", driver: str = "d") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "driver": driver}}


def names(things: list[dict[str, Any]]) -> list[str]:
    return [thing["metadata"]["name"] for thing in things]


def test_a_nodes_status_is_changed_by_operations(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        operations = [{"op": "add", "path": CAPACITY, "value": "1572864"}]
        node = await kubernetes.patch_node_status("n1", operations)
        assert node["status"]["capacity"] == {"cpu": "2", "example.com/memory": "1572864"}
        assert server.requests == ["patch nodes/status n1"]
        assert server.writes[0].operations == tuple(operations)
        assert kubernetes.writes == 1
        await kubernetes.patch_node_status("n1", [{"op": "remove", "path": CAPACITY}])
        assert (await kubernetes.node("n1"))["status"]["capacity"] == {"cpu": "2"}

    run(tmp_path, scenario)


def test_operations_that_do_not_apply_are_invalid_and_change_nothing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        operations = [
            {"op": "add", "path": CAPACITY, "value": "1"},
            {"op": "test", "path": "/status/capacity/cpu", "value": "3"},
        ]
        with pytest.raises(Invalid, match="patch nodes/status n1: testing value"):
            await kubernetes.patch_node_status("n1", operations)
        assert (await kubernetes.node("n1"))["status"]["capacity"] == {"cpu": "2"}

    run(tmp_path, scenario)


def test_who_may_not_write_a_status_learns_which_rule_is_missing(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.refuse = lambda line: 403 if "status" in line else None
        with pytest.raises(NotAllowed, match=r"verb patch for nodes/status \(apiGroups: \[\"\"\]"):
            await kubernetes.patch_node_status("n1", [])

    run(tmp_path, scenario)


def test_the_server_tells_its_version(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        server.version = "v1.36.4-eks-1"
        assert await kubernetes.server_version() == (1, 36)
        server.version = "banana"
        with pytest.raises(Away, match="get version: 'banana' is not a version"):
            await kubernetes.server_version()

    run(tmp_path, scenario)


def test_an_object_of_a_group_is_made_read_changed_and_deleted(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        made = await kubernetes.create(RESOURCE_SLICES, resource_slice("s1"))
        assert made["spec"]["driver"] == "d"
        assert "status" not in made
        with pytest.raises(Conflict, match=r"create resourceslices s1: .*already exists"):
            await kubernetes.create(RESOURCE_SLICES, resource_slice("s1"))
        read = await kubernetes.get(RESOURCE_SLICES, "s1")
        assert read == made

        changed = await kubernetes.update(
            RESOURCE_SLICES, {**read, "spec": {**read["spec"], "driver": "e"}}
        )
        assert server.objects["resourceslices", "", "s1"]["spec"]["driver"] == "e"
        with pytest.raises(Conflict, match="update resourceslices s1"):
            await kubernetes.update(RESOURCE_SLICES, read)
        patched = await kubernetes.patch(RESOURCE_SLICES, "s1", {"spec": {"driver": "f"}})
        assert patched["spec"] == {"nodeName": "n1", "driver": "f"} != changed["spec"]

        await kubernetes.delete(RESOURCE_SLICES, "s1")
        with pytest.raises(NotThere, match="delete resourceslices s1"):
            await kubernetes.delete(RESOURCE_SLICES, "s1")
        with pytest.raises(NotThere, match="get deviceclasses c"):
            await kubernetes.get(DEVICE_CLASSES, "c")

    run(tmp_path, scenario)


def test_the_server_may_choose_the_name(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        wish = {**resource_slice(""), "metadata": {"generateName": "n1-d-"}}
        made = await kubernetes.create(RESOURCE_SLICES, wish)
        assert made["metadata"]["name"].startswith("n1-d-")

    run(tmp_path, scenario)


def test_what_lives_in_a_namespace_is_found_there(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        claim = {"metadata": {"name": "c", "namespace": "a"}}
        made = await kubernetes.create(RESOURCE_CLAIMS, claim)
        assert made["status"] == {}
        status = {**made, "status": {"devices": []}}
        await kubernetes.update(RESOURCE_CLAIMS, status, "status")
        read = await kubernetes.get(RESOURCE_CLAIMS, "c", "a")
        assert read["status"] == {"devices": []}
        with pytest.raises(NotThere, match="get resourceclaims b/c"):
            await kubernetes.get(RESOURCE_CLAIMS, "c", "b")
        server.answer = lambda _: b'{"metadata": {"name": "c", "resourceVersion": "7"}}'
        with pytest.raises(Away, match=r"metadata\.namespace is missing"):
            await kubernetes.get(RESOURCE_CLAIMS, "c", "a")

    run(tmp_path, scenario)


def test_a_list_and_a_watch_have_what_was_selected(tmp_path: Path) -> None:
    async def scenario(server: FakeApiServer, kubernetes: Kubernetes) -> None:
        for thing in (
            resource_slice("s1"),
            resource_slice("s2", node="n2"),
            resource_slice("s3", driver="x"),
        ):
            server.put("resourceslices", thing)
        fields = "spec.nodeName=n1,spec.driver=d"
        assert names(await kubernetes.list_all(RESOURCE_SLICES)) == ["s1", "s2", "s3"]
        assert names(await kubernetes.list_all(RESOURCE_SLICES, fields)) == ["s1"]
        async with aclosing(kubernetes.watch(RESOURCE_SLICES, fields)) as changes:
            first = await anext(changes)
            assert first.is_all
            assert names(first.things) == ["s1"]
            server.put("resourceslices", resource_slice("s2", node="n2", driver="y"))
            server.put("resourceslices", resource_slice("s4"))
            server.remove("resourceslices", "s4")
            added, gone = await anext(changes), await anext(changes)
            assert names(added.things) == names(gone.things) == ["s4"]
            assert (added.is_gone, gone.is_gone) == (False, True)

    run(tmp_path, scenario)
