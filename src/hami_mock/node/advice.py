"""What is legal but unwise about a resource, with the numbers."""

import re
from collections.abc import Sequence

from hami_mock.kit.durations import about
from hami_mock.kubelet.limits import LARGEST_POD, Version, restart_seconds, too_many
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node
from hami_mock.vendors import Offer, Role, Vendor
from hami_mock.vendors.dra import Profile, driver_of

# What has less than this share of a node's devices isn't what makes them too many.
_LARGE_SHARE = 0.1

COUNTED_TWICE = (
    "device plugins and DRA offer the same cards, and neither knows what the other gives out"
)
COUNTED_TWICE_REMEDY = "turn device plugins off with --device-plugins off"

_LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_QUALIFIED_NAME = re.compile(
    rf"{_LABEL}([.]{_LABEL})*/[A-Za-z0-9]([A-Za-z0-9._-]{{0,61}}[A-Za-z0-9])?"
)


def warnings(resource: Resource, node: Node, kubelet_version: Version | None) -> list[str]:
    """Return a sentence for each thing about a resource that its user may regret."""
    found = []
    if not _is_extended_resource(resource.name):
        found.append(
            f"the kubelet will refuse the name {resource.name!r} ({resource.source}): it must be "
            "like example.com/gpu, not under kubernetes.io and not starting with requests."
        )
    is_large = not resource.in_status and resource.count > node.devices * _LARGE_SHARE
    if is_large and too_many(node.counts, kubelet_version):
        version = ".".join(map(str, kubelet_version)) if kubelet_version else "1.36 or newer"
        found.append(
            f"{resource.count} of {node.devices} devices on the node are a lot for kubelet "
            f"{version}: the largest pod that can start holds {LARGEST_POD}, and a kubelet that "
            "restarts while everything is allocated needs about "
            f"{about(restart_seconds(node.counts, kubelet_version))}{_remedy(resource, node)}"
        )
    return found


def dra_warnings(node: Node, profiles: Sequence[Profile]) -> list[str]:
    """Return what is unwise about offering the node's cards by DRA too, if they are."""
    vendors = dict.fromkeys(card.vendor for card in node.cards)
    if not (profiles and vendors):
        return []
    offered = {v for v in vendors if any(driver_of(v, profile) for profile in profiles)}
    if not offered:
        return [
            f"--dra {','.join(profiles)} does nothing on this node: there is no such driver "
            "for its cards, so no claim gets one"
        ]
    if any(resource.vendor in offered for resource in node.resources):
        return [f"{COUNTED_TWICE}: {COUNTED_TWICE_REMEDY}"]
    return []


def without_factor(vendor: Vendor, offer: Offer) -> str:
    """Say what to do about many units of memory where HAMi's scheduler counts the finest alone."""
    told = "HAMi's configuration has no memoryFactor for it"
    if vendor.hami.node.encoding is None:
        # Without the name, the scheduler would see no cards.
        return told
    return f"{told}: leave it out with an empty name (--{offer.flag} '')"


def _remedy(resource: Resource, node: Node) -> str:
    if resource.offer.role is not Role.MEMORY:
        return _instead(resource)
    flag = f"--{resource.vendor.prefix}-memory-factor"
    if any(each.hami for each in node.resources):
        if not resource.vendor.config.factor:
            return f"; {without_factor(resource.vendor, resource.offer)}{_instead(resource)}"
        coarser = f"for coarser units, use {flag} and the same memoryFactor in HAMi's configuration"
    else:
        coarser = f"use {flag} auto for coarser units"
    return f"; {coarser}{_instead(resource)}"


def _instead(resource: Resource) -> str:
    """Return why the units don't stand where they would cost nothing."""
    if not resource.why:
        return ""
    return (
        f"; in the Node's status they would cost nothing, but they aren't put there: {resource.why}"
    )


def _is_extended_resource(name: str) -> bool:
    is_reserved = "kubernetes.io/" in name or name.startswith("requests.")
    return _QUALIFIED_NAME.fullmatch(name) is not None and not is_reserved
