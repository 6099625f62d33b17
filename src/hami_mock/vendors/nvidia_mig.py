"""What cards can be cut into, by model: what HAMi's plugin learns from NVIDIA's driver.

The plugin registers the profiles that HAMi's configuration allows for a model; these are the ones
of its chart, by the chart's names. Cards have eight memory slices and seven of compute, or four of
both. A30's and A100's memory is what the driver says; that of the others is a share of the card's.
"""

import math
from dataclasses import dataclass

from hami_mock.hami.mig import MigPlacement, MigProfile
from hami_mock.vendors.catalog import Model


@dataclass(frozen=True)
class _Shape:
    """An instance of some compute slices: how many memory slices it has, and where it may begin."""

    size: int
    starts: tuple[int, ...]


_SEVENTHS = {
    1: _Shape(1, (0, 1, 2, 3, 4, 5, 6)),
    2: _Shape(2, (0, 2, 4)),
    3: _Shape(4, (0, 4)),
    7: _Shape(8, (0,)),
}
_QUARTERS = {1: _Shape(1, (0, 1, 2, 3)), 2: _Shape(2, (0, 2)), 4: _Shape(4, (0,))}


@dataclass(frozen=True)
class _Kind:
    """Models that can be cut into the same profiles. `memory` is MiB of each, where it is known."""

    models: tuple[str, ...]
    profiles: tuple[str, ...]
    memory: tuple[int, ...] = ()


_KINDS = (
    _Kind(("A30",), ("1g.6gb", "2g.12gb", "4g.24gb"), (5836, 11672, 23344)),
    _Kind(
        ("A100-PCIE-40GB", "A100-SXM4-40GB"),
        ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"),
        (4864, 9856, 19968, 40192),
    ),
    _Kind(
        ("A100-PCIE-80GB", "A100-SXM4-80GB", "A800-PCIE-80GB", "A800-SXM4-80GB"),
        ("1g.10gb", "2g.20gb", "3g.40gb", "7g.79gb"),
        (9856, 19968, 40192, 80384),
    ),
    _Kind(
        ("H100-PCIE-80GB", "H100-SXM5-80GB", "H800-PCIE-80GB", "H800-SXM5-80GB"),
        ("1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"),
    ),
    _Kind(("H100-NVL-94GB",), ("1g.12gb", "2g.24gb", "3g.47gb", "7g.94gb")),
    _Kind(("H20", "GH200"), ("1g.12gb", "2g.24gb", "3g.48gb", "7g.96gb")),
    _Kind(("H200-NVL-141GB", "H200-SXM-141GB"), ("1g.18gb", "2g.35gb", "3g.71gb", "7g.141gb")),
    _Kind(("B200",), ("1g.23gb", "2g.45gb", "3g.90gb", "7g.180gb")),
    _Kind(("RTX-PRO-6000",), ("1g.24gb", "2g.48gb", "4g.96gb")),
)


def profiles(model: Model) -> tuple[MigProfile, ...]:
    """Return what a card of that model can be cut into; nothing if it can't be cut."""
    kind = next((kind for kind in _KINDS if model.name in kind.models), None)
    if kind is None:
        return ()
    slices = [int(name.partition("g.")[0]) for name in kind.profiles]
    shapes = _SEVENTHS if max(slices) == 7 else _QUARTERS
    whole = shapes[max(slices)].size
    memory = kind.memory or [model.memory * shapes[each].size // whole for each in slices]
    return tuple(
        MigProfile(
            name=name,
            memory=mib,
            cores=math.ceil(each * 100 / max(slices)),
            slices=each,
            placements=tuple(MigPlacement(at, shapes[each].size) for at in shapes[each].starts),
        )
        for name, mib, each in zip(kind.profiles, memory, slices, strict=True)
    )
