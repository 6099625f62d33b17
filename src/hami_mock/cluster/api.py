"""Questions to the API server."""

import logging
import os

from hami_mock.kubelet_rules import Version, parse_version

_REQUEST_SECONDS = 5.0
_log = logging.getLogger(__name__)


def is_configured() -> bool:
    """Tell whether there is an API server to ask: this is a pod, or $KUBECONFIG names one."""
    return "KUBERNETES_SERVICE_HOST" in os.environ or "KUBECONFIG" in os.environ


async def kubelet_version(node_name: str) -> Version | None:
    """Return the version of a node's kubelet; None if it can't be had, and the log says why."""
    from kubernetes_asyncio import client, config

    try:
        if "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config()  # type: ignore[no-untyped-call]
        else:
            await config.load_kube_config()
        async with client.ApiClient() as api:
            core = client.CoreV1Api(api)
            node = await core.read_node(node_name, _request_timeout=_REQUEST_SECONDS)
        return parse_version(node.status.node_info.kubelet_version)
    except Exception as error:
        reason = getattr(error, "reason", None) or f"{type(error).__name__}: {error}"
        _log.warning("can't learn the kubelet's version of node %s: %s", node_name, reason)
        return None
