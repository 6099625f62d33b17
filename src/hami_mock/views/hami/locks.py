"""Giving back a node's locks."""

from collections.abc import Iterable

import anyio

from hami_mock.cluster.kubernetes import Kubernetes, Object, annotations_of
from hami_mock.errors import Away, Conflict, NotThere
from hami_mock.hami.errors import Malformed
from hami_mock.hami.kinds import Lock
from hami_mock.hami.lock import NodeLock
from hami_mock.kit.concurrency import Backoff


def read_lock(text: str | None) -> NodeLock | None:
    """Return the lock that an annotation is; None if there is none that anybody can read."""
    try:
        return NodeLock.parse(text) if text is not None else None
    except Malformed:
        return None


async def pod_of(kubernetes: Kubernetes, lock: NodeLock | None) -> Object | None:
    """Return the pod that a lock names; None if it names none, or one that isn't there."""
    if lock is None or not lock.names_pod:
        return None
    try:
        return await kubernetes.pod(lock.namespace, lock.name)
    except NotThere:
        return None


async def release(
    kubernetes: Kubernetes, node_name: str, locks: Iterable[Lock], namespace: str, name: str
) -> None:
    """Remove a pod's locks from a node, and no other pod's; try until it is done.

    Raises NotThere or NotAllowed. The caller bounds the time.
    """
    locks = tuple(locks)
    backoff = Backoff(first=0.05, longest=1.0)
    while True:
        try:
            node = await kubernetes.node(node_name)
            held = {
                lock.annotation: None
                for lock in locks
                if (found := read_lock(annotations_of(node).get(lock.annotation)))
                and found.is_of(namespace, name)
            }
            if held:
                version = node["metadata"]["resourceVersion"]
                await kubernetes.patch_node_annotations(node_name, held, version)
            return
        except (Conflict, Away) as error:
            await anyio.sleep(backoff.next(error.retry_after))
