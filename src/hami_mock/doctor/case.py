"""What an examination looks at: a node, its vendors, its pods, and the time. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from hami_mock.doctor.known import names_of, vendors_of
from hami_mock.doctor.pod_object import PodObject, conditions
from hami_mock.hami.errors import Malformed
from hami_mock.hami.register import RegisteredDevice, decode
from hami_mock.kubelet.limits import Version, parse_version
from hami_mock.settings.hami_config.device_config import DeviceConfig
from hami_mock.sources.annotated.node_object import NodeObject, part, text
from hami_mock.vendors.hami_vendor import HamiVendor


@dataclass(frozen=True)
class VendorCase:
    """A vendor on the node: the cards of its annotation, or what is wrong with that."""

    vendor: HamiVendor
    register: str | None = None
    cards: tuple[RegisteredDevice, ...] = ()
    problem: str = ""

    @classmethod
    def read(cls, vendor: HamiVendor, node: NodeObject) -> Self:
        """Read the vendor's annotation as the scheduler does."""
        value = node.annotations.get(vendor.node.register)
        if value is None or vendor.node.encoding is None:
            return cls(vendor, value)
        try:
            return cls(vendor, value, decode(value, vendor.node.encoding, node.name))
        except Malformed as error:
            return cls(vendor, value, problem=str(error))


@dataclass(frozen=True)
class NodeCase:
    """A node and all around it. `pods` None: nobody knows which there are."""

    node: NodeObject
    now: datetime
    config: DeviceConfig | None = None
    pods: tuple[PodObject, ...] | None = None
    version: Version | None = None
    is_ready: bool = True
    not_ready: str = ""
    is_cordoned: bool = False
    vendors: tuple[VendorCase, ...] = field(default=())

    @classmethod
    def read(
        cls,
        document: Mapping[str, Any],
        pods: Iterable[PodObject] | None,
        now: datetime,
        config: DeviceConfig | None = None,
    ) -> Self:
        """Read a Node and look which vendors have anything to do with it."""
        node = NodeObject.read(document)
        is_ready, not_ready = _ready(document)
        known = None if pods is None else tuple(pods)
        asked = {name for pod in known or () for name in pod.asks}
        return cls(
            node=node,
            now=now,
            config=config,
            pods=known,
            version=_version(document),
            is_ready=is_ready,
            not_ready=not_ready,
            is_cordoned=part(document, "spec").get("unschedulable") is True,
            vendors=tuple(
                VendorCase.read(vendor, node)
                for vendor in vendors_of(config)
                if _is_here(vendor, node, asked)
            ),
        )

    def allocatable(self, name: str) -> int:
        """Return how much of a resource the kubelet would give; absent is none."""
        return self.node.allocatable.get(name, 0)

    def cards(self, vendor: HamiVendor) -> tuple[RegisteredDevice, ...]:
        """Return a vendor's cards here, as far as they are known."""
        found = (seen.cards for seen in self.vendors if seen.vendor.word == vendor.word)
        return next(found, ())

    def others(self, pod: PodObject) -> Sequence[PodObject]:
        """Return the other pods that hold something of the node."""
        return [
            each
            for each in self.pods or ()
            if each.full_name != pod.full_name
            and each.node_name == self.node.name
            and not each.has_ended
        ]


def _is_here(vendor: HamiVendor, node: NodeObject, asked: set[str]) -> bool:
    names = set(names_of(vendor.resources))
    has_cards = bool(vendor.node.register) and vendor.node.register in node.annotations
    return has_cards or bool(names & (set(node.capacity) | asked))


def _ready(document: Mapping[str, Any]) -> tuple[bool, str]:
    for kind, status, message in conditions(part(document, "status")):
        if kind == "Ready":
            return status == "True", message
    return True, ""


def _version(document: Mapping[str, Any]) -> Version | None:
    told = text(part(part(document, "status"), "nodeInfo"), "kubeletVersion")
    try:
        return parse_version(told)
    except ValueError:
        return None  # counts as the newest
