"""What the scheduler assigned to a pod: the annotations …-devices-to-allocate and …-allocated.

`:` ends a device and `;` a container, init containers first::

    GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,3000,30:;;GPU-1,NVIDIA,1000,0:;

A container without devices should be an empty segment. But the scheduler files the segments of such
containers under the card's model instead of the vendor's word, so a pod whose first container has
none gets one segment too few (unless a vendor's cards are called by its word). So a segment's
position says nothing sure: the kubelet allocates in the containers' order, and whoever allocates
takes the first segment that isn't empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from hami_mock.hami.errors import Malformed
from hami_mock.hami.go_values import INT32, MOST, bounded, refusal, whole

ASSIGNED_NODE = "hami.io/vgpu-node"
ASSIGNED_TIME = "hami.io/vgpu-time"
BIND_TIME = "hami.io/bind-time"
BIND_PHASE = "hami.io/bind-phase"


class BindPhase(StrEnum):
    """How far a pod got: the scheduler writes the first, the node side one of the others."""

    ALLOCATING = "allocating"
    SUCCESS = "success"
    FAILED = "failed"


@dataclass(frozen=True)
class AssignedDevice:
    """A part of a card for a container. The type is the vendor's word, the memory in MiB."""

    id: str
    type: str
    memory: int
    cores: int


@dataclass(frozen=True)
class Assignment:
    """The devices of each container that has any, with empty ones for (some) others."""

    containers: tuple[tuple[AssignedDevice, ...], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an annotation's value. Raises Malformed for what HAMi refuses."""
        if (parts := bounded(text).count(";") + text.count(":")) > MOST:
            raise Malformed(
                f"the value has {parts} devices and containers; at most {MOST} are allowed"
            )
        segments = text.removesuffix(";").split(";") if text else []
        return cls(tuple(_read_segment(each, f"container {i}") for i, each in enumerate(segments)))

    def encode(self) -> str:
        return "".join(
            "".join(f"{each.id},{each.type},{each.memory},{each.cores}:" for each in devices) + ";"
            for devices in self.containers
        )

    def pop(self) -> tuple[tuple[AssignedDevice, ...], Self]:
        """Return the devices of the next container (none if none are left), and what is left."""
        for i, devices in enumerate(self.containers):
            if devices:
                rest = (*self.containers[:i], (), *self.containers[i + 1 :])
                return devices, type(self)(rest)
        return (), self


def awaits_devices(annotations: Mapping[str, str], node_name: str) -> bool:
    """Tell whether a pending pod with these annotations waits for devices of that node.

    "success" counts too: a pod of several containers may have got it after its first.
    """
    return (
        BIND_TIME in annotations
        and annotations.get(BIND_PHASE) in (BindPhase.ALLOCATING, BindPhase.SUCCESS)
        and annotations.get(ASSIGNED_NODE) == node_name
    )


def _read_segment(segment: str, place: str) -> tuple[AssignedDevice, ...]:
    # HAMi passes over what has no comma, also between colons.
    records = (record for record in segment.split(":") if "," in record)
    return tuple(_read_device(each, f"{place}, device {i}") for i, each in enumerate(records))


def _read_device(record: str, place: str) -> AssignedDevice:
    fields = record.split(",")
    if len(fields) < 4:
        raise refusal(place, record, "ID, type, memory and cores separated by commas")
    return AssignedDevice(
        id=fields[0],
        type=fields[1],
        memory=whole(fields[2], f"{place}: memory", INT32),
        cores=whole(fields[3], f"{place}: cores", INT32),
    )
