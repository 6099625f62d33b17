"""ResourceSlices, ResourceClaims and DeviceClasses as the API server's JSON has them. Pure.

What isn't of the type it should be isn't there: anybody may write these objects.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from hami_mock.doctor.pod_object import AGENT
from hami_mock.kit.quantities import quantity
from hami_mock.sources.annotated.node_object import amounts, part, text, texts

_MOST_ROWS = 1024
"""The API server allows less of everything that is a list in these objects."""
_MOST_NUMBER = 2**63
_EFFECTS = ("NoSchedule", "NoExecute")
"""Of taints that keep claims away. Others only tell something."""
_RESOURCE = "extendedResourceName"
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Taint(NamedTuple):
    """What keeps claims from a device, unless they tolerate it."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key


@dataclass(frozen=True)
class Capacity:
    """How much a device has; with a policy, what a claim gets that asks for some of it.

    `default` is for claims that don't say; `most` is what one claim may have of it.
    """

    value: int
    default: int
    least: int = 0
    step: int = 0
    most: int | None = None
    values: tuple[int, ...] = ()

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        policy = part(document, "requestPolicy")
        allowed = part(policy, "validRange")
        value = quantity(document.get("value")) or 0
        default = quantity(policy.get("default"))
        valid = policy.get("validValues")
        rows = valid[:_MOST_ROWS] if isinstance(valid, list) else []
        return cls(
            value,
            value if default is None else default,
            quantity(allowed.get("min")) or 0,
            quantity(allowed.get("step")) or 0,
            quantity(allowed.get("max")),
            tuple(sorted(number for row in rows if (number := quantity(row)) is not None)),
        )

    @property
    def largest(self) -> int:
        """The most that one claim can have."""
        return self.value if self.most is None else min(self.most, self.value)

    def consumed(self, asked: int | None) -> int:
        """Return what a claim consumes that asks for so much; more than there is if it can't."""
        if asked is None:
            return self.default
        if self.values:
            return next((each for each in self.values if each >= asked), asked)
        found = max(asked, self.least)
        if self.step > 0:
            found = self.least - (self.least - found) // self.step * self.step
        return found


