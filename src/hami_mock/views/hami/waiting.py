"""Which pod the kubelet asks for: it doesn't say, so it is found by what HAMi wrote. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from hami_mock.hami.assignment import BIND_TIME, awaits_devices
from hami_mock.hami.errors import Malformed
from hami_mock.node.resources import Resource
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.vendors.handout import Claim, has_claims, next_claim


@dataclass(frozen=True)
class WaitingPod:
    """A pod that HAMi's scheduler has bound to this node; `version` is the object's."""

    namespace: str
    name: str
    uid: str
    version: str
    annotations: Mapping[str, str]

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> Self:
        metadata = pod["metadata"]
        return cls(
            metadata["namespace"],
            metadata["name"],
            metadata.get("uid", ""),
            metadata["resourceVersion"],
            metadata.get("annotations") or {},
        )

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def next(self, vendor: HamiVendor, size: int) -> Claim | None:
        return next_claim(vendor, self.annotations, size)

    def having(self, written: Mapping[str, str]) -> Self:
        return replace(self, annotations={**self.annotations, **written})


def takes_part(resource: Resource) -> bool:
    """Tell whether HAMi assigns the devices of a resource before the kubelet asks for them."""
    vendor = resource.hami.vendor if resource.hami else None
    return bool(resource.has_slots and vendor and has_claims(vendor))


def waits(pod: Mapping[str, Any], node_name: str) -> bool:
    """Tell whether a pod could be the one: bound to this node, and not admitted yet."""
    metadata = pod["metadata"]
    return (
        pod.get("spec", {}).get("nodeName") == node_name
        and pod.get("status", {}).get("phase") == "Pending"
        and "deletionTimestamp" not in metadata
        and awaits_devices(metadata.get("annotations") or {}, node_name)
    )


def fits(pod: WaitingPod, vendor: HamiVendor, sizes: Sequence[int]) -> bool:
    for size in sizes:
        try:
            claim = pod.next(vendor, size)
        except Malformed:
            return False
        if claim is None or claim.size != size:
            return False
        pod = pod.having(claim.taken)
    return True


def choose(
    pods: Iterable[WaitingPod], vendor: HamiVendor, sizes: Sequence[int]
) -> WaitingPod | None:
    """Return the first pod that fits; if none does, the first that has any: it is to fail."""
    holding = [pod for pod in pods if _has_devices(pod, vendor)]
    fitting = [pod for pod in holding if fits(pod, vendor, sizes)]
    return next(iter((*fitting, *holding)), None)


def by_bind_time(pods: Iterable[WaitingPod]) -> list[WaitingPod]:
    """Return pods in the order in which they were bound: the kubelet mostly keeps to it."""

    def bind_time(pod: WaitingPod) -> int:
        text = pod.annotations.get(BIND_TIME, "")
        return int(text) if text.isascii() and text.isdecimal() else 0

    return sorted(pods, key=bind_time)


def _has_devices(pod: WaitingPod, vendor: HamiVendor) -> bool:
    try:
        return pod.next(vendor, 0) is not None
    except Malformed:
        return True  # nobody knows how many
