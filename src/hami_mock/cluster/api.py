"""The way to the API server, and small questions to it.

kubernetes_asyncio takes longer to load, and more memory, than all the rest of the agent: it is
imported where it is needed, at the first need.
"""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hami_mock.errors import StartError
from hami_mock.kubelet.limits import Version, parse_version

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient, CoreV1Api

REQUEST_SECONDS = 5.0
_USER_CONFIG = Path("~/.kube/config")
_log = logging.getLogger(__name__)


def is_configured() -> bool:
    """Tell whether there is an API server to ask: this is a pod, or $KUBECONFIG names one."""
    return "KUBERNETES_SERVICE_HOST" in os.environ or "KUBECONFIG" in os.environ


@asynccontextmanager
async def api_client() -> "AsyncIterator[ApiClient]":
    """Connect to the API server as a pod does, or as $KUBECONFIG says."""
    from kubernetes_asyncio import client, config

    if "KUBERNETES_SERVICE_HOST" in os.environ:
        config.load_incluster_config()  # type: ignore[no-untyped-call]
    elif "KUBECONFIG" not in os.environ and not _USER_CONFIG.expanduser().exists():
        raise StartError(
            f"no cluster found: this is not a pod, KUBECONFIG is not set, and there is "
            f"no {_USER_CONFIG}"
        )
    else:
        # By name: the library remembers the variable as it was when it was imported.
        await config.load_kube_config(config_file=os.environ.get("KUBECONFIG"))
    async with client.ApiClient() as api:
        yield api


@asynccontextmanager
async def core_api() -> "AsyncIterator[CoreV1Api]":
    """Connect to the API server, for its core objects."""
    from kubernetes_asyncio import client

    async with api_client() as api:
        yield client.CoreV1Api(api)


def reason_of(error: Exception) -> str:
    """Return what went wrong in a few words: the API server's, if it said any."""
    return getattr(error, "reason", None) or f"{type(error).__name__}: {error}"


async def kubelet_version(node_name: str) -> Version | None:
    """Return the version of a node's kubelet; None if it can't be had, and the log says why."""
    try:
        async with core_api() as core:
            node = await core.read_node(node_name, _request_timeout=REQUEST_SECONDS)
        return parse_version(node.status.node_info.kubelet_version)
    except Exception as error:
        _log.warning(
            "can't find out the kubelet's version on node %s: %s", node_name, reason_of(error)
        )
        return None
