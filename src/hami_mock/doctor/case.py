"""What an examination looks at: a node or a pod, vendors, other pods, and the time. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from hami_mock.doctor.dra_found import NOTHING, DraFound
from hami_mock.doctor.pod_object import Container, PodObject
from hami_mock.hami.errors import Malformed
from hami_mock.hami.register import RegisteredDevice, decode
from hami_mock.kubelet.limits import Version, parse_version
from hami_mock.settings.hami_config.device_config import DeviceConfig
from hami_mock.sources.annotated.node_object import NodeObject, part, text
from hami_mock.vendors import VENDORS
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.views import status_note

SCHEDULER = "hami-scheduler"
"""What HAMi's chart calls its scheduler."""

LOCKS = tuple(dict.fromkeys(vendor.hami.lock for vendor in VENDORS if vendor.hami.lock))
"""The locks that a node can have."""


def vendors_of(config: DeviceConfig | None) -> tuple[HamiVendor, ...]:
    """Return the vendors that a scheduler with this configuration knows; None: HAMi's defaults."""
    if config is not None:
        return tuple(config.vendors.values())
    return tuple(chip for vendor in VENDORS for chip in vendor.chips.values())


def names_of(vendor: HamiVendor) -> list[str]:
    """Return the names of a vendor's resources, the one that counts cards first."""
    names = vendor.resources
    return [*filter(None, (names.count, names.memory, names.cores, names.percentage))]


@dataclass(frozen=True)
class VendorCase:
    """A vendor on the node: the cards of its annotation, or what is wrong with that."""

    vendor: HamiVendor
    register: str | None
    cards: tuple[RegisteredDevice, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class NodeCase:
    """A node and all around it.

    `pods` are the node's, and the one that its lock names; None if nobody knows them. `refusal` is
    why the pod that asks may not write the node's status; "" if it may, or nobody has tried.
    """

    document: Mapping[str, Any]
    now: datetime
    config: DeviceConfig | None = None
    pods: Sequence[PodObject] | None = None
    refusal: str = ""
    dra: DraFound = NOTHING
    known: Sequence[PodObject] = ()
    """Pods that are known where it isn't known whether these are all."""
    gates_off: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The feature gates that the node's agent found off, by its DRA driver."""

    @cached_property
    def node(self) -> NodeObject:
        return NodeObject.read(self.document)

    @cached_property
    def in_status(self) -> Mapping[str, int | None]:
        """The resources that an agent of hami-mock keeps in the node's status, as it noted."""
        return status_note.read(self.node.annotations)

    @cached_property
    def version(self) -> Version | None:
        told = text(part(part(self.document, "status"), "nodeInfo"), "kubeletVersion")
        try:
            return parse_version(told)
        except ValueError:
            return None  # counts as the newest

    @cached_property
    def vendors(self) -> Sequence[VendorCase]:
        """The vendors that have anything to do with the node."""
        there = {*self.node.capacity, *self.asked(self.pods or ())}
        annotations = {name for name in self.node.annotations if name}
        return [
            self._read(vendor)
            for vendor in vendors_of(self.config)
            if vendor.node.register in annotations or there & set(names_of(vendor))
        ]

    def _read(self, vendor: HamiVendor) -> VendorCase:
        """Read the vendor's annotation as the scheduler does."""
        value = self.node.annotations.get(vendor.node.register)
        if value is None or vendor.node.encoding is None:
            return VendorCase(vendor, value)
        try:
            return VendorCase(vendor, value, decode(value, vendor.node.encoding, self.node.name))
        except Malformed as error:
            return VendorCase(vendor, value, problem=str(error))

    def allocatable(self, name: str) -> int:
        return self.node.allocatable.get(name, 0)

    def has_by_dra(self, name: str) -> bool:
        """Tell whether pods get a resource by DRA: no plugin offers it, and a class does."""
        return not self.allocatable(name) and self.dra.class_for(name) is not None

    def asked(self, pods: Iterable[PodObject]) -> set[str]:
        """Return what pods ask of the node in another way than by DRA."""
        return {
            name
            for pod in pods
            for name in pod.asks
            if name not in pod.by_dra and not self.has_by_dra(name)
        }

    @cached_property
    def own(self) -> Sequence[PodObject]:
        """The pods on the node that are known and haven't ended."""
        some = self.known if self.pods is None else self.pods
        return [pod for pod in some if pod.node_name == self.node.name and not pod.has_ended]

    def cards(self, vendor: HamiVendor) -> tuple[RegisteredDevice, ...]:
        """Return a vendor's cards here, as far as they are known."""
        found = (seen.cards for seen in self.vendors if seen.vendor.word == vendor.word)
        return next(found, ())

    @cached_property
    def _holding(self) -> Mapping[str, PodObject]:
        own = (each for each in self.pods or () if each.node_name == self.node.name)
        return {each.full_name: each for each in own if not each.has_ended}

    def others(self, pod: PodObject) -> Iterator[PodObject]:
        """Yield the other pods that hold something of the node."""
        return (each for name, each in self._holding.items() if name != pod.full_name)


@dataclass(frozen=True)
class PodCase:
    """A pod, the time, and the node if it is known which."""

    pod: PodObject
    now: datetime
    node: NodeCase | None = None
    config: DeviceConfig | None = None
    scheduler: str = SCHEDULER
    elsewhere: Sequence[NodeCase] = ()
    """Nodes that it may be for, if it isn't known which."""
    dra: DraFound = NOTHING

    def has_by_dra(self, name: str) -> bool:
        """Tell whether it would get a resource by DRA, on every node that it may be for."""
        nodes = (self.node,) if self.node else self.elsewhere
        is_there = self.dra.class_for(name) is not None
        return is_there and all(not node.allocatable(name) for node in nodes)

    @property
    def asked(self) -> list[HamiVendor]:
        """The vendors of which the pod asks for anything in HAMi's way."""
        asks = {name for name in self.pod.asks if not self.has_by_dra(name)}
        return [vendor for vendor in vendors_of(self.config) if asks & set(names_of(vendor))]

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
