"""What a node would offer, whoever decides on its cards."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from hami_mock.cluster.kubernetes import Kubernetes, is_configured
from hami_mock.errors import NotThere, UsageError
from hami_mock.kubelet.limits import Version
from hami_mock.node.cards import Card
from hami_mock.node.sizing import Node
from hami_mock.node.ways import Permission, Units
from hami_mock.settings.settings import Settings
from hami_mock.sources import configured
from hami_mock.sources.host import Host


class Plan(NamedTuple):
    """A node, its kubelet's version if that is known, and what is missing or malformed.

    `assumed` says what this rests on that nobody knows.
    """

    node: Node
    version: Version | None
    missing: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


_ASSUMED = Permission(is_allowed=True, is_known=False)
"""What the manifests allow."""


async def plan(settings: Settings, document: Mapping[str, Any] | None = None) -> Plan:
    """Plan from the settings or, for the companion of a real plugin, from a Node of Kubernetes.

    Without such a document the API server is asked. Raises UsageError if there is none to ask.
    """
    if not settings.is_companion:
        node, host = await configured.plan(settings, if_unknown=_ASSUMED)
        return Plan(node, host.version, assumed=tuple(_assumed(settings, node, host)))
    # Here, because it takes long to load, and few have a real plugin.
    from hami_mock.sources.annotated.derive import derive
    from hami_mock.sources.annotated.node_object import version_of
    from hami_mock.sources.annotated.source import device_config

    document = await _ask(settings.node_name) if document is None else document
    derived = derive(document, settings, config=device_config(settings), permission=_ASSUMED)
    host = Host(settings.kubelet_version or version_of(document), _ASSUMED)
    assumed = tuple(_assumed(settings, derived.node, host))
    return Plan(derived.node, host.version, derived.reasons, assumed)


def _assumed(settings: Settings, node: Node, host: Host) -> Iterator[str]:
    """Say what the way of units rests on, if it isn't what somebody knows or has chosen."""
    units = [resource for resource in node.resources if not resource.has_slots]
    is_assumed = settings.units is Units.AUTO and host.permission == _ASSUMED
    if is_assumed and any(resource.in_status for resource in units):
        yield (
            "the agent may write the Node's status: no API server was asked; the role in "
            "manifests/k8s-mock-rbac.yaml allows it"
        )
    if settings.units is not Units.STATUS and host.version is None and units:
        yield (
            "the kubelet is 1.36 or newer: its version isn't known; set it with --kubelet-version"
        )


async def cards(settings: Settings) -> tuple[Card, ...]:
    """Return the cards of a node, whether or not the kubelet could bear all of their devices.

    Raises UsageError if they are those of a real node, and there is none to ask.
    """
    if settings.is_companion:
        return (await plan(settings)).node.cards
    own = (configured.vendor_cards(settings, vendor) for vendor in settings.vendors)
    return tuple(chain.from_iterable(own))


async def _ask(node_name: str) -> Mapping[str, Any]:
    if not is_configured():
        raise UsageError(
            "--source hami: the cards come from a real node, but no API server was found: "
            "set KUBECONFIG, or give the node with plan -f (kubectl get node NAME -o json)"
        )
    async with Kubernetes() as cluster:
        try:
            return await cluster.node(node_name)
        except NotThere as error:
            raise UsageError(f"--node-name: {error}") from error
