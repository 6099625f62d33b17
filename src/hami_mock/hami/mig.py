"""What HAMi says about MIG: profiles with placements since 2.10, geometries before."""

from dataclasses import dataclass
from typing import Any

from hami_mock.hami.go_values import INT32, UINT32, Fields, refusal


@dataclass(frozen=True)
class MigPlacement:
    """Where on a card an instance can stand: the first memory slice, and how many."""

    start: int
    size: int


@dataclass(frozen=True)
class MigProfile:
    """A kind of instance that a card can be cut into (3g.20gb): MiB, percent, compute slices."""

    name: str
    memory: int
    cores: int
    slices: int
    placements: tuple[MigPlacement, ...] = ()


@dataclass(frozen=True)
class MigTemplate:
    """Some instances of one kind, as a part of a geometry."""

    name: str
    memory: int
    cores: int
    count: int


MigGeometry = tuple[MigTemplate, ...]
"""One way to cut a whole card."""


def read_profile(value: object, place: str) -> MigProfile:
    """Return an element of `migProfiles`. Raises Malformed."""
    fields = Fields(value, place)
    return MigProfile(
        name=fields.text("name"),
        memory=fields.whole("memoryMB", INT32),
        cores=fields.whole("core", INT32),
        slices=fields.whole("sliceCount", UINT32),
        placements=tuple(_read_placement(*element) for element in fields.elements("placements")),
    )


def write_profile(profile: MigProfile) -> dict[str, Any]:
    """Return an element of `migProfiles`."""
    return {
        "name": profile.name,
        "memoryMB": profile.memory,
        "core": profile.cores,
        "sliceCount": profile.slices,
        "placements": [{"start": each.start, "size": each.size} for each in profile.placements],
    }


def read_geometry(value: object, place: str) -> MigGeometry:
    """Return an element of `migtemplate`. Raises Malformed."""
    if not isinstance(value, list | None):
        raise refusal(place, value, "a list")
    return tuple(_read_template(each, f"{place}[{i}]") for i, each in enumerate(value or ()))


def write_geometry(geometry: MigGeometry) -> list[dict[str, Any]]:
    """Return an element of `migtemplate`, with the capitals that HAMi gives its keys."""
    return [
        {"Name": each.name, "Core": each.cores, "Memory": each.memory, "Count": each.count}
        for each in geometry
    ]


def _read_placement(value: object, place: str) -> MigPlacement:
    fields = Fields(value, place)
    return MigPlacement(fields.whole("start", UINT32), fields.whole("size", UINT32))


def _read_template(value: object, place: str) -> MigTemplate:
    fields = Fields(value, place)
    return MigTemplate(
        name=fields.text("name"),
        memory=fields.whole("memory", INT32),
        cores=fields.whole("core", INT32),
        count=fields.whole("count", INT32),
    )
