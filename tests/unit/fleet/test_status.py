"""What a fleet says of itself."""

from hami_mock.fleet.status import fleet_status
from tests.unit.fleet.rig import A100, MLU, fleet_of, pod


def test_pools_are_summed_up() -> None:
    fleet = fleet_of(A100, MLU)
    for name in ("a100-0", "a100-1"):
        fleet.members[name].is_there = fleet.members[name].is_ready = True
    fleet.members["a100-0"].pods = {("default", "p"): pod("p", gpu=2, gpumem=1000)}
    fleet.act("fail", fleet.find(["a100-1:0"]), {"xid": 79})
    fleet.act("lose", fleet.find(["a100-1:1"]))
    fleet.act("stop-node", fleet.find(["a100-2"]))
    a100, mlu = fleet_status(fleet)["pools"]
    counted = ("nodes", "there", "ready", "stopped", "cards", "unhealthy", "lost", "pods")
    assert [a100[key] for key in counted] == [3, 2, 2, 1, 6, 1, 1, 1]
    assert (a100["faults"], a100["faulty_nodes"]) == (3, 2)
    assert a100["models"] == {"A100-SXM4-80GB": 2}
    assert a100["resources"]["nvidia.com/gpu"] == {"allocatable": 40, "allocated": 2}
    assert a100["resources"]["nvidia.com/gpumem"]["allocated"] == 1000
    assert mlu["nodes"] == 2
    assert mlu["faults"] == 0


def test_units_that_pods_have_of_a_card_that_failed_still_count_and_slots_do_not() -> None:
    """As on a node with an agent: slots are a device plugin's, and units stand in the status."""
    fleet = fleet_of()
    member = fleet.members["a100-0"]
    member.pods = {("default", "p"): pod("p", gpu=2, gpumem=1000)}
    fleet.act("fail", fleet.find(["a100-0"]))
    (pool,) = fleet_status(fleet)["pools"]
    assert pool["resources"]["nvidia.com/gpu"] == {"allocatable": 40, "allocated": 2}
    units = {"allocatable": 4 * 81920 + 1000, "allocated": 1000}
    assert pool["resources"]["nvidia.com/gpumem"] == units
    fleet.changed.clear()
    member.pods = None
    fleet.pods_changed(member)
    assert fleet.changed == {"a100-0"}
