"""MIG: what a card can be cut into, and the instances that the scheduler has reserved for a pod.

HAMi's plugin learns the first from NVIDIA's driver, and registers the profiles that HAMi's
configuration allows for a model, by the configuration's names. If nobody has said any, these are
the ones of its chart, also for models that the chart has no rule for.

The plugin makes each instance when its container comes, and writes down which it is. Ours are as
real as our cards: an instance's UUID is made from its card and its place.
"""

import json
import math
from collections.abc import Mapping
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
    whole_card,
)
from hami_mock.vendors.scheduling import Allowed, AllowedProfiles, MadeInstance

# The rules of HAMi's chart. Some models aren't called so by the driver (H100-SXM5-80GB), and some
# are in the names of others (H20 in H200). 7g.79gb isn't NVIDIA's name.
_CHART = (
    AllowedProfiles(("A30",), ("1g.6gb", "2g.12gb", "4g.24gb")),
    AllowedProfiles(
        ("A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"),
        ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"),
    ),
    AllowedProfiles(
        ("A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB"),
        ("1g.10gb", "2g.20gb", "3g.40gb", "7g.79gb"),
    ),
    AllowedProfiles(
        ("H100-PCIE-80GB", "H100-SXM5-80GB"), ("1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb")
    ),
    AllowedProfiles(
        ("H100-PCIE-94GB", "H100-SXM5-94GB"), ("1g.12gb", "2g.24gb", "3g.47gb", "7g.94gb")
    ),
    AllowedProfiles(("H20", "H100 on GH200"), ("1g.12gb", "2g.24gb", "3g.48gb", "7g.96gb")),
    AllowedProfiles(("H200 NVL", "H200-SXM5"), ("1g.18gb", "2g.35gb", "3g.71gb", "7g.141gb")),
    AllowedProfiles(("B200",), ("1g.23gb", "2g.45gb", "3g.90gb", "7g.180gb")),
    AllowedProfiles(("RTX PRO 6000 Blackwell Server Edition",), ("1g.24gb", "2g.48gb", "4g.96gb")),
)
# Which of the driver's kinds the plugin takes a name for: it looks only at what is before the dot.
_KINDS = {"1g": 0, "2g": 1, "3g": 2, "4g": 3, "7g": 4, "8g": 5, "6g": 6}
# What a rule for another model would have: no 4g where there is a 7g.
_SLICES = {0: (), 4: (1, 2, 4), 7: (1, 2, 3, 7)}


def rule_for(card_type: str, allowed: Allowed) -> AllowedProfiles | None:
    """Return the first rule with a model that is in a card's type; without rules: the chart's."""
    rules = _CHART if allowed is None else allowed
    return next((rule for rule in rules if any(map(card_type.__contains__, rule.models))), None)


def listed(model: Model, allowed: Allowed = None) -> dict[str, InstanceProfile]:
    """Return what HAMi lets a card of that model be cut into, by its names."""
    kinds = {each.number: each for each in instance_profiles(model)}
    numbers = {name: _KINDS.get(name.partition(".")[0], -1) for name in _names(model, allowed)}
    return {name: kinds[number] for name, number in numbers.items() if number in kinds}


def profiles(model: Model, allowed: Allowed = None) -> tuple[MigProfile, ...]:
    """Return the same as HAMi's plugin registers it."""
    whole = max((each.multiprocessors for each in instance_profiles(model)), default=0)
    return tuple(
        MigProfile(
            name,
            each.memory,
            math.ceil(each.multiprocessors * 100 / whole),
            each.slices,
            tuple(MigPlacement(start, each.units) for start in each.starts),
        )
        for name, each in listed(model, allowed).items()
    )


def _names(model: Model, allowed: Allowed) -> tuple[str, ...]:
    if rule := rule_for(model.product, allowed):
        return rule.profiles
    known = instance_profiles(model) if allowed is None else ()
    slices = _SLICES[most_slices(known)]
    plain = (each for each in known if each.number in _KINDS.values())
    return tuple(each.name for each in plain if each.slices in slices)


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
    units = {card.uuid: whole_card(card.model) for card in container.cards}
    made = {i: _instance(fields[i], units) for i in own}
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


def _instance(fields: Fields, units: Mapping[str, int]) -> dict[str, Any]:
    place, card = _place(fields), fields.get("gpuUUID", str)
    whole = units.get(card, 0) if place.size else 0
    return {
        "migUUID": instance_uuid(card, fields.get("profile", str), place.start),
        # Of a card that can't be cut two instances never begin at the same unit either.
        "gpuInstanceID": instance_id(place.size, place.start, whole) if whole else place.start + 1,
        "computeInstanceID": 0,
    }
