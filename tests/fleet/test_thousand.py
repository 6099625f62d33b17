"""A thousand nodes through a day: made, used, broken, forgotten by their process, and gone.

The tests build on each other, in this order: making the nodes takes longest.
"""

import json
import signal
import time
from pathlib import Path

import pytest

from hami_mock.fleet.sandbox import Sandbox
from hami_mock.kit.quantities import quantity
from tests.fleet.api import LEASES, NODES, PODS, Api, Object, phase, readiness
from tests.fleet.pods import pod
from tests.fleet.program import Fleet

POOLS = Path(__file__).with_name("pools.yaml")
ALLOCATABLE = {
    "a100": {
        "nvidia.com/gpu": "80",
        "nvidia.com/gpucores": "800",
        "nvidia.com/gpumem": "655360",
        "nvidia.com/gpumem-percentage": "800",
        "cpu": "64",
        "memory": "512Gi",
    },
    "l4": {
        "nvidia.com/gpu": "40",
        "nvidia.com/gpucores": "400",
        "nvidia.com/gpumem": "92136",
        "nvidia.com/gpumem-percentage": "400",
        "cpu": "32",
        "memory": "128Gi",
    },
    "team": {
        "nvidia.com/gpu": "20",
        "nvidia.com/gpucores": "200",
        "nvidia.com/gpumem": "30720",
        "nvidia.com/gpumem-percentage": "200",
        "cpu": "64",
        "memory": "512Gi",
    },
    "npu": {
        "huawei.com/Ascend910B3": "32",
        "huawei.com/Ascend910B3-core": "800",
        "huawei.com/Ascend910B3-memory": "524288",
        "cpu": "64",
        "memory": "512Gi",
    },
    "empty": {"cpu": "64", "memory": "512Gi"},
}
COUNTS = {"a100": 500, "l4": 300, "team": 98, "npu": 100, "empty": 2}
POOL = "hami-mock.io/pool"
RACK = "hami-mock.io/rack"
IDLE_S = 30.0


@pytest.fixture(scope="module", autouse=True)
def running(fleet: Fleet) -> None:
    fleet.start(POOLS, "--writes", "0")


def test_every_node_is_ready(api: Api, fleet: Fleet) -> None:
    _wait_for_nodes(api, "1,000 nodes ready", fleet.selector, {"True": 1000})


def test_every_pool_has_what_its_cards_give(api: Api, fleet: Fleet) -> None:
    found: dict[str, int] = {}
    for node in api.all(NODES, fleet.selector):
        pool = node["metadata"]["labels"][POOL]
        found[pool] = found.get(pool, 0) + 1
        given = {k: quantity(v, 1) for k, v in node["status"]["allocatable"].items()}
        wanted = {key: quantity(value, 1) for key, value in ALLOCATABLE[pool].items()}
        assert given == {**wanted, "pods": 110}, node["metadata"]["name"]
    assert found == COUNTS


def test_labels_and_taints_of_a_pool_are_its_nodes(api: Api) -> None:
    node = api.get(f"{NODES}/team-97")
    assert node["metadata"]["labels"]["example.com/team"] == "vision"
    taints = [taint for taint in node["spec"]["taints"] if taint["key"] == "example.com/team"]
    assert taints == [{"key": "example.com/team", "value": "vision", "effect": "NoSchedule"}]


def test_500_pods_run_and_go(api: Api) -> None:
    wants = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 16000, "nvidia.com/gpucores": 20}
    for number in range(500):
        api.post(PODS, pod(f"wave-{number}", wants, duration="5s"))
    ran = "app=wave"
    api.wait(
        "500 pods placed and run",
        PODS,
        lambda seen: bool(seen["spec"].get("nodeName")) and phase(seen),
        lambda seen: seen["Running"] + seen["Succeeded"] == 500,
        selector=ran,
        seconds=300,
    )
    _wait_for_pods(api, {"Succeeded": 500})
    for each in api.all(PODS, ran):
        assert each["spec"]["nodeName"].startswith(("a100-", "l4-")), "a taint wasn't respected"
    api.delete(PODS, labelSelector=ran)
    _wait_for_pods(api, {})


