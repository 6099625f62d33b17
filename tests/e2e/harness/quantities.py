"""Kubernetes' way of writing numbers: 262,000 units come back as "262k"."""

from __future__ import annotations

import re
from collections.abc import Mapping

FACTORS: dict[str, int] = {
    "": 1,
    **{suffix: 1000**power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": 1024**power for power, suffix in enumerate("KMGTPE", start=1)},
}


def whole_number(quantity: str) -> int:
    """Raises ValueError for what isn't a whole number, such as "100m"."""
    match = re.fullmatch(r"(\d+)([a-zA-Z]*)", quantity)
    if match is None or match[2] not in FACTORS:
        raise ValueError(f"{quantity!r} is not a whole number of units")
    return int(match[1]) * FACTORS[match[2]]


def extended_resources(resources: Mapping[str, str]) -> dict[str, int]:
    """Those of a node's resources that device plugins give it: the ones of some vendor."""
    return {name: whole_number(told) for name, told in resources.items() if "/" in name}
