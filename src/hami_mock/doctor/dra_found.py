"""What is known of DRA in a cluster, and what couldn't be looked at. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from hami_mock.doctor.dra_objects import (
    Claim,
    Device,
    DeviceClass,
    Request,
    Result,
    Slice,
    requests,
)
from hami_mock.sources.annotated.node_object import part, text

SLICES, CLAIMS = "resourceslices", "resourceclaims"
TEMPLATES, CLASSES = "resourceclaimtemplates", "deviceclasses"
KINDS = {
    "ResourceSlice": SLICES,
    "ResourceClaim": CLAIMS,
    "ResourceClaimTemplate": TEMPLATES,
    "DeviceClass": CLASSES,
}
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Before the name of any class, this makes the extended resource that it always stands for."""


class Held(NamedTuple):
    """What a claim has of a device."""

    claim: Claim
    result: Result


class Drain(NamedTuple):
    """What a device takes of a set of counters, and who has the device."""

    held: Sequence[Held]
    counters: Mapping[str, int]


@dataclass(frozen=True)
class DraFound:
    """The objects of DRA. Each is None if nobody knows them; `lacks` says why."""

    slices: Sequence[Slice] | None = None
    classes: Mapping[str, DeviceClass] | None = None
    claims: Mapping[str, Claim] | None = None
    templates: Mapping[str, tuple[Request, ...]] | None = None
    """The requests of the claims that they make, by namespace and name, as with claims."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    is_partial: bool = False
    """Whether it is from files, which have what somebody thought of."""

    @cached_property
    def pools(self) -> Mapping[tuple[str, str], Sequence[Slice]]:
        """The slices by driver and pool."""
        found: dict[tuple[str, str], list[Slice]] = {}
        for each in self.slices or ():
            found.setdefault((each.driver, each.pool), []).append(each)
        return found

    def devices(self, node: str = "") -> Iterator[Device]:
        """Yield the devices that the scheduler sees: of a node, or of all."""
        for slices in self.pools.values():
            newest = newest_of(slices)
            if len(newest) != newest[0].count:
                continue  # it waits for the others
            for each in (device for one in newest for device in one.devices):
                if not node or each.node in ("", node):
                    yield each

    @cached_property
    def counters(self) -> Mapping[tuple[str, str, str], Mapping[str, int]]:
        """How much each set of counters has, by driver, pool and its name."""
        return {
            (*pool, name): counters
            for pool, slices in self.pools.items()
            for each in newest_of(slices)
            for name, counters in each.counters.items()
        }

    @cached_property
    def held(self) -> Mapping[tuple[str, str, str], Sequence[Held]]:
        """What claims have of each device. Who only looks at one (admin access) has nothing."""
        found: dict[tuple[str, str, str], list[Held]] = {}
        for claim in (self.claims or {}).values():
            for result in claim.results:
                if not result.is_admin:
                    found.setdefault(result.device, []).append(Held(claim, result))
        return found

    @cached_property
    def drained(self) -> Mapping[tuple[str, str, str], Sequence[Drain]]:
        """What is taken of each set of counters: by a device once, however many claims share it."""
        found: dict[tuple[str, str, str], list[Drain]] = {}
        for device in self.devices():
            if held := self.held.get(device.id):
                for name, counters in device.consumes:
                    place = device.driver, device.pool, name
                    found.setdefault(place, []).append(Drain(held, counters))
        return found

    def class_for(self, resource: str) -> DeviceClass | None:
        """Return the class that stands for an extended resource; None: none does."""
        classes = self.classes or {}
        if resource.startswith(_IMPLICIT):
            return classes.get(resource.removeprefix(_IMPLICIT))
        return next((each for each in classes.values() if each.resource == resource), None)


NOTHING = DraFound()


def newest_of(slices: Sequence[Slice]) -> Sequence[Slice]:
    """Return a pool's slices of its newest generation: the scheduler passes over the others."""
    newest = max(each.generation for each in slices)
    return [each for each in slices if each.generation == newest]


def read(
    documents: Mapping[str, Iterable[object]], lacks: Mapping[str, str], *, is_partial: bool = False
) -> DraFound:
    """Read what was found of each resource; one that isn't there isn't known."""

    def all_of(name: str) -> list[object] | None:
        return [*documents[name]] if name in documents else None

    slices, classes, claims, templates = map(all_of, (SLICES, CLASSES, CLAIMS, TEMPLATES))
    read_claims = None if claims is None else [Claim.read(each) for each in claims]
    read_classes = None if classes is None else [DeviceClass.read(each) for each in classes]
    return DraFound(
        None if slices is None else [Slice.read(each) for each in slices],
        None if read_classes is None else {each.name: each for each in read_classes},
        None if read_claims is None else {each.full_name: each for each in read_claims},
        None if templates is None else dict(map(_template, templates)),
        lacks,
        is_partial,
    )


def _template(document: object) -> tuple[str, tuple[Request, ...]]:
    metadata = part(document, "metadata")
    name = f"{text(metadata, 'namespace') or 'default'}/{text(metadata, 'name')}"
    return name, requests(part(part(document, "spec"), "spec"))
