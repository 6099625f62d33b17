"""What setters of the driver may change of a cut card, and what they may not."""

import json
from pathlib import Path

import pytest

from hami_mock.hami.kinds import MIG_ALLOCATIONS
from hami_mock.kubelet.holder import Holder
from hami_mock.node.cards import Card
from hami_mock.node.instances import Cutter
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from hami_mock.views.driver.layout import NO_INSTANCE
from hami_mock.views.driver.messages import OPERATIONS
from hami_mock.views.driver.setters import RESULTS, Setters
from tests.unit.views.driver.reading import driver_cards, live, node_state, shown_in
from tests.unit.views.driver.test_cards import ALLOCATED, POD, hold
from tests.unit.views.hami.rig import segment

A100 = {"nvidia_model": "A100-SXM4-40GB", "nvidia_cards": 1}
OF_1G, OF_2G, OF_3G = 19, 14, 9
"""The profiles' IDs."""


class Rig:
    """The node's one card, and a setter's way to it."""

    def __init__(self, **flags: object) -> None:
        self.state: NodeState = node_state(**{**A100, **flags})
        self.card: Card = self.state.node.cards[0]
        self.setters = Setters(self.state, driver_cards(self.state))

    def cut_into(self, *profiles: str) -> None:
        cutter = Cutter(self.card.vendor, self.card.model, self.card.uuid)
        self.state.cut(self.card, cutter.cut_into(profiles))

    def do(self, operation: str, value: int = 0, **fields: int) -> dict[str, int]:
        nowhere = dict.fromkeys(("gpu_instance", "compute_instance", "start", "size"), NO_INSTANCE)
        request = {**nowhere, **fields, "operation": OPERATIONS[operation], "values": (value, 0)}
        return self.setters.do(self.card, request)

    def result(self, operation: str, value: int = 0, **fields: int) -> str:
        code = self.do(operation, value, **fields).get("result", 0)
        return next(name for name, known in RESULTS.items() if known == code)


def test_what_a_container_holds_stays() -> None:
    rig = Rig(device_plugins="off")
    rig.cut_into("3g.20gb", "2g.10gb")
    held, other = sorted(rig.state.instances(rig.card), key=lambda each: each.profile, reverse=True)
    rig.state.holders.name([Holder(POD, {"nvidia.com/mig-3g.20gb": (held.uuid,)})])
    number = {"gpu_instance": held.gpu_instance}
    assert rig.result("DESTROY_COMPUTE_INSTANCE", **number, compute_instance=0) == "IN_USE"
    assert rig.result("DESTROY_GPU_INSTANCE", **number) == "IN_USE"
    assert rig.result("SET_MIG_MODE", 0) == "IN_USE"
    assert rig.state.instances(rig.card) == sorted((held, other), key=lambda each: each.start)
    # Its neighbour is nobody's.
    number = {"gpu_instance": other.gpu_instance}
    assert rig.result("DESTROY_GPU_INSTANCE", **number) == "IN_USE", "it has a compute instance"
    assert rig.result("DESTROY_COMPUTE_INSTANCE", **number, compute_instance=0) == "DONE"
    assert rig.result("DESTROY_GPU_INSTANCE", **number) == "DONE"
    rig.state.holders.name([])
    assert rig.result("SET_MIG_MODE", 0) == "DONE"
    assert rig.state.cuts == {}


@pytest.mark.parametrize("mode_first", [True, False])
def test_nothing_is_made_where_hami_has_made_something(tmp_path: Path, mode_first: bool) -> None:
    rig = Rig(hami="on", nvidia_mode="mig")
    if mode_first:
        assert rig.result("SET_MIG_MODE", 1) == "DONE"
    hold(rig.state, POD, 0)
    uuid = rig.card.uuid
    made = {
        "containerIndex": 0, "gpuUUID": uuid, "profile": "3g.20gb", "migUUID": "MIG-of-hami",
        "placement": {"start": 4, "size": 4}, "gpuInstanceID": 2,
    }  # fmt: skip
    told = {ALLOCATED: segment(uuid), MIG_ALLOCATIONS: json.dumps([made])}
    asked = {"main": {"nvidia.com/gpu": 1}}
    rig.state.pods[POD[:2]] = Pod(
        *POD[:2], annotations=told, containers=("main",), requests=asked
    )  # fmt: skip
    # HAMi's is on the second half, where the driver would begin.
    assert rig.result("CREATE_GPU_INSTANCE", profile=OF_3G, start=4, size=4) == (
        "INSUFFICIENT_RESOURCES"
    )
    assert rig.do("CREATE_GPU_INSTANCE", profile=OF_3G) == {"gpu_instance": 1}
    assert rig.result("CREATE_GPU_INSTANCE", profile=OF_1G) == "INSUFFICIENT_RESOURCES"
    assert rig.result("DESTROY_GPU_INSTANCE", gpu_instance=2) == "IN_USE"
    shown_in(tmp_path, rig.state)
    parts = [each for each in live(tmp_path, 0)["gpu_instances"] if each["used"]]
    assert [(each["id"], each["start"]) for each in parts] == [(1, 0), (2, 4)]
    # It goes with its pod; what was made here stays.
    rig.state.pods.clear()
    rig.state.holders.name([])
    assert rig.state.cut_of(rig.card) == rig.state.cuts[uuid]
    assert [part.id for part in rig.state.cuts[uuid].parts] == [1]
