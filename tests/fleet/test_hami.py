"""100 pods through HAMi's whole protocol: assigned, locked, bound, answered by the fleet, unlocked.

Once with HAMi's own scheduler, where it can be had, and once with its part played by the test.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hami_mock.fleet.sandbox import Sandbox
from tests.fleet.api import NODES, PODS, Api, Object, phase, readiness
from tests.fleet.hami_scheduler import hami_or_skip
from tests.fleet.played import BIND_PHASE, assign, cards, lock_of
from tests.fleet.pods import pod
from tests.fleet.program import Fleet

FILE = """\
hami: true
nvidia: {cards: 0}
mlu: {cards: 0}
iluvatar: {cards: 0}
ascend: {cards: 0}
pools:
  - {name: a, nodes: 20, nvidia: {cards: 8, model: A100-SXM4-80GB}}
"""
COUNT = 100
WANTS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 16000, "nvidia.com/gpucores": 20}


@pytest.fixture(scope="module", autouse=True)
def running(api: Api, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("hami") / "fleet.yaml"
    file.write_text(FILE)
    fleet.start(file, "--writes", "0")
    api.wait("nodes", NODES, readiness, lambda seen: +seen == {"True": 20}, seconds=120)


@pytest.fixture
def hami(cluster: Sandbox, tmp_path: Path) -> Iterator[str]:
    """HAMi's scheduler and the kube-scheduler that asks it; yields what a pod calls them."""
    with hami_or_skip(cluster, tmp_path) as name:
        yield name


def test_100_pods_with_hamis_scheduler(api: Api, hami: str) -> None:
    for number in range(COUNT):
        api.post(PODS, pod(f"real-{number}", WANTS, schedulerName=hami))
    _all_served(api, "app=real")


def test_100_pods_of_a_scheduler_that_does_as_hamis(api: Api) -> None:
    nodes = {node["metadata"]["name"]: cards(node) for node in api.all(NODES)}
    for first in range(0, COUNT, len(nodes)):
        for number, (node, own) in enumerate(nodes.items(), first):
            assign(api, _played(f"played-{number}"), node, own[first % len(own)])
        # A node is locked until its pod has been served: only then comes the next.
        api.wait("unlocked", NODES, lock_of, lambda seen: set(+seen) == {""}, seconds=60)
    _all_served(api, "app=played")


def test_another_pods_lock_is_left_alone(api: Api) -> None:
    (card, *_) = cards(api.get(f"{NODES}/a-5"))
    assign(api, _played("robbed-0"), "a-5", card, owner="somebody-else")
    _wait_for_phase(api, "app=robbed", {"success"})
    assert lock_of(api.get(f"{NODES}/a-5")).endswith(",default,somebody-else")


def _played(name: str) -> Object:
    return pod(name, WANTS, schedulerName="played")


def _all_served(api: Api, selector: str) -> None:
    api.wait(
        "running", PODS, phase, lambda s: +s == {"Running": COUNT}, selector=selector, seconds=180
    )
    _wait_for_phase(api, selector, {"success"})
    api.wait("unlocked", NODES, lock_of, lambda seen: set(+seen) == {""}, seconds=30)


def _wait_for_phase(api: Api, selector: str, wanted: set[str]) -> None:
    def see(seen: Object) -> str:
        return str(seen["metadata"]["annotations"].get(BIND_PHASE, ""))

    api.wait(BIND_PHASE, PODS, see, lambda seen: {*+seen} == wanted, selector=selector, seconds=60)
