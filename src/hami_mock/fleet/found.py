"""What the API server has of a fleet, for who asks without its process."""

from contextlib import aclosing
from typing import Any

from hami_mock.cluster.kubernetes import Kubernetes, annotations_of, labels_of
from hami_mock.cluster.resources import NODES
from hami_mock.fleet import names
from hami_mock.fleet.shown import is_ready


async def found_nodes(kubernetes: Kubernetes, name: str) -> dict[str, Any]:
    """Return how many nodes of each pool there are, how many are ready, and how many have faults.

    Raises ClusterError.
    """
    pools: dict[str, dict[str, int]] = {}
    async with aclosing(kubernetes.pages(NODES, labels=f"{names.FLEET}={name}")) as pages:
        async for page in pages:
            for node in page:
                pool = labels_of(node).get(names.POOL, "")
                found = pools.setdefault(pool, {"nodes": 0, "ready": 0, "faulty": 0})
                found["nodes"] += 1
                found["ready"] += is_ready(node)
                found["faulty"] += names.FAULTS in annotations_of(node)
    return {"fleet": name, "pools": pools}
