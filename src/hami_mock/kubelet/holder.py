"""A container that holds devices. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Container = tuple[str, str, str]
"""The namespace, the pod and the container's name."""


@dataclass(frozen=True)
class Holder:
    """A container and the IDs of the devices that it holds, by resource.

    `container` is None for devices that were given a moment ago: the kubelet tells a device plugin
    how many devices it wants, never for whom.

    `cards` are the UUIDs of the cards that such devices were given for, one for each, where
    somebody else than the kubelet has chosen them; whose the devices are then says nothing.
    """

    container: Container | None
    devices: Mapping[str, Sequence[str]]
    cards: Sequence[str] = ()

    @property
    def ids(self) -> set[str]:
        return {device_id for ids in self.devices.values() for device_id in ids}
