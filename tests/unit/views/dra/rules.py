"""What Kubernetes' API server takes of a ResourceSlice (1.35 to 1.37), written from its rules."""

import re
from typing import Any

from hami_mock.kit.quantities import quantity

Object = dict[str, Any]
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def check(spec: Object) -> None:
    """Fail if the API server would refuse a slice."""
    assert spec["nodeName"]
    assert _DOMAIN.fullmatch(spec["driver"])
    assert spec["pool"]["generation"] >= 1
    assert spec["pool"]["resourceSliceCount"] >= 1
    assert ("sharedCounters" in spec) != ("devices" in spec)
    devices = spec.get("devices", [])
    is_advanced = any("taints" in each or "consumesCounters" in each for each in devices)
    assert len(devices) <= (64 if is_advanced else 128)
    assert len({each["name"] for each in devices}) == len(devices)
    assert len(spec.get("sharedCounters", [])) <= 8
    for counter_set in spec.get("sharedCounters", []):
        assert _LABEL.fullmatch(counter_set["name"])
        _check_counters(counter_set["counters"])
    for device in devices:
        _check_device(device)


def _check_device(device: Object) -> None:
    assert _LABEL.fullmatch(device["name"]), device["name"]
    attributes, capacity = device.get("attributes", {}), device.get("capacity", {})
    assert len(attributes) + len(capacity) <= 32
    for name in (*attributes, *capacity):
        domain, _, identifier = name.rpartition("/")
        assert _IDENTIFIER.fullmatch(identifier), name
        assert not domain or _DOMAIN.fullmatch(domain)
    for attribute in attributes.values():
        ((kind, value),) = attribute.items()
        assert kind in ("string", "int", "bool", "version")
        assert type(value) is {"int": int, "bool": bool}.get(kind, str)
        assert not isinstance(value, str) or 0 < len(value) <= 64
        assert kind != "version" or _VERSION.fullmatch(str(value))
    for each in capacity.values():
        _check_capacity(each, is_shared=device.get("allowMultipleAllocations", False))
    for consumed in device.get("consumesCounters", []):
        _check_counters(consumed["counters"])
    assert len(device.get("consumesCounters", [])) <= 2
    for taint in device.get("taints", []):
        domain, _, name = taint["key"].rpartition("/")
        assert _DOMAIN.fullmatch(domain)
        assert _LABEL_VALUE.fullmatch(name)
        assert _LABEL_VALUE.fullmatch(taint.get("value", ""))
        assert taint["effect"] in ("NoSchedule", "NoExecute")


def _check_capacity(capacity: Object, *, is_shared: bool) -> None:
    whole = _amount(capacity["value"])
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    assert is_shared, "only a device that several claims may have has a policy"
    least, most, step = (_amount(policy["validRange"][key]) for key in ("min", "max", "step"))
    default = _amount(policy["default"])
    assert 0 <= least <= default <= most <= whole
    assert step > 0
    assert (most - least) % step == 0
    assert (default - least) % step == 0


def _check_counters(counters: Object) -> None:
    assert 0 < len(counters) <= 32
    for name, counter in counters.items():
        assert _LABEL.fullmatch(name)
        assert _amount(counter["value"]) >= 0


def _amount(text: str) -> int:
    found = quantity(text)
    assert found is not None, text
    return found
