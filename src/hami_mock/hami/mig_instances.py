"""MIG instances as the scheduler reserves them: hami.io/vgpu-mig-allocations. Pure.

HAMi's plugin makes each instance when its container comes, and writes down which it is. Ours are as
real as our cards: an instance's UUID is made from its card and its place.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hami_mock.errors import NotAssigned
from hami_mock.hami.assignment import AssignedDevice
from hami_mock.hami.go_values import UINT32, Fields, json_list

ANNOTATION = "hami.io/vgpu-mig-allocations"

# Any fixed namespace will do; a change of it would rename every instance.
_NAMESPACE = uuid.UUID("0c4f6a55-1b7d-4f0e-8a58-6d3f3c1e9b20")


@dataclass(frozen=True)
class Instances:
    """The instances of a container, by UUID, and the annotation that says which they are."""

    uuids: tuple[str, ...]
    annotation: str


def realise(
    annotations: Mapping[str, str], position: int, devices: Sequence[AssignedDevice]
) -> Instances:
    """Make the instances that are reserved for the container at a position.

    Raises NotAssigned if they aren't on the assigned cards, Malformed if HAMi couldn't read them.
    """
    rows = json_list(annotations.get(ANNOTATION) or "[]")
    fields = [Fields(row, f"MIG allocation {i}") for i, row in enumerate(rows)]
    own = [i for i, each in enumerate(fields) if each.whole("containerIndex", UINT32) == position]
    own.sort(key=lambda i: fields[i].whole("deviceIndex", UINT32))
    reserved = [fields[i].text("gpuUUID") for i in own]
    if reserved != [device.id for device in devices]:
        raise NotAssigned(
            f"{ANNOTATION} has {reserved} for container {position}, but the assigned cards are "
            f"{[device.id for device in devices]}"
        )
    made = {i: _instance(fields[i]) for i in own}
    annotation = json.dumps(
        [{**row, **made.get(i, {})} for i, row in enumerate(rows)], separators=(",", ":")
    )
    return Instances(tuple(made[i]["migUUID"] for i in own), annotation)


def _instance(fields: Fields) -> dict[str, Any]:
    place = Fields(fields.mapping("placement"), f"{fields.place}: placement")
    start = place.whole("start", UINT32)
    name = f"{fields.text('gpuUUID')}/{fields.text('profile')}/{start}"
    return {
        "migUUID": f"MIG-{uuid.uuid5(_NAMESPACE, name)}",
        # Two instances of a card never begin at the same slice.
        "gpuInstanceID": start + 1,
        "computeInstanceID": 0,
    }
