"""Devices → ResourceSlices, within what the API server takes, and what it dropped. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby
from typing import Any

from hami_mock.kit.quantities import written
from hami_mock.kubelet.dra_gates import CONSUMABLE, PARTITIONABLE, TAINTS
from hami_mock.vendors.dra import Attribute, Capacity, Device, DraDriver, Version
from hami_mock.views.dra.devices import Offered

# 128 devices where none has a taint or counters. With less, a taint that comes moves no device.
_MOST_DEVICES = 64
_MOST_COUNTER_SETS = 8

_CONTENTS = ("sharedCounters", "devices")

Object = dict[str, Any]
Contents = list[Object]
"""The specs of a pool's slices, but for what all have in common."""


def contents(
    driver: DraDriver, devices: Iterable[Offered], without: Set[str] = frozenset()
) -> Contents:
    """Return what the slices have: counters first, then devices, those of a card together.

    `without` are the gates that are off. Without counters parts of a card would overlap, and
    without taints claims would get cards that are unhealthy: both are left out then.
    """
    kept = [_plain(each, without) for each in devices if _is_safe(each, without)]
    cards = [[*of] for _, of in groupby(kept, key=lambda each: each.card.uuid)]
    sets = [found for of in cards if (found := _counter_set(of))]
    return [
        *({"sharedCounters": some} for some in _chunks(sets, _MOST_COUNTER_SETS)),
        *({"devices": [_device(driver, each) for each in some]} for some in _packed(cards)),
    ]


def spec(driver: DraDriver, node: str, content: Object, generation: int, count: int) -> Object:
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    return {"driver": driver.name, "nodeName": node, "pool": pool, **content}


def dropped(wanted: Object, found: Object) -> set[str]:
    """Return the gates that are off, by the fields that are gone from what was written."""
    gates = set()
    if wanted.get("sharedCounters") and not found.get("sharedCounters"):
        gates.add(PARTITIONABLE)
    kept = {each.get("name"): each for each in found.get("devices") or ()}
    for device in wanted.get("devices", ()):
        own = kept.get(device["name"], {})
        fields = {
            "allowMultipleAllocations": CONSUMABLE,
            "consumesCounters": PARTITIONABLE,
            "taints": TAINTS,
        }
        gates |= {gate for key, gate in fields.items() if device.get(key) and not own.get(key)}
    return gates


def is_same(wanted: Object, found: Mapping[str, Any]) -> bool:
    """Tell whether a slice that is there has these contents."""
    return _are_same(wanted, {key: found[key] for key in _CONTENTS if found.get(key)})


def _are_same(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        # The server notes when a taint came.
        return wanted.keys() == found.keys() - {"timeAdded"} and all(
            _are_same(value, found[key]) for key, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_are_same, wanted, found))
    return bool(wanted == found)


def _is_safe(each: Offered, without: Set[str]) -> bool:
    is_hidden = TAINTS in without and not each.health.is_usable
    return not is_hidden and (PARTITIONABLE not in without or each.device.is_whole)


def _plain(each: Offered, without: Set[str]) -> Offered:
    """Return a device without the counters that the server wouldn't keep."""
    if PARTITIONABLE not in without:
        return each
    return replace(each, device=replace(each.device, consumes={}))


def _counter_set_name(devices: Sequence[Offered]) -> str:
    return f"gpu-{devices[0].card.minor}-counter-set"


def _counter_set(devices: Sequence[Offered]) -> Object | None:
    """Return the counters of a card: what its whole consumes. None: it has none."""
    whole = next((each.device for each in devices if each.device.is_whole), None)
    if whole is None or not whole.consumes:
        return None
    return {"name": _counter_set_name(devices), "counters": _counters(whole)}


def _counters(device: Device) -> Object:
    return {
        name: {"value": written(value, is_binary=True)} for name, value in device.consumes.items()
    }


def _device(driver: DraDriver, each: Offered) -> Object:
    device = each.device
    found: Object = {
        "name": device.name,
        "attributes": {name: _attribute(value) for name, value in device.attributes.items()},
        "capacity": {name: _capacity(value) for name, value in device.capacity.items()},
    }
    if device.is_shared:
        found["allowMultipleAllocations"] = True
    if device.consumes:
        found["consumesCounters"] = [
            {"counterSet": _counter_set_name([each]), "counters": _counters(device)}
        ]
    if taint := _taint(driver, each):
        found["taints"] = [taint]
    return {key: value for key, value in found.items() if value}


def _attribute(value: Attribute) -> Object:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case Version():
            return {"version": str(value)}
    return {"string": value}


def _capacity(capacity: Capacity) -> Object:
    def text(value: int) -> str:
        return written(value, is_binary=capacity.is_binary)

    whole = text(capacity.value)
    if not capacity.step:
        return {"value": whole}
    allowed = {"min": text(capacity.least), "max": whole, "step": text(capacity.step)}
    return {"value": whole, "requestPolicy": {"default": whole, "validRange": allowed}}


def _taint(driver: DraDriver, each: Offered) -> Object | None:
    """Return what keeps claims from a card that isn't well; they may tolerate it by its key."""
    if each.health.is_usable:
        return None
    if each.is_lost:
        return {"key": f"{driver.name}/gpu-lost", "effect": "NoSchedule"}
    if each.xid:
        return {"key": f"{driver.name}/xid", "value": each.xid, "effect": "NoSchedule"}
    return {"key": f"{driver.name}/unhealthy", "effect": "NoSchedule"}


def _packed(cards: Iterable[Sequence[Offered]]) -> Iterator[list[Offered]]:
    """Yield devices for one slice after the other; a card's devices are in one, if they fit."""
    some: list[Offered] = []
    for devices in cards:
        for part in _chunks(devices, _MOST_DEVICES):
            if len(some) + len(part) > _MOST_DEVICES:
                yield some
                some = []
            some = [*some, *part]
    if some:
        yield some


def _chunks(things: Sequence[Any], most: int) -> Iterator[list[Any]]:
    return ([*things[start : start + most]] for start in range(0, len(things), most))
