"""Creates the pods of a trace at their times, in a namespace of its own."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import anyio

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.resources import NAMESPACES, PODS
from hami_mock.errors import Away, Conflict, Invalid, NotThere, StartError
from hami_mock.fleet.budget import Budget
from hami_mock.kit.concurrency import Backoff

_MOST_TRIES = 8


async def make_namespace(kubernetes: Kubernetes, budget: Budget, name: str) -> None:
    """Make the namespace. Raises StartError if there is one: who plays deletes what is in it."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    try:
        await budget.write(lambda: kubernetes.create(NAMESPACES, space))
    except Conflict as error:
        raise StartError(
            f"--namespace: there is a namespace {name!r}, or it is still being deleted: name "
            "a new one, which is created for these pods and deleted with them"
        ) from error


async def play(
    kubernetes: Kubernetes, budget: Budget, pods: Iterable[tuple[float, dict[str, Any]]]
) -> int:
    """Create the pods, each at its time or as soon as the budget allows; return how many.

    Raises ClusterError for what can't be created.
    """
    begun, count = anyio.current_time(), 0
    for at, pod in pods:
        await anyio.sleep_until(begun + at)
        await _create(kubernetes, budget, pod)
        count += 1
    return count


async def _create(kubernetes: Kubernetes, budget: Budget, pod: dict[str, Any]) -> None:
    backoff = Backoff(first=0.2, longest=5.0)
    for tries in range(_MOST_TRIES):
        try:
            await budget.write(lambda: kubernetes.create(PODS, pod))
        except Conflict:
            return  # an answer was lost: it is there
        except Invalid:
            raise
        except Away as error:
            if tries + 1 == _MOST_TRIES:
                raise
            await anyio.sleep(backoff.next(error.retry_after))
        else:
            return


async def remove(kubernetes: Kubernetes, budget: Budget, namespace: str) -> None:
    """Delete the namespace, and with it the pods. Raises ClusterError."""
    with suppress(NotThere):
        await budget.write(lambda: kubernetes.delete(NAMESPACES, namespace))
