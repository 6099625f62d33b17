import json
from pathlib import Path
from typing import Any, Self

import anyio
import pytest

from hami_mock.cluster.resources import Resource
from hami_mock.doctor.gathering import Gathered, from_cluster, from_files, name_of
from hami_mock.doctor.pod_object import PodObject
from hami_mock.errors import Away, ClusterError, NotAllowed, NotThere, UsageError
from tests.unit.builders import problems_of
from tests.unit.doctor.patients import assigned, node, pod


class FakeCluster:
    """An API server with one node and a few pods."""

    node_document = node(annotations={"hami.io/mutex.lock": "2026-11-15T12:00:00Z,default,locker"})
    pods = (
        pod(name="here", nodeName="n1"),
        pod(name="new"),
        pod(name="assigned", annotations=assigned()),
        pod(name="locker"),
    )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def node(self, name: str) -> dict[str, Any]:
        if name != "n1":
            raise NotThere(f"can't get nodes {name}")
        return self.node_document

    async def pod(self, namespace: str, name: str) -> dict[str, Any]:
        for each in self.pods:
            if PodObject.read(each).full_name == f"{namespace}/{name}":
                return each
        raise NotThere(f"can't get pods {namespace}/{name}")

    async def list_all(self, resource: Resource, fields: str = "") -> list[dict[str, Any]]:
        raise NotThere(f"can't list {resource}")

    async def nodes(self) -> list[dict[str, Any]]:
        return [self.node_document]

    async def pods_on(self, node_name: str = "") -> list[dict[str, Any]]:
        return [
            each for each in self.pods if not node_name or each["spec"].get("nodeName") == node_name
        ]


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hami_mock.cluster.kubernetes.Kubernetes", FakeCluster)


def names(found: Gathered) -> tuple[list[str], list[str], list[str]]:
    nodes = [name_of(each) for each in found.nodes]
    return nodes, [each.name for each in found.pods], [each.name for each in found.around]


def test_a_node_comes_with_its_pods_and_the_one_of_its_lock() -> None:
    found = anyio.run(from_cluster, "n1", None)
    assert names(found) == (["n1"], [], ["here", "locker"])
    assert found.node_pods == found.around


@pytest.mark.parametrize("variable", ["NODE_NAME", ""])
def test_the_node_is_this_one_unless_it_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "n1")
    if variable:
        monkeypatch.setenv(variable, "n1")
    assert names(anyio.run(from_cluster, None, None))[0] == ["n1"]


@pytest.mark.parametrize(
    ("pod_name", "nodes"),
    [("default/here", ["n1"]), ("assigned", ["n1"]), ("default/new", [])],
)
def test_a_pod_comes_with_the_node_that_it_is_for(pod_name: str, nodes: list[str]) -> None:
    found = anyio.run(from_cluster, None, pod_name)
    assert names(found)[:2] == (nodes, [pod_name.removeprefix("default/")])


def test_a_pod_that_is_placed_nowhere_comes_with_all_nodes_and_pods_for_the_numbers() -> None:
    found = anyio.run(from_cluster, None, "new")
    assert names(found) == ([], ["new"], ["here", "new", "assigned", "locker"])
    assert [name_of(each) for each in found.candidates] == ["n1"]


def test_a_pod_that_is_placed_nowhere_is_looked_at_with_the_node_that_was_named() -> None:
    assert names(anyio.run(from_cluster, "n1", "new"))[:2] == (["n1"], ["new"])


@pytest.mark.parametrize(
    ("node_name", "pod_name"), [("n2", None), ("n1", "gone"), ("n1", "a/b/c"), ("n1", "/b")]
)
def test_what_is_not_there_is_the_users_mistake(node_name: str, pod_name: str | None) -> None:
    with pytest.raises(UsageError):
        anyio.run(from_cluster, node_name, pod_name)


def test_a_lock_of_a_pod_that_is_gone_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeCluster, "pods", ())
    assert names(anyio.run(from_cluster, "n1", None)) == (["n1"], [], [])


def test_an_api_server_that_is_away_is_not_the_users_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def away(*_: object) -> None:
        raise Away("can't get nodes n1")

    monkeypatch.setattr(FakeCluster, "node", away)
    with pytest.raises(Away):
        anyio.run(from_cluster, "n1", None)


@pytest.mark.parametrize(
    ("variables", "error", "refusal"),
    [
        ({}, None, ""),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None, ""),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, NotAllowed("the role needs"), "the role needs"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, Away("gone"), ""),
        # Who has chosen so has no use for the right.
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HAMI_MOCK_UNITS": "plugin"}, NotAllowed(""), ""),
        ({"KUBERNETES_SERVICE_HOST": "1", "HAMI_MOCK_DEVICE_PLUGINS": "off"}, NotAllowed(""), ""),
        # Whose rights these are, nobody knows: elsewhere they are the user's.
        ({}, NotAllowed("the role needs"), ""),
    ],
)
def test_in_a_pod_it_is_tried_whether_the_status_may_be_written(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    error: ClusterError | None,
    refusal: str,
) -> None:
    async def check(*_: object) -> None:
        if error:
            raise error

    monkeypatch.setattr(FakeCluster, "check_node_status", check, raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert anyio.run(from_cluster, "n1", None).refusal == refusal


def files(folder: Path, *documents: dict[str, Any]) -> list[str]:
    paths = [folder / f"{i}.json" for i, _ in enumerate(documents)]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document))
    return [str(path) for path in paths]


def test_of_many_pods_in_files_those_count_that_ask_for_devices(tmp_path: Path) -> None:
    paths = files(tmp_path, node(), pod(), pod({"cpu": "1"}, name="p2"))
    assert names(from_files(paths, None, None)) == (["n1"], ["p1"], ["p1", "p2"])
    assert names(from_files(paths, "n1", "p2"))[:2] == (["n1"], ["p2"])
    assert names(from_files(paths[2:], None, None))[1] == ["p2"]
    assert from_files(paths, None, None).node_pods is None


def test_names_that_are_in_no_file(tmp_path: Path) -> None:
    paths = files(tmp_path, node(), pod())
    (problem,) = problems_of(lambda: from_files(paths, "n2", None))
    assert problem.startswith("there is no node 'n2' in ")
    (problem,) = problems_of(lambda: from_files(paths, None, "x/p1"))
    assert problem.startswith("--pod: there is no pod 'x/p1' in ")
