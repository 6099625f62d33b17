"""Cards, resources and files for tests, with as little ceremony as possible."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from hami_mock.errors import UsageError
from hami_mock.kubelet.unit_ids import UnitIds
from hami_mock.node.cards import Card, CardGroup, make_cards
from hami_mock.node.devices import SlotDevices
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.settings.settings import VendorSettings, load
from hami_mock.sources.configured import configured_node
from hami_mock.vendors import Offer, Role, Vendor, catalog
from tests.makers import NVIDIA

NODE = "node-a"


def offer_of(vendor: Vendor, role: Role) -> Offer:
    return next(offer for offer in vendor.offers if offer.role is role)


def group(
    vendor: Vendor = NVIDIA,
    *,
    numa: Sequence[int | None] = (None, None),
    links: Sequence[frozenset[int]] = (),
    memory: int | None = None,
) -> CardGroup:
    model = catalog.find(vendor.maker, vendor.model)
    assert model is not None
    return CardGroup(model, memory or model.memory, tuple(numa), tuple(links))


def cards(
    count: int = 2,
    vendor: Vendor = NVIDIA,
    *,
    numa: int | None = None,
    links: Sequence[frozenset[int]] = (),
) -> tuple[Card, ...]:
    return make_cards(NODE, vendor, [group(vendor, numa=[numa] * count, links=links)])


def slot_resource(of: tuple[Card, ...], split: int = 10) -> Resource:
    vendor = of[0].vendor
    offer = offer_of(vendor, Role.SLOTS)
    return Resource(offer.name, f"--{offer.flag}", offer, vendor, of, SlotDevices(of, split))


def unit_resource(counts: Sequence[int], role: Role = Role.MEMORY) -> Resource:
    """A resource of NVIDIA units, with so many on each card."""
    of = cards(len(counts))
    offer = offer_of(NVIDIA, role)
    devices = UnitDevices.make(UnitIds(offer.heads), dict(zip(of, counts, strict=True)))
    return Resource(offer.name, f"--{offer.flag}", offer, NVIDIA, of, devices)


def laid_out(version: tuple[int, int] | None = None, **flags: object) -> Node:
    """The node that these flags make (nvidia_cards=2 is --nvidia-cards 2)."""
    values = {name.replace("_", "-"): str(value) for name, value in flags.items()}
    return configured_node(load({"node-name": NODE, **values}), version)


def counts(node: Node) -> dict[str, int]:
    return {resource.name: resource.count for resource in node.resources}


def resource_named(node: Node, name: str) -> Resource:
    return next(resource for resource in node.resources if resource.name == name)


def vendor_settings(key: str, flags: Mapping[str, str]) -> VendorSettings:
    return next(found for found in load(flags).vendors if found.vendor.prefix == key)


def problems_of(function: Callable[[], object]) -> tuple[str, ...]:
    """The lines of the UsageError that a call must raise."""
    with pytest.raises(UsageError) as caught:
        function()
    return caught.value.problems


def config_file(folder: Path, text: str | bytes) -> str:
    path = folder / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@dataclass(frozen=True)
class SeenDevice:
    """A device as google's protobuf reads it from a list."""

    device_id: str
    health: str
    numa: tuple[int, ...] | None


def seen_by_google(messages: ModuleType, payload: bytes) -> list[SeenDevice]:
    response = messages.ListAndWatchResponse.FromString(payload)
    return [
        SeenDevice(
            device.id,
            device.health,
            tuple(node.id for node in device.topology.nodes)
            if device.HasField("topology")
            else None,
        )
        for device in response.devices
    ]
