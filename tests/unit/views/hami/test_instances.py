import json
from typing import Any

import pytest

from hami_mock.errors import NotAssigned
from hami_mock.hami.assignment import BIND_PHASE
from hami_mock.hami.errors import Malformed
from hami_mock.hami.kinds import MIG_ALLOCATIONS
from hami_mock.node.cards import CardGroup
from hami_mock.vendors import catalog
from hami_mock.views.hami.answer import answer
from hami_mock.views.hami.waiting import WaitingPod
from tests.unit.views.hami.rig import count_resource, nvidia_cards, pod, segment, state_with

MODEL = catalog.find("nvidia", "A100-SXM4-40GB")
assert MODEL is not None
GPU = count_resource(cards=nvidia_cards(CardGroup(MODEL, MODEL.memory, (None, None))), mode="mig")
A, B = (card.uuid for card in GPU.cards)


def reserved(container: int, device: int, card: str, start: int) -> dict[str, Any]:
    return {
        "containerIndex": container,
        "deviceIndex": device,
        "gpuUUID": card,
        "profile": "1g.5gb",
        "placement": {"start": start, "size": 1},
    }


def waiting(to_allocate: str, allocations: object) -> WaitingPod:
    bound = pod(vgpu=to_allocate)
    bound["metadata"]["resourceVersion"] = "1"
    bound["metadata"]["annotations"][MIG_ALLOCATIONS] = json.dumps(allocations)
    return WaitingPod.of(bound)


def test_instances_are_made_where_the_scheduler_reserved_them() -> None:
    rows = [reserved(1, 1, B, 5), reserved(0, 0, A, 6), reserved(1, 0, A, 4)]
    both = waiting(segment(A) + segment(A, B), rows)
    assert GPU.hami is not None
    found = answer(both, GPU, GPU.hami, [1], state_with(GPU))
    written = json.loads(found.annotations[MIG_ALLOCATIONS])
    assert [row.get("migUUID", "") != "" for row in written] == [False, True, False]
    assert [each.variables for each in found.allotted] == [
        {"NVIDIA_VISIBLE_DEVICES": written[1]["migUUID"]}
    ]
    assert not found.is_last
    # The rest, all in one call, with the first container's from before.
    found = answer(both, GPU, GPU.hami, [1, 2], state_with(GPU))
    written = json.loads(found.annotations[MIG_ALLOCATIONS])
    uuids = [row["migUUID"] for row in written]
    assert len(set(uuids)) == 3
    assert all(uuid.startswith("MIG-") for uuid in uuids)
    assert found.allotted[1].variables == {"NVIDIA_VISIBLE_DEVICES": f"{uuids[2]},{uuids[0]}"}
    assert [row["gpuInstanceID"] for row in written] == [7 + 5, 7 + 6, 7 + 4]
    assert found.annotations[BIND_PHASE] == "success"


@pytest.mark.parametrize(
    "rows", [[], [reserved(0, 0, B, 6)], [reserved(1, 0, A, 6)], None], ids=str
)
def test_what_is_not_reserved_is_not_given(rows: object) -> None:
    assert GPU.hami is not None
    with pytest.raises(NotAssigned, match="vgpu-mig-allocations"):
        answer(waiting(segment(A), rows), GPU, GPU.hami, [1], state_with(GPU))


def test_what_hami_can_not_read_is_malformed() -> None:
    assert GPU.hami is not None
    with pytest.raises(Malformed):
        answer(waiting(segment(A), "{"), GPU, GPU.hami, [1], state_with(GPU))
