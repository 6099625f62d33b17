"""`fleet up --bind stages`: our process keeps the nodes, and KWOK's Stages alone run their pods."""

import json
from pathlib import Path

import pytest

from hami_mock.fleet.sandbox import Sandbox
from hami_mock.fleet.stages import Bind
from tests.fleet.api import NODES, PODS, Api, phase, readiness
from tests.fleet.played import BIND_PHASE, assign, cards, lock_of
from tests.fleet.pods import pod
from tests.fleet.program import Fleet

FILE = """\
hami: true
vendors: nvidia
pools:
  - {name: a, nodes: 4, nvidia: {cards: 8, model: A100-SXM4-80GB}}
"""


@pytest.fixture(scope="module")
def bind() -> Bind:
    return Bind.STAGES


@pytest.fixture(scope="module", autouse=True)
def running(api: Api, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("stages") / "fleet.yaml"
    file.write_text(FILE)
    fleet.start(file, "--writes", "0", "--bind", "stages")
    api.wait("nodes", NODES, readiness, lambda seen: +seen == {"True": 4}, seconds=120)


def test_kwok_alone_runs_and_ends_a_pod_that_hami_has_assigned(api: Api, cluster: Sandbox) -> None:
    (card, *_) = cards(api.get(f"{NODES}/a-1"))
    wants = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 16000}
    # It is locked for another, which nobody of ours would undo.
    made = pod("short-0", wants, duration="2s", schedulerName="played")
    assign(api, made, "a-1", card, owner="somebody-else")
    api.wait("over", PODS, phase, lambda seen: +seen == {"Succeeded": 1}, seconds=60)
    api.wait("unlocked", NODES, lock_of, lambda seen: set(+seen) == {""}, seconds=30)
    assert api.get(f"{PODS}/short-0")["metadata"]["annotations"][BIND_PHASE] == "success"
    assert _writers(cluster, "pods", "short-0") == {"admin", "kwok"}


def test_the_nodes_are_still_ours(api: Api, fleet: Fleet) -> None:
    fleet.run("fail", "a-2:nvidia/0", "--xid", "79")
    api.wait(
        "a card less",
        NODES,
        lambda node: node["status"]["allocatable"]["nvidia.com/gpu"],
        lambda seen: +seen == {"80": 3, "70": 1},
        seconds=30,
    )
    assert "binding" not in fleet.status()["parts"]


def _writers(cluster: Sandbox, resource: str, name: str) -> set[str]:
    """Who has written an object, by the API server's audit log."""
    entries = map(json.loads, Path(cluster.audit_log).read_text().splitlines())
    return {
        entry["user"]["username"]
        for entry in entries
        if entry["objectRef"].get("name") == name and entry["objectRef"]["resource"] == resource
    }
