"""A Node of Kubernetes → the node that we offer: the pure half of the companion."""

from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from typing import Any, NamedTuple

from hami_mock.node.sizing import Node, Past, size
from hami_mock.node.ways import NO_PERMISSION, Permission, policy
from hami_mock.settings.hami_config.device_config import DeviceConfig
from hami_mock.settings.settings import Settings
from hami_mock.sources.annotated import counted
from hami_mock.sources.annotated.annotations import AnnotatedVendor
from hami_mock.sources.annotated.found import Found
from hami_mock.sources.annotated.node_object import NodeObject, version_of


class Before(NamedTuple):
    """What was there until now.

    - past: the devices that pods may hold
    - offered: the names of our own resources, which say nothing about cards
    - registers: the annotations that cards were once read from
    """

    past: Past = Past()
    offered: Collection[str] = ()
    registers: Collection[str] = ()


class Derived(NamedTuple):
    """What to offer, which cards are ill and who says so, and what is missing or malformed.

    `registers` are the annotations that cards were read from.
    """

    node: Node
    ill: Mapping[str, str]
    reasons: tuple[str, ...]
    registers: Set[str]


_NOTHING = Before()


def derive(
    document: Mapping[str, Any],
    settings: Settings,
    before: Before = _NOTHING,
    config: DeviceConfig | None = None,
    permission: Permission = NO_PERMISSION,
) -> Derived:
    """Work out what to offer beside the real plugins of a node. Never raises: see `reasons`."""
    node = replace(NodeObject.read(document), name=settings.node_name)
    found = Found()
    for vendor in settings.vendors:
        annotated = AnnotatedVendor(node, vendor, config)
        annotated.read(found)
        if not annotated.chips:
            counted.read(node, vendor, before.offered, found)
    version = settings.kubelet_version or version_of(document)
    way = policy(settings.units, permission, hami=True)
    resources, left_out = size(found.shares, version, before.past, way)
    gone = [
        f"{register}: the annotation is gone, and so are the resources derived from it"
        for register in sorted(before.registers)
        if register not in node.annotations
    ]
    unfit = [f"{name}: left out: {reason}" for name, reason in left_out]
    reasons = [*gone, *found.reasons, *unfit]
    if not found.cards and not reasons:
        reasons = [
            f"node {settings.node_name} has no annotation with cards from a HAMi plugin yet, and "
            "no resource that cards could be derived from"
        ]
    derived = Node(settings.node_name, tuple(found.cards), resources)
    return Derived(derived, found.ill, tuple(dict.fromkeys(reasons)), found.registers)


def relevant(
    document: Mapping[str, Any], settings: Settings, config: DeviceConfig | None = None
) -> object:
    """Return what of a Node decides; equal ones derive the same.

    A node changes every few seconds, by its heartbeat and HAMi's handshakes.
    """
    node = NodeObject.read(document)
    decides: list[object] = [version_of(document)]
    for vendor in settings.vendors:
        decides.append(node.allocatable.get(counted.source(vendor)))
        decides += AnnotatedVendor(node, vendor, config).relevant
    return decides
