"""What HAMi says about MIG: profiles with placements since 2.10, geometries before."""

from dataclasses import dataclass

from hami_mock.hami.go_values import INT32, UINT32, Struct


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

PLACEMENT = Struct(MigPlacement, (("start", "start", UINT32), ("size", "size", UINT32)))
PROFILE = Struct(
    MigProfile,
    (
        ("name", "name", str),
        ("memory", "memoryMB", INT32),
        ("cores", "core", INT32),
        ("slices", "sliceCount", UINT32),
        ("placements", "placements", [PLACEMENT]),
    ),
)
TEMPLATE = Struct(
    MigTemplate,
    (
        ("name", "Name", str),
        ("cores", "Core", INT32),
        ("memory", "Memory", INT32),
        ("count", "Count", INT32),
    ),
)
