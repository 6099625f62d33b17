"""A Pod of Kubernetes, as the API server's JSON has it: what we look at, with types. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

from hami_mock.hami.assignment import ASSIGNED_NODE
from hami_mock.sources.annotated.node_object import amounts, part, text, texts

AGENT = ("app.kubernetes.io/name", "hami-mock")
"""The label of the agent's pods in the manifests and the chart."""
_VARIABLE = "HAMI_MOCK_"


@dataclass(frozen=True)
class Container:
    """A container and the resources it asks for; a limit counts for a request, as for HAMi."""

    name: str
    asks: Mapping[str, int] = field(hash=False)
    is_init: bool = False


class PodClaim(NamedTuple):
    """A claim of a pod: the one that it names, or that was made from a template, if it was.

    `is_made`: nothing more is to be made, whether or not the pod needs a claim.
    """

    name: str
    claim: str
    template: str = ""
    is_made: bool = True


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
    claims: tuple[PodClaim, ...] = ()
    by_dra: frozenset[str] = frozenset()
    """The resources that it asks for and has by a claim that the scheduler made."""
    is_prepared: bool = True
    """Whether the kubelet has not said that it has yet to make the pod ready for containers."""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What is said to hami-mock in its own pods: names of options, and values."""

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
            claims=tuple(_claims(spec, status)),
            by_dra=frozenset(
                text(row, "resourceName")
                for row in _rows(part(status, "extendedResourceClaimStatus"), "requestMappings")
            ),
            is_prepared=("PodReadyToStartContainers", "False")
            not in ((kind, value) for kind, value, _ in conditions(status)),
            options=_options(spec, texts(metadata, "labels").get(AGENT[0]) == AGENT[1]),
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


def _claims(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[PodClaim]:
    """Yield the claims; what was made from a template has a name of its own in the status."""
    made = {
        text(row, "name"): text(row, "resourceClaimName")
        for row in _rows(status, "resourceClaimStatuses")
    }
    for row in _rows(spec, "resourceClaims"):
        name, template = text(row, "name"), text(row, "resourceClaimTemplateName")
        own = text(row, "resourceClaimName") or made.get(name, "")
        yield PodClaim(name, own, template, bool(own) or name in made)
    extended = text(part(status, "extendedResourceClaimStatus"), "resourceClaimName")
    if extended:
        yield PodClaim("extended resources", extended)


def _options(spec: Mapping[str, Any], is_agent: bool) -> dict[str, str]:
    """Return HAMI_MOCK_DRA=… as dra, and --dra … of the agent's command over it."""
    found = {}
    for container in _rows(spec, "containers"):
        for row in _rows(container, "env"):
            prefix, _, name = text(row, "name").partition(_VARIABLE)
            if name and not prefix:
                found[name.lower().replace("_", "-")] = text(row, "value")
        args = container.get("args")
        words = [each for each in args if isinstance(each, str)] if isinstance(args, list) else []
        for word, after in pairwise([*words, ""]):
            if is_agent and word.startswith("--"):
                name, is_one, value = word[2:].partition("=")
                found[name] = value if is_one else after
    return found


def _container(document: Mapping[str, Any], *, is_init: bool) -> Container:
    resources = part(document, "resources")
    asks = {**amounts(resources, "requests"), **amounts(resources, "limits")}
    return Container(text(document, "name"), asks, is_init)
