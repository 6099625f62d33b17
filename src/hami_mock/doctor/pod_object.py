"""A Pod of Kubernetes, as the API server's JSON has it: what we look at, with types. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from hami_mock.hami.assignment import ASSIGNED_NODE
from hami_mock.sources.annotated.node_object import amounts, part, text, texts


@dataclass(frozen=True)
class Container:
    """A container and the resources it asks for; a limit counts for a request, as for HAMi."""

    name: str
    asks: Mapping[str, int] = field(hash=False)
    is_init: bool = False


@dataclass(frozen=True)
class PodObject:
    """A pod. Init containers come first, as in HAMi's annotations."""

    namespace: str
    name: str
    annotations: Mapping[str, str] = field(hash=False)
    labels: Mapping[str, str] = field(hash=False)
    scheduler: str
    node_name: str
    phase: str
    reason: str
    message: str
    unscheduled: str
    containers: tuple[Container, ...]

    @classmethod
    def read(cls, document: object) -> Self:
        """Read a Pod as the API server or `kubectl get pod -o json` gives it."""
        metadata, spec, status = (part(document, key) for key in ("metadata", "spec", "status"))
        told = (
            message
            for kind, value, message in conditions(status)
            if (kind, value) == ("PodScheduled", "False")
        )
        return cls(
            namespace=text(metadata, "namespace") or "default",
            name=text(metadata, "name"),
            annotations=texts(metadata, "annotations"),
            labels=texts(metadata, "labels"),
            scheduler=text(spec, "schedulerName"),
            node_name=text(spec, "nodeName"),
            phase=text(status, "phase"),
            reason=text(status, "reason"),
            message=text(status, "message"),
            unscheduled=next(told, ""),
            containers=tuple(
                _container(each, is_init=key == "initContainers")
                for key in ("initContainers", "containers")
                for each in _rows(spec, key)
            ),
        )

    @property
    def for_node(self) -> str:
        """The node that it is on, or that HAMi assigned it to, if any."""
        return self.node_name or self.annotations.get(ASSIGNED_NODE, "")

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def has_ended(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")

    @cached_property
    def asks(self) -> dict[str, int]:
        """What the pod asks for: containers together, or an init container that asks for more."""
        most: Counter[str] = Counter()
        for container in sorted(self.containers, key=lambda each: each.is_init):
            if container.is_init:
                most |= Counter(container.asks)
            else:
                most.update(container.asks)
        return {name: amount for name, amount in most.items() if amount}


def conditions(status: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield type, status and message of each condition."""
    for row in _rows(status, "conditions"):
        yield text(row, "type"), text(row, "status"), text(row, "message")


def _rows(document: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    value = document.get(key)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _container(document: Mapping[str, Any], *, is_init: bool) -> Container:
    resources = part(document, "resources")
    asks = {**amounts(resources, "requests"), **amounts(resources, "limits")}
    return Container(text(document, "name"), asks, is_init)
