"""A pod that is examined, and what is known of the node that it is for."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from hami_mock.doctor.case import NodeCase
from hami_mock.doctor.known import names_of, vendors_of
from hami_mock.doctor.pod_object import Container, PodObject
from hami_mock.hami.register import RegisteredDevice
from hami_mock.settings.hami_config.device_config import DeviceConfig
from hami_mock.vendors.hami_vendor import HamiVendor

SCHEDULER = "hami-scheduler"
"""What HAMi's chart calls its scheduler."""


@dataclass(frozen=True)
class PodCase:
    """A pod, the time, and the node if it is known which."""

    pod: PodObject
    now: datetime
    node: NodeCase | None = None
    config: DeviceConfig | None = None
    scheduler: str = SCHEDULER
    elsewhere: tuple[NodeCase, ...] = ()
    """Nodes that it may be for, if it isn't known which."""

    @property
    def candidates(self) -> tuple[NodeCase, ...]:
        """The nodes that the pod is or may be for."""
        return (self.node,) if self.node else self.elsewhere

    @property
    def vendors(self) -> tuple[HamiVendor, ...]:
        """The vendors that HAMi knows."""
        return vendors_of(self.config)

    @property
    def asked(self) -> list[HamiVendor]:
        """The vendors of which the pod asks for anything."""
        asks = set(self.pod.asks)
        return [vendor for vendor in self.vendors if asks & set(names_of(vendor.resources))]

    @property
    def is_settled(self) -> bool:
        """Whether nobody has to decide about the pod any more."""
        return self.pod.has_ended or self.pod.phase == "Running"

    def cards(self, vendor: HamiVendor) -> tuple[RegisteredDevice, ...]:
        """Return the vendor's cards on the node, as far as known."""
        return self.node.cards(vendor) if self.node else ()

    def containers_asking(self, vendor: HamiVendor) -> Iterator[tuple[Container, int]]:
        """Yield the containers that ask for cards of a vendor, and for how many."""
        for container in self.pod.containers:
            if count := container.asks.get(vendor.resources.count, 0):
                yield container, 1 if vendor.scheduling.asks_slices else count
