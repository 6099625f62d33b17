"""MIG: what a card can be cut into, and the instances that the scheduler has reserved for a pod.

HAMi's plugin learns the first from NVIDIA's driver, and registers the profiles that HAMi's
configuration allows for a model; these are the ones of its chart, by the chart's names.

The plugin makes each instance when its container comes, and writes down which it is. Ours are as
real as our cards: an instance's UUID is made from its card and its place.
"""

import json
import math
from typing import Any

from hami_mock.errors import NotAssigned
from hami_mock.hami.go_values import UINT32, Fields, json_list
from hami_mock.hami.kinds import MIG_ALLOCATIONS
from hami_mock.hami.mig import PLACEMENT, MigPlacement, MigProfile
from hami_mock.kit.text import cut
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.handout import Container, Given
from hami_mock.vendors.instance_profile import InstanceProfile, most_slices
from hami_mock.vendors.nvidia_mig_profiles import (
    instance_id,
    instance_profiles,
    instance_uuid,
    whole_units,
)
from hami_mock.vendors.scheduling import MadeInstance

# Of all that the driver knows, HAMi's chart lists the plain kinds (no +me or the like, no 1g with
# the memory of a 2g), without 4g where there is a 7g, and none for the newest models.
_UNLISTED = ("GB200", "B300", "GB300")
_PLAIN = (0, 1, 2, 3, 4)
_LISTED = {0: (), 4: (1, 2, 4), 7: (1, 2, 3, 7)}
# It has a name of its own for the whole of an A100 with 80 GB.
_RENAMED = {("8.0", "7g.80gb"): "7g.79gb"}
_NVIDIAS_NAMES = {name: known for (_, known), name in _RENAMED.items()}


def listed(model: Model) -> tuple[InstanceProfile, ...]:
    """Return what HAMi lets a card of that model be cut into; nothing if it can't be cut."""
    known = () if model.name in _UNLISTED else instance_profiles(model)
    slices = _LISTED[most_slices(known)]
    return tuple(each for each in known if each.number in _PLAIN and each.slices in slices)


def profiles(model: Model) -> tuple[MigProfile, ...]:
    """Return the same as HAMi's plugin registers it."""
    known = listed(model)
    return tuple(
        MigProfile(
            _RENAMED.get((model.compute, each.name), each.name),
            each.memory,
            math.ceil(each.slices * 100 / most_slices(known)),
            each.slices,
            tuple(MigPlacement(start, each.units) for start in each.starts),
        )
        for each in known
    )


def hand_out(container: Container) -> Given:
    """Make the instances that are reserved for a container.

    Raises NotAssigned if they aren't on the assigned cards, Malformed if HAMi couldn't read them.
    """
    rows = json_list(container.annotations.get(MIG_ALLOCATIONS) or "[]")
    fields = [Fields(row, f"MIG allocation {i}") for i, row in enumerate(rows)]
    indices = [each.get("containerIndex", UINT32) for each in fields]
    own = [i for i, index in enumerate(indices) if index == container.position]
    own.sort(key=lambda i: fields[i].get("deviceIndex", UINT32))
    reserved = [fields[i].get("gpuUUID", str) for i in own]
    assigned = [device.id for device in container.devices]
    if reserved != assigned:
        raise NotAssigned(
            f"{MIG_ALLOCATIONS} has {cut(str(reserved), 120)} for container "
            f"{container.position}, but the assigned cards are {cut(str(assigned), 120)}"
        )
    made = {i: _instance(fields[i]) for i in own}
    written = [{**row, **made.get(i, {})} for i, row in enumerate(rows)]
    return Given(
        dict.fromkeys(
            container.hami.vendor.visible_devices, ",".join(made[i]["migUUID"] for i in own)
        ),
        {MIG_ALLOCATIONS: json.dumps(written, separators=(",", ":"))},
    )


def made(text: str) -> list[MadeInstance]:
    """Return the instances that a pod has got. Raises Malformed if HAMi couldn't read them."""
    found = []
    for i, row in enumerate(json_list(text)):
        fields = Fields(row, f"MIG allocation {i}")
        if mig_uuid := fields.get("migUUID", str):
            found.append(
                MadeInstance(
                    position=fields.get("containerIndex", UINT32),
                    card=fields.get("gpuUUID", str),
                    profile=fields.get("profile", str),
                    start=_place(fields).start,
                    uuid=cut(mig_uuid),
                    gpu_instance=fields.get("gpuInstanceID", UINT32),
                    compute_instance=fields.get("computeInstanceID", UINT32),
                )
            )
    return found


def _place(fields: Fields) -> MigPlacement:
    return PLACEMENT.read(fields.get("placement", dict), f"{fields.place}: placement")


def _instance_id(profile: str, place: MigPlacement) -> int:
    if whole := whole_units(profile, place.size):
        return instance_id(place.size, place.start, whole)
    # Nobody knows the card, but two instances of it never begin at the same unit.
    return place.start + 1


def _instance(fields: Fields) -> dict[str, Any]:
    place, profile = _place(fields), fields.get("profile", str)
    return {
        "migUUID": instance_uuid(fields.get("gpuUUID", str), profile, place.start),
        "gpuInstanceID": _instance_id(_NVIDIAS_NAMES.get(profile, profile), place),
        "computeInstanceID": 0,
    }