def test_a_rack_fails_and_comes_back(api: Api, fleet: Fleet) -> None:
    rack, others = f"{RACK}=a100-r7", f"{fleet.selector},{RACK}!=a100-r7"
    fleet.run("stop-node", "rack=a100-r7")
    _wait_for_nodes(api, "the rack is down", rack, {"Unknown": 20})
    _wait_for_nodes(api, "the others are up", others, {"True": 980})
    fleet.run("start-node", "rack=a100-r7")
    _wait_for_nodes(api, "the rack is up", rack, {"True": 20})


def test_cards_that_fail_are_not_allocatable(api: Api, fleet: Fleet) -> None:
    fleet.run("fail", "l4-1?:nvidia/0", "--xid", "79")
    _wait_for_slots(api, {"40": 290, "30": 10})


def test_nothing_is_written_where_nothing_happens(cluster: Sandbox) -> None:
    # What the last test changed is written; from here on there is nothing to do.
    since = len(_writes(cluster))
    time.sleep(IDLE_S)
    later = _writes(cluster)[since:]
    idle = [name for name in later if not name.startswith("npu-")]
    assert not idle, f"{len(idle)} writes to nodes that don't change, such as {idle[:3]}"
    # Each of them reports once in half a minute.
    assert 80 <= len(later) <= 220


def test_a_killed_process_finds_its_nodes(api: Api, fleet: Fleet, cluster: Sandbox) -> None:
    before = {node["metadata"]["name"]: node["metadata"]["uid"] for node in api.all(NODES)}
    assert fleet.end(signal.SIGKILL) == -signal.SIGKILL
    since = len(_writes(cluster))
    fleet.start(POOLS, "--writes", "0")
    # It obeys when it has read all nodes, and knows what is wrong with them.
    fleet.wait_until_settled()
    fleet.run("recover", "l4-10:nvidia/0")
    _wait_for_slots(api, {"40": 291, "30": 9})
    after = {node["metadata"]["name"]: node["metadata"]["uid"] for node in api.all(NODES)}
    assert after == before
    written = {name for name in _writes(cluster)[since:] if not name.startswith("npu-")}
    assert written == {"l4-10"}


def test_a_deleted_node_is_made_again(api: Api) -> None:
    api.delete(f"{NODES}/a100-3")
    _wait_for_nodes(api, "made again", f"{POOL}=a100", {"True": 500})


def test_down_leaves_nothing(api: Api, fleet: Fleet) -> None:
    other = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "somebody-elses"}}
    api.post(NODES, other)
    assert fleet.end() == 0
    fleet.run("down")
    _wait_for_nodes(api, "all gone", fleet.selector, {})
    assert api.names(NODES) == {"somebody-elses"}
    # The controller manager removes what belonged to them, some time later.
    api.wait("their leases gone", LEASES, lambda _: "left", lambda seen: not +seen, seconds=120)


def _wait_for_nodes(api: Api, what: str, selector: str, wanted: dict[str, int]) -> None:
    api.wait(what, NODES, readiness, lambda seen: +seen == wanted, selector=selector, seconds=120)


def _wait_for_pods(api: Api, wanted: dict[str, int]) -> None:
    api.wait("pods", PODS, phase, lambda seen: +seen == wanted, selector="app=wave", seconds=180)


def _wait_for_slots(api: Api, wanted: dict[str, int]) -> None:
    def see(node: Object) -> str:
        return str(node["status"]["allocatable"]["nvidia.com/gpu"])

    api.wait("slots", NODES, see, lambda seen: +seen == wanted, selector=f"{POOL}=l4", seconds=30)


def _writes(cluster: Sandbox) -> list[str]:
    """The nodes that the fleet's process has written so far, one for each write."""
    found = []
    for line in cluster.audit_log.read_text().splitlines():
        entry = json.loads(line)
        what = entry["objectRef"]
        if entry["user"]["username"] == "fleet" and what["resource"] == "nodes":
            found.append(what.get("name", ""))
    return found
