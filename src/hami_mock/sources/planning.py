"""What a node would offer, whoever decides on its cards."""

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from hami_mock.cluster.kubernetes import Kubernetes, is_configured
from hami_mock.errors import NotThere, UsageError
from hami_mock.kubelet.limits import Version
from hami_mock.node.cards import Card
from hami_mock.node.sizing import Node
from hami_mock.node.ways import Permission
from hami_mock.settings.settings import Settings
from hami_mock.sources import configured


class Plan(NamedTuple):
    """A node, its kubelet's version if that is known, and what is missing or malformed."""

    node: Node
    version: Version | None
    missing: tuple[str, ...] = ()


async def plan(settings: Settings, document: Mapping[str, Any] | None = None) -> Plan:
    """Plan from the settings or, for the companion of a real plugin, from a Node of Kubernetes.

    Without such a document the API server is asked. Raises UsageError if there is none to ask.
    """
    if not settings.is_companion:
        # What the manifests allow.
        node, host = await configured.plan(settings, if_unknown=Permission(is_allowed=True))
        return Plan(node, host.version)
    # Here, because it takes long to load, and few have a real plugin.
    from hami_mock.sources.annotated.derive import derive
    from hami_mock.sources.annotated.node_object import version_of
    from hami_mock.sources.annotated.source import device_config

    document = await _ask(settings.node_name) if document is None else document
    permission = Permission(is_allowed=True)
    derived = derive(document, settings, config=device_config(settings), permission=permission)
    return Plan(derived.node, settings.kubelet_version or version_of(document), derived.reasons)


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
