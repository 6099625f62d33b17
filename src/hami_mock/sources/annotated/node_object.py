"""A Node of Kubernetes, as the API server's JSON has it: what we look at, with types. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from hami_mock.kit.quantities import quantity
from hami_mock.kubelet.limits import Version, parse_version


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


def version_of(document: Mapping[str, Any]) -> Version | None:
    """Return the version of a node's kubelet; None if the node doesn't say."""
    told = text(part(part(document, "status"), "nodeInfo"), "kubeletVersion")
    try:
        return parse_version(told)
    except ValueError:
        return None  # counts as the newest
