"""MIG: what a card can be cut into, and the instances that the scheduler has reserved for a pod.

HAMi's plugin learns the first from NVIDIA's driver, and registers the profiles that HAMi's
configuration allows for a model; these are the ones of its chart, by the chart's names. Cards have
seven slices of compute and eight units of memory, or four slices and four or twelve units. The
memory of a profile is what the driver says, or a share of the card's where that isn't known.

The plugin makes each instance when its container comes, and writes down which it is. Ours are as
real as our cards: an instance's UUID is made from its card and its place.
"""

import json
import math
import uuid
from typing import Any, NamedTuple

from hami_mock.errors import NotAssigned
from hami_mock.hami.go_values import UINT32, Fields, json_list
from hami_mock.hami.kinds import MIG_ALLOCATIONS
from hami_mock.hami.mig import MigPlacement, MigProfile
from hami_mock.kit.text import cut
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.handout import Container, Given
from hami_mock.vendors.scheduling import MadeInstance

# Any fixed namespace will do; a change of it would rename every instance.
_NAMESPACE = uuid.UUID("0c4f6a55-1b7d-4f0e-8a58-6d3f3c1e9b20")

# Instances by compute slices: how many units of memory they have, and where they may begin.
_Shapes = dict[int, tuple[int, tuple[int, ...]]]
_EIGHTHS: _Shapes = {1: (1, (0, 1, 2, 3, 4, 5, 6)), 2: (2, (0, 2, 4)), 3: (4, (0, 4)), 7: (8, (0,))}
_QUARTERS: _Shapes = {1: (1, (0, 1, 2, 3)), 2: (2, (0, 2)), 4: (4, (0,))}
_TWELFTHS: _Shapes = {1: (3, (0, 3, 6, 9)), 2: (6, (0, 6)), 4: (12, (0,))}


class _Kind(NamedTuple):
    """Models that can be cut into the same profiles, and the MiB of each; 0 if nobody tells."""

    models: tuple[str, ...]
    profiles: tuple[str, ...]
    memory: tuple[int, ...]
    shapes: _Shapes = _EIGHTHS


_KINDS = (
    _Kind(("A30",), ("1g.6gb", "2g.12gb", "4g.24gb"), (5952, 11968, 24000), _QUARTERS),
    _Kind(
        ("A100-PCIE-40GB", "A100-SXM4-40GB"),
        ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"),
        (4864, 9856, 19968, 40192),
    ),
    _Kind(
        ("A100-PCIE-80GB", "A100-SXM4-80GB", "A800-PCIE-80GB", "A800-SXM4-80GB"),
        ("1g.10gb", "2g.20gb", "3g.40gb", "7g.79gb"),
        (9728, 19968, 40192, 80896),
    ),
    _Kind(
        ("H100-PCIE-80GB", "H100-SXM5-80GB", "H800-PCIE-80GB", "H800-SXM5-80GB"),
        ("1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"),
        (9984, 20096, 40448, 81152),
    ),
    _Kind(
        ("H100-NVL-94GB",),
        ("1g.12gb", "2g.24gb", "3g.47gb", "7g.94gb"),
        (11008, 22144, 47488, 95360),
    ),
    _Kind(
        ("GH200",),
        ("1g.12gb", "2g.24gb", "3g.48gb", "7g.96gb"),
        (11264, 23552, 47616, 95232),
    ),
    _Kind(("H20",), ("1g.12gb", "2g.24gb", "3g.48gb", "7g.96gb"), (12032, 24192, 48512, 0)),
    _Kind(
        ("H200-NVL-141GB", "H200-SXM-141GB"),
        ("1g.18gb", "2g.35gb", "3g.71gb", "7g.141gb"),
        (16384, 33024, 71168, 143104),
    ),
    _Kind(("B200",), ("1g.23gb", "2g.45gb", "3g.90gb", "7g.180gb"), (20992, 45312, 0, 0)),
    _Kind(("RTX-PRO-6000",), ("1g.24gb", "2g.48gb", "4g.96gb"), (24192, 48512, 97408), _TWELFTHS),
)


def profiles(model: Model) -> tuple[MigProfile, ...]:
    """Return what a card of that model can be cut into; nothing if it can't be cut."""
    kind = next((kind for kind in _KINDS if model.name in kind.models), None)
    if kind is None:
        return ()
    found = []
    most = int(kind.profiles[-1].partition("g.")[0])
    whole, _ = kind.shapes[most]
    for name, known in zip(kind.profiles, kind.memory, strict=True):
        slices = int(name.partition("g.")[0])
        size, starts = kind.shapes[slices]
        memory = known or model.memory * size // whole
        places = tuple(MigPlacement(start, size) for start in starts)
        found.append(MigProfile(name, memory, math.ceil(slices * 100 / most), slices, places))
    return tuple(found)


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
                    start=_start(fields),
                    uuid=cut(mig_uuid),
                    gpu_instance=fields.get("gpuInstanceID", UINT32),
                    compute_instance=fields.get("computeInstanceID", UINT32),
                )
            )
    return found


def _start(fields: Fields) -> int:
    return Fields(fields.get("placement", dict), f"{fields.place}: placement").get("start", UINT32)


def _instance(fields: Fields) -> dict[str, Any]:
    start = _start(fields)
    name = f"{fields.get('gpuUUID', str)}/{fields.get('profile', str)}/{start}"
    return {
        "migUUID": f"MIG-{uuid.uuid5(_NAMESPACE, name)}",
        # Two instances of a card never begin at the same slice.
        "gpuInstanceID": start + 1,
        "computeInstanceID": 0,
    }
