"""Which pod the kubelet asks for: it doesn't say, so it is found by what HAMi wrote. Pure."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Self

from hami_mock.hami.assignment import (
    BIND_TIME,
    AssignedDevice,
    Assignment,
    awaits_devices,
)
from hami_mock.hami.errors import Malformed
from hami_mock.kit.text import cut
from hami_mock.node.pods import Pod
from hami_mock.node.resources import Resource
from hami_mock.sources.pods import read_pod
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.vendors.handout import Claim, has_claims, next_claim

_TIME = re.compile("[0-9]{1,19}")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WaitingPod:
    """A pod that HAMi's scheduler has bound to this node; `version` is the object's.

    `spec` is what its containers ask for; what it says of annotations is old after the first.
    `shared` is what the node's other pods have in the annotation that decides what is left for it.
    """

    namespace: str
    name: str
    uid: str
    version: str
    annotations: Mapping[str, str]
    spec: Pod
    shared: tuple[str, ...] = ()

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> Self:
        metadata = pod["metadata"]
        return cls(
            metadata["namespace"],
            metadata["name"],
            metadata.get("uid", ""),
            metadata["resourceVersion"],
            metadata.get("annotations") or {},
            read_pod(pod),
        )

    @classmethod
    def seen(cls, pod: Pod) -> Self:
        """Return a pod that a watch has told of. Nothing can be written on it."""
        return cls(pod.namespace, pod.name, pod.uid, "", pod.annotations, pod)

    def __str__(self) -> str:
        return cut(f"{self.namespace}/{self.name}")

    def next(self, vendor: HamiVendor, size: int) -> Claim | None:
        """Return what the kubelet asks for if it asks for so many devices.

        Raises Malformed, and nothing else: whatever anybody wrote on a pod hinders no other pod.
        """
        try:
            return next_claim(vendor, self.annotations, size)
        except Malformed:
            raise
        except Exception as error:
            _log.debug("pod %s can't be read", self, exc_info=True)
            raise Malformed(f"{type(error).__name__}: {error}") from error

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


def has_ended(pod: Mapping[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") in ("Failed", "Succeeded")


def left_to_allocate(
    pod: WaitingPod, resource_name: str, vendor: HamiVendor
) -> list[tuple[str, tuple[AssignedDevice, ...]]]:
    """Return the containers that have yet to get devices, and these; none: it can't be told.

    Raises Malformed.
    """
    if vendor.scheduling.next_claim:
        return []
    names = (*pod.spec.init_containers, *pod.spec.containers)
    asking = [name for name in names if pod.spec.requests.get(name, {}).get(resource_name)]
    segments = Assignment.parse(pod.annotations.get(vendor.pods.to_allocate, "")).containers
    left = [devices for devices in segments if devices]
    # The first have theirs already.
    return [*zip(asking[-len(left) :], left, strict=True)] if 0 < len(left) <= len(asking) else []


def problem(pod: WaitingPod, vendor: HamiVendor) -> str:
    """Return why it can't be read what a pod waits for; "" if it can."""
    try:
        pod.next(vendor, 0)
    except Malformed as error:
        return str(error)
    return ""


class Fit(IntEnum):
    """How well what a pod waits for fits what the kubelet asks for, the best first."""

    FITS = 0
    OTHER = 1
    UNREADABLE = 2
    NOTHING = 3


def fit(pod: WaitingPod, vendor: HamiVendor, sizes: Sequence[int]) -> Fit:
    try:
        if pod.next(vendor, 0) is None:
            return Fit.NOTHING
        for size in sizes:
            claim = pod.next(vendor, size)
            if claim is None or claim.size != size:
                return Fit.OTHER
            pod = pod.having(claim.taken)
    except Malformed:
        return Fit.UNREADABLE
    return Fit.FITS


def choose(
    locked: Sequence[WaitingPod],
    others: Sequence[WaitingPod],
    vendor: HamiVendor,
    sizes: Sequence[int],
) -> WaitingPod | None:
    """Return the first pod that fits; if none does, the first that has any: it is to fail.

    `locked` are those that the node is locked for. Of the others, one that can't be read is the
    last that the kubelet could mean: anybody can write such a pod.
    """
    found = [(fit(pod, vendor, sizes), pod) for pod in locked]
    found = [(Fit.OTHER if how is Fit.UNREADABLE else how, pod) for how, pod in found]
    found += [(fit(pod, vendor, sizes), pod) for pod in others]
    how, pod = min(found, key=lambda each: each[0], default=(Fit.NOTHING, None))
    return None if how is Fit.NOTHING else pod


def by_bind_time(pods: Iterable[WaitingPod]) -> list[WaitingPod]:
    """Return pods in the order in which they were bound: the kubelet mostly keeps to it."""
    return sorted(pods, key=lambda pod: bind_time(pod.annotations))


def bind_time(annotations: Mapping[str, str]) -> int:
    """Return when a pod was bound, in seconds since 1970; 0: it doesn't say."""
    text = annotations.get(BIND_TIME, "")
    return int(text) if _TIME.fullmatch(text) else 0
