"""The doctor asks an API server about ResourceSlices and claims, and goes on without them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.cli.commands import run
from hami_mock.doctor.dra_found import CLAIMS, CLASSES, SLICES, TEMPLATES
from hami_mock.doctor.gathering import from_cluster
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.unit.builders import NODE
from tests.unit.doctor import dra_patients as made

Found = Any
OTHER = "other-node"


def gathered(
    folder: Path,
    node: str | None,
    pod: str | None,
    prepare: Callable[[FakeApiServer], None] | None = None,
) -> tuple[Found, list[str]]:
    """What is found, and what the server was asked for about DRA."""

    async def scenario() -> tuple[Found, list[str]]:
        async with api_server(folder) as server:
            for name in (NODE, OTHER):
                server.put("nodes", made.node(name))
                for each in made.slices(node=name):
                    own = {"metadata": {"name": f"slice-of-{name}"}}
                    server.put(SLICES, each | own)
            server.put("pods", made.pod())
            server.put(
                "pods",
                made.pod(nodeName=NODE) | {"metadata": {"name": "here", "namespace": "default"}},
            )
            server.put(CLAIMS, made.claim(made.request(memory="100Gi")))
            server.put(TEMPLATES, made.template())
            for each in made.CLASSES:
                server.put(CLASSES, each)
            if prepare:
                prepare(server)
            found = await from_cluster(node, pod)
            return found, [line for line in server.requests if line.split()[1] in ALL]

    return anyio.run(scenario)


ALL = (SLICES, CLASSES, CLAIMS, TEMPLATES)


def test_a_node_comes_with_its_slices_and_the_classes(tmp_path: Path) -> None:
    found, asked = gathered(tmp_path, NODE, None)
    assert asked == [f"list {SLICES}", f"list {CLASSES}"]
    assert [each.node for each in found.dra.slices] == [NODE]
    assert len(found.dra.classes) == len(made.CLASSES)
    assert (found.dra.claims, found.dra.templates, found.dra.lacks) == (None, None, {})


@pytest.mark.parametrize("pod", ["default/waiting", "default/here"])
def test_a_pod_comes_with_all_that_claims_are_judged_by(tmp_path: Path, pod: str) -> None:
    found, asked = gathered(tmp_path, None, pod)
    assert asked == [f"list {name}" for name in ALL]
    assert sorted(each.node for each in found.dra.slices) == sorted([NODE, OTHER])
    assert [*found.dra.claims] == ["default/mine"]
    assert [*found.dra.templates] == ["default/part"]


def test_a_user_who_may_not_list_is_told_the_verb_and_the_rest_goes_on(tmp_path: Path) -> None:
    def refuse(server: FakeApiServer) -> None:
        server.refuse = lambda line: 403 if line.split()[1] in (SLICES, CLAIMS) else None

    found, _ = gathered(tmp_path, None, "default/waiting", refuse)
    assert found.dra.slices is None
    assert [*found.dra.lacks] == [SLICES, CLAIMS]
    for name in (SLICES, CLAIMS):
        assert f"the role needs the verb list for {name}" in found.dra.lacks[name]
    assert found.dra.classes


def test_a_server_without_dra_is_no_error(tmp_path: Path) -> None:
    def refuse(server: FakeApiServer) -> None:
        server.refuse = lambda line: 404 if line.split()[1] in ALL else None

    found, _ = gathered(tmp_path, NODE, None, refuse)
    assert set(found.dra.lacks.values()) == {"the API server has no resource.k8s.io/v1"}
    assert found.nodes


def test_a_server_that_is_overloaded_just_then_is_no_error_either(tmp_path: Path) -> None:
    def refuse(server: FakeApiServer) -> None:
        server.refuse = lambda line: 503 if line.split()[1] in ALL else None

    found, _ = gathered(tmp_path, NODE, None, refuse)
    assert {*found.dra.lacks} == {SLICES, CLASSES}


def test_one_list_of_everything_is_read_from_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [
        made.node(), made.node(OTHER), made.pod(), *made.slices(), *made.CLASSES,
        made.claim(made.request(memory="100Gi")), made.template(),
    ]  # fmt: skip
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    code = run("doctor", ["-f", str(file), "-o", "json"])
    rows = json.loads(capsys.readouterr().out)
    assert code == 1
    by_subject = {row["subject"]: row for row in rows}
    assert by_subject[f"Node {NODE}"]["what"] == "2 devices in 1 ResourceSlice"
    assert "the largest device, hami-gpu-0" in by_subject["Pod default/waiting"]["what"]


def test_lists_of_one_kind_may_be_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = {
        "nodes": {"kind": "NodeList", "items": [made.node()]},
        "pods": {"kind": "PodList", "items": [made.agent(DRA="hami")]},
        "slices": {"kind": "ResourceSliceList", "items": []},
    }
    args = ["-o", "json"]
    for name, document in lists.items():
        (tmp_path / name).write_text(json.dumps(document))
        args += ["-f", str(tmp_path / name)]
    assert run("doctor", args) == 1
    rows = json.loads(capsys.readouterr().out)
    assert "ResourceSlices" in [row["where"] for row in rows]
