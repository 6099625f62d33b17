"""ResourceSlices of a fleet on a real API server: there, true when a card fails, and gone."""

from typing import Any

import pytest

from tests.e2e.harness.feature_gates import DRA
from tests.fleet.api import NODES, Api, Object, readiness
from tests.fleet.program import Fleet

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
FILE = """\
vendors: nvidia
pools:
  - {name: a, nodes: 5, dra: hami, nvidia: {cards: 8, model: A100-SXM4-80GB}}
  - {name: b, nodes: 1, nvidia: {cards: 1, model: T4}}
"""


@pytest.fixture(scope="module", autouse=True)
def running(api: Api, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("slices") / "fleet.yaml"
    file.write_text(FILE)
    fleet.start(file, "--writes", "0")
    api.wait("nodes", NODES, readiness, lambda seen: +seen == {"True": 6}, seconds=120)


def test_every_node_of_the_pool_with_a_profile_has_its_slice(api: Api, fleet: Fleet) -> None:
    _wait(api, fleet, {(f"a-{number}", 8, ()): 1 for number in range(5)})
    for each in api.all(SLICES, fleet.selector):
        assert each["spec"]["driver"] == "hami-core-gpu.project-hami.io"
        pool = each["spec"]["pool"]
        assert (pool["name"], pool["resourceSliceCount"]) == (each["spec"]["nodeName"], 1)
        (memory,) = {device["capacity"]["memory"]["value"] for device in each["spec"]["devices"]}
        assert memory == "80Gi"


def test_a_card_that_fails_gets_its_taint_and_loses_it(api: Api, fleet: Fleet) -> None:
    well = {(f"a-{number}", 8, ()): 1 for number in range(5)}
    fleet.run("fail", "a-3:nvidia/2", "--xid", "79")
    taint = (("hami-core-gpu.project-hami.io/xid", "79", "NoSchedule"),)
    # An API server without taints is told nothing of the card, or claims would get it.
    has_taints = int(api.get("/version")["minor"]) > DRA["DRADeviceTaints"]
    ill = {("a-3", 8, taint): 1} if has_taints else {("a-3", 7, ()): 1}
    _wait(api, fleet, {key: 1 for key in well if key[0] != "a-3"} | ill)
    fleet.run("recover", "a-3")
    _wait(api, fleet, well)


def test_a_slice_that_somebody_deletes_is_made_again(api: Api, fleet: Fleet) -> None:
    (old,) = (
        each["metadata"]
        for each in api.all(SLICES, fleet.selector)
        if each["spec"]["nodeName"] == "a-1"
    )
    api.delete(f"{SLICES}/{old['name']}")
    api.wait(
        "made again",
        SLICES,
        lambda each: (each["spec"]["nodeName"], each["metadata"]["uid"] != old["uid"]),
        lambda seen: seen["a-1", True] == 1,
        selector=fleet.selector,
        seconds=30,
    )


def test_down_leaves_no_slice_but_those_of_others(api: Api, fleet: Fleet) -> None:
    spec = {
        "driver": "example.com",
        "nodeName": "somebody-elses",
        "pool": {"name": "somebody-elses", "generation": 1, "resourceSliceCount": 1},
    }
    version = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    api.post(SLICES, {**version, "metadata": {"name": "somebody-elses"}, "spec": spec})
    fleet.run("down")
    assert fleet.end() == 0
    assert api.names(SLICES) == {"somebody-elses"}
    assert api.names(NODES) == set()


def _wait(api: Api, fleet: Fleet, wanted: dict[Any, int]) -> None:
    """Wait until there are slices with so many devices and these taints."""

    def see(each: Object) -> Any:
        devices = each["spec"]["devices"]
        taints = [taint for device in devices for taint in device.get("taints", ())]
        told = tuple((taint["key"], taint["value"], taint["effect"]) for taint in taints)
        return each["spec"]["nodeName"], len(devices), told

    api.wait(
        "slices",
        SLICES,
        see,
        lambda seen: +seen == wanted,
        selector=fleet.selector,
        seconds=60,
    )
