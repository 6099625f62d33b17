"""What Enflame's plugin does for a pod with slices: it makes an instance for each container.

The scheduler says on the pod which card it is for (one, whatever the containers), and what each
container shall have. The plugin takes the first container that wants as many slices as the kubelet
asks for, cuts them off the card, and writes down which instance it has made. Of HAMi's annotations
it knows none: the bind phase stays "allocating".
"""

import json
import uuid
from collections.abc import Mapping

from hami_mock.hami.assignment import Assignment
from hami_mock.hami.go_values import INT32, Fields, bounded, json_value
from hami_mock.kit.text import cut
from hami_mock.vendors.handout import Claim, Container, Given, environment

_CONTAINERS = "assigned-containers"
_IS_ASSIGNED = "enflame.com/gcu-assigned"
_INDEX = "enflame.com/gcu-assigned-index"
_TIME = "enflame.com/gcu-assigned-time"
_ALLOCATED = "hami.io/enflame-vgpu-devices-allocated"

# Any fixed namespace will do; a change of it would rename every instance.
_NAMESPACE = uuid.UUID("a1f0f5c6-52b2-4a52-8d6c-3f9be3f6c1d7")


def next_claim(annotations: Mapping[str, str], size: int) -> Claim | None:
    """Return the first container that wants so many slices, else the first of all."""
    rows = _rows(annotations)
    waiting = {
        name: fields.get("request", INT32)
        for name, fields in rows.items()
        if not fields.get("allocated", bool)
    }
    if not waiting:
        return None
    name = next((each for each, request in waiting.items() if request == size), min(waiting))
    assignment = Assignment.parse(annotations.get(_ALLOCATED, ""))
    assigned = (device for devices in assignment.containers for device in devices)
    index = annotations.get(_INDEX, "")
    devices = tuple(each for each in assigned if each.id.rpartition("-")[2] == index)[:1]
    made = {"allocated": True, **_instance(annotations, rows, name)}
    written = {each: fields.given for each, fields in rows.items()}
    taken = {_CONTAINERS: json.dumps(written | {name: written[name] | made})}
    if len(waiting) == 1:
        taken[_IS_ASSIGNED] = "true"
    return Claim(sorted(rows).index(name), devices, waiting[name], taken)


def hand_out(container: Container) -> Given:
    """Tell a container its card, and its instance on that."""
    rows = _rows(container.annotations)
    name = sorted(rows)[container.position]
    instance = _instance(container.annotations, rows, name).get("instanceUUID")
    more = {"TOPS_VISIBLE_DEVICES": f"DRS-{instance}"} if instance else {}
    return Given({**environment(container), **more})


def _instance(
    annotations: Mapping[str, str], rows: Mapping[str, Fields], name: str
) -> dict[str, str]:
    """Return the instance that is made for a container; without a profile there is none."""
    if not rows[name].get("profileName", str):
        return {}
    key = bounded(f"{annotations.get(_TIME, '')}/{annotations.get(_INDEX, '')}/{name}")
    return {
        "instanceID": str(sorted(rows).index(name)),
        "instanceUUID": str(uuid.uuid5(_NAMESPACE, key)),
    }


def _rows(annotations: Mapping[str, str]) -> dict[str, Fields]:
    """Return what each container shall have, by its name. Raises Malformed."""
    containers = Fields(json_value(annotations.get(_CONTAINERS) or "{}"), _CONTAINERS).given
    return {
        name: Fields(row, f"{_CONTAINERS}: {cut(name, 80)}") for name, row in containers.items()
    }
