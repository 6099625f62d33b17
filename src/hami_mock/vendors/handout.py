"""What a container gets of a pod's devices: what HAMi assigned, and what the plugin makes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hami_mock.hami.assignment import AssignedDevice, Assignment
from hami_mock.hami.environment import variables
from hami_mock.vendors.hami_vendor import HamiVendor


@dataclass(frozen=True)
class Claim:
    """The devices of one container that are still to be allocated.

    - size: how many the kubelet asks for
    - taken: the pod's annotations once the container has got them
    """

    position: int
    devices: tuple[AssignedDevice, ...]
    size: int
    taken: Mapping[str, str]


class Claims(Protocol):
    """Reads from a pod's annotations what is still to be allocated."""

    def next(self, annotations: Mapping[str, str], size: int) -> Claim | None:
        """Return what the kubelet asks for if it asks for so many devices; None: nothing is left.

        Raises Malformed. The claim may be of another size, and then the kubelet asks in vain.
        """


@dataclass(frozen=True)
class ToAllocate:
    """The annotation …-devices-to-allocate, which the plugins of most vendors empty."""

    annotation: str

    def next(self, annotations: Mapping[str, str], size: int) -> Claim | None:
        """Return the first container's that has any: the kubelet allocates in their order."""
        left = Assignment.parse(annotations.get(self.annotation, ""))
        if left.is_empty:
            return None
        position = next(i for i, devices in enumerate(left.containers) if devices)
        devices, rest = left.pop()
        return Claim(position, devices, len(devices), {self.annotation: rest.encode()})


@dataclass(frozen=True)
class Container:
    """A container that gets devices.

    - annotations: the pod's
    - visible: the cards of the devices, as the vendor's variable names them
    - unique: what no other container has
    """

    hami: HamiVendor
    annotations: Mapping[str, str]
    position: int
    devices: tuple[AssignedDevice, ...]
    visible: tuple[str, ...]
    unique: str
    mode: str = ""
    is_oversubscribed: bool = False


@dataclass(frozen=True)
class Given:
    """The variables of a container, and what the plugin writes on its pod."""

    variables: dict[str, str]
    annotations: dict[str, str] = field(default_factory=dict)


def claims_of(hami: HamiVendor) -> Claims | None:
    """Return where a vendor's plugin reads what to allocate; None: it takes what the kubelet says.

    That is so with the plugins of vendors that HAMi doesn't lock a node for, but for one.
    """
    special = hami.scheduling.claims
    if special:
        return special()
    return ToAllocate(hami.pods.to_allocate) if hami.scheduling.lock else None


def hand_out(container: Container) -> Given:
    """Return what a container gets."""
    special = container.hami.scheduling.hand_out
    return special(container) if special else Given(environment(container))


def environment(
    container: Container, more: tuple[tuple[str, str], ...] = (), **words: str
) -> dict[str, str]:
    """Return the variables of a container; a card that holds two of its devices is named once."""
    vendor, known = container.hami.vendor, container.hami.scheduling
    visible = ",".join(dict.fromkeys(container.visible))
    templates = (
        *known.variables,
        *(known.when_oversubscribed if container.is_oversubscribed else ()),
        *more,
    )
    return {
        **(dict.fromkeys(vendor.visible_devices, visible) if visible else {}),
        **variables(templates, container.devices, unique=container.unique, **words),
    }
