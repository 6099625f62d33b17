"""A Node of Kubernetes, as the API server's JSON has it: what we look at, with types. Pure."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Self

from hami_mock.kubelet.limits import Version, parse_version

# Short enough that no exponent makes a number that takes memory.
_QUANTITY = re.compile(
    r"([+-]?[0-9]{1,18}(?:\.[0-9]{0,18})?)(?:[eE]([+-]?[0-9]{1,2})|(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?"
)
_SUFFIXES = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    **{letter: Decimal(1000) ** (i + 2) for i, letter in enumerate("MGTPE")},
    **{f"{letter}i": Decimal(1024) ** (i + 1) for i, letter in enumerate("KMGTPE")},
}


@dataclass(frozen=True)
class NodeObject:
    """A node's name, annotations and resources; what isn't of the type it should be isn't there."""

    name: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    capacity: Mapping[str, int] = field(default_factory=dict, hash=False)
    allocatable: Mapping[str, int] = field(default_factory=dict, hash=False)

    @classmethod
    def read(cls, document: object) -> Self:
        """Read a Node as the API server or `kubectl get node -o json` gives it."""
        metadata, status = part(document, "metadata"), part(document, "status")
        return cls(
            name=text(metadata, "name"),
            annotations=texts(metadata, "annotations"),
            capacity=amounts(status, "capacity"),
            allocatable=amounts(status, "allocatable"),
        )


def part(document: object, key: str) -> Mapping[str, Any]:
    """Return an object in another one; absent, or of another type, is empty."""
    value = document.get(key) if isinstance(document, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def texts(document: object, key: str) -> dict[str, str]:
    """Return the strings of a mapping of strings (annotations, labels)."""
    return {str(k): v for k, v in part(document, key).items() if isinstance(v, str)}


def amounts(document: object, key: str) -> dict[str, int]:
    """Return the whole numbers of a mapping of quantities (capacity, limits)."""
    read = {str(name): quantity(value) for name, value in part(document, key).items()}
    return {name: number for name, number in read.items() if number is not None}


def quantity(value: object) -> int | None:
    """Return a quantity of Kubernetes ("20", "1k", "4Gi", "100m") rounded up; None for no such."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, int) and abs(value) >= 10**18:
        return None  # nor would Python write out one of thousands of digits
    found = _QUANTITY.fullmatch(str(value))
    if found is None:
        return None
    number, exponent, suffix = found.groups()
    return math.ceil(Decimal(number).scaleb(int(exponent or 0)) * _SUFFIXES[suffix or ""])


def version_of(document: Mapping[str, Any]) -> Version | None:
    """Return the version of a node's kubelet; None if the node doesn't say."""
    told = text(part(part(document, "status"), "nodeInfo"), "kubeletVersion")
    try:
        return parse_version(told)
    except ValueError:
        return None  # counts as the newest