@dataclass(frozen=True)
class Device:
    """A device of a slice, and where it is. `node` is "" where it isn't one node's alone."""

    driver: str
    pool: str
    node: str
    name: str
    attributes: Mapping[str, object] = field(hash=False)
    capacity: Mapping[str, Capacity] = field(hash=False)
    is_shared: bool = False
    consumes: tuple[tuple[str, Mapping[str, int]], ...] = field(default=(), hash=False)
    taints: tuple[Taint, ...] = ()

    @property
    def id(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.name

    def __str__(self) -> str:
        return f"{self.name} on {self.node}" if self.node else f"{self.name} of pool {self.pool}"

    def attribute(self, domain: str, name: str) -> object:
        """Return an attribute; None if it has none. Those of the driver may leave it out."""
        found = self.attributes.get(f"{domain}/{name}")
        return self.attributes.get(name) if found is None and domain == self.driver else found


@dataclass(frozen=True)
class Slice:
    """A ResourceSlice."""

    name: str
    driver: str
    pool: str
    node: str
    generation: int
    count: int
    devices: tuple[Device, ...]
    counters: Mapping[str, Mapping[str, int]] = field(hash=False)

    @classmethod
    def read(cls, document: object) -> Self:
        spec = part(document, "spec")
        pool = part(spec, "pool")
        driver, node, name = text(spec, "driver"), text(spec, "nodeName"), text(pool, "name")
        return cls(
            text(part(document, "metadata"), "name"), driver, name, node,
            _number(pool, "generation"), _number(pool, "resourceSliceCount"),
            tuple(_device(row, driver, name, node) for row in rows(spec, "devices")),
            {text(row, "name"): _counters(row) for row in rows(spec, "sharedCounters")},
        )  # fmt: skip


@dataclass(frozen=True)
class Ask:
    """One way to meet a request: so many devices of a class, or all of them (`count` None)."""

    class_name: str
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    capacity: Mapping[str, int] = field(default_factory=dict, hash=False)
    tolerations: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    is_admin: bool = False

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        is_all = text(document, "allocationMode") == "All"
        return cls(
            text(document, "deviceClassName"),
            expressions(document),
            None if is_all else max(_number(document, "count"), 1),
            amounts(part(document, "capacity"), "requests"),
            tuple(rows(document, "tolerations")),
            document.get("adminAccess") is True,
        )

    def tolerates(self, taint: Taint) -> bool:
        return any(
            text(row, "key") in ("", taint.key)
            and text(row, "effect") in ("", taint.effect)
            and (text(row, "operator") == "Exists" or text(row, "value") == taint.value)
            for row in self.tolerations
        )


class Request(NamedTuple):
    """A request of a claim: the first of these ways that can be had."""

    name: str
    ways: tuple[Ask, ...]


class Result(NamedTuple):
    """A device that a claim was allocated, and how much of it."""

    request: str
    device: tuple[str, str, str]
    consumed: Mapping[str, int]
    is_admin: bool


@dataclass(frozen=True)
class Claim:
    """A ResourceClaim. `nodes` are those that its allocation is for; () if that isn't said."""

    namespace: str
    name: str
    requests: tuple[Request, ...]
    is_allocated: bool = False
    results: tuple[Result, ...] = ()
    nodes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """The names of the pods that it is reserved for."""
    is_ending: bool = False

    @classmethod
    def read(cls, document: object) -> Self:
        metadata, spec, status = (part(document, key) for key in ("metadata", "spec", "status"))
        allocation = part(status, "allocation")
        terms = rows(part(allocation, "nodeSelector"), "nodeSelectorTerms")
        fields = [row for term in terms for row in rows(term, "matchFields")]
        return cls(
            text(metadata, "namespace") or "default", text(metadata, "name"), requests(spec),
            "allocation" in status and status["allocation"] is not None,
            tuple(_result(row) for row in rows(part(allocation, "devices"), "results")),
            tuple(
                name
                for row in fields
                if text(row, "key") == "metadata.name" and isinstance(row.get("values"), list)
                for name in row["values"]
                if isinstance(name, str)
            ),
            tuple(text(row, "name") for row in rows(status, "reservedFor")),
            "deletionTimestamp" in metadata,
        )  # fmt: skip

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


class DeviceClass(NamedTuple):
    """A DeviceClass; `resource` is the extended resource that it stands for, if any.

    `applied` is the one that it should stand for, as far as `kubectl apply` has noted that.
    """

    name: str
    selectors: tuple[str, ...]
    resource: str = ""
    applied: str = ""
    is_ours: bool = False

    @classmethod
    def read(cls, document: object) -> "DeviceClass":
        spec, metadata = part(document, "spec"), part(document, "metadata")
        label, value = AGENT
        return cls(
            text(metadata, "name"),
            expressions(spec),
            text(spec, _RESOURCE),
            text(part(_applied(metadata), "spec"), _RESOURCE),
            texts(metadata, "labels").get(label) == value,
        )


def _applied(metadata: Mapping[str, Any]) -> object:
    try:
        return json.loads(texts(metadata, "annotations").get(_APPLIED, "{}"))
    except (ValueError, RecursionError):
        return {}


def requests(spec: Mapping[str, Any]) -> tuple[Request, ...]:
    """Read the requests of a claim, or of the claim that a template has."""
    return tuple(_request(row) for row in rows(part(spec, "devices"), "requests"))


def rows(document: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """Return the mappings of a list."""
    found = document.get(key)
    some = found[:_MOST_ROWS] if isinstance(found, list) else []
    return [row for row in some if isinstance(row, Mapping)]


def expressions(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the CEL expressions of selectors."""
    return tuple(text(part(row, "cel"), "expression") for row in rows(document, "selectors"))


def _request(row: Mapping[str, Any]) -> Request:
    ways = [row["exactly"]] if isinstance(row.get("exactly"), Mapping) else []
    ways += rows(row, "firstAvailable")
    return Request(text(row, "name"), tuple(map(Ask.read, ways)))


def _result(row: Mapping[str, Any]) -> Result:
    device = text(row, "driver"), text(row, "pool"), text(row, "device")
    consumed = amounts(row, "consumedCapacity")
    return Result(text(row, "request"), device, consumed, row.get("adminAccess") is True)


def _device(row: Mapping[str, Any], driver: str, pool: str, node: str) -> Device:
    return Device(
        driver, pool, node or text(row, "nodeName"), text(row, "name"),
        {str(name): value for name, value in _attributes(row)},
        {
            str(name): Capacity.read(value)
            for name, value in part(row, "capacity").items()
            if isinstance(value, Mapping)
        },
        row.get("allowMultipleAllocations") is True,
        tuple((text(of, "counterSet"), _counters(of)) for of in rows(row, "consumesCounters")),
        tuple(
            Taint(text(each, "key"), text(each, "value"), text(each, "effect"))
            for each in rows(row, "taints")
            if text(each, "effect") in _EFFECTS
        ),
    )  # fmt: skip


def _attributes(row: Mapping[str, Any]) -> Iterator[tuple[object, object]]:
    for name, value in part(row, "attributes").items():
        if isinstance(value, Mapping):
            kinds = (value.get(kind) for kind in ("string", "int", "bool", "version"))
            yield name, next((each for each in kinds if each is not None), None)


def _counters(row: Mapping[str, Any]) -> dict[str, int]:
    found = part(row, "counters")
    return {
        str(name): quantity(value.get("value")) or 0
        for name, value in found.items()
        if isinstance(value, Mapping)
    }


def _number(document: Mapping[str, Any], key: str) -> int:
    found = document.get(key)
    if not isinstance(found, int) or isinstance(found, bool):
        return 0
    return found if 0 <= found < _MOST_NUMBER else 0
