"""The agent's events as Kubernetes Events of the Node: `kubectl describe node` shows them."""

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import ClusterError
from hami_mock.kit.concurrency import Backoff
from hami_mock.kit.text import cut
from hami_mock.node.events import Event
from hami_mock.node.state import NodeState

if TYPE_CHECKING:
    from hami_mock.cluster.kubernetes import Kubernetes

NAMESPACE = "default"  # where Events of things without a namespace live
_LONGEST_MESSAGE = 1023
_log = logging.getLogger(__name__)


class NodeEvents:
    """Reports each event, one after the other.

    While the API server is away, events wait in the log; those that fall out of it are gone.
    """

    name = "node events"

    def __init__(self, kubernetes: "Kubernetes", state: NodeState) -> None:
        self._kubernetes = kubernetes
        self._state = state
        self._reported = 0
        self._error: str | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        node, backoff = self._state.node.name, Backoff()
        while True:
            for event in await self._state.events.wait_after(self._reported):
                try:
                    await self._kubernetes.create_event(NAMESPACE, as_kubernetes(node, event))
                except ClusterError as error:
                    if str(error) != self._error:
                        # Once per reason, not once per try.
                        _log.warning("can't report an event to Kubernetes: %s", error)
                    self._error = str(error)
                    await anyio.sleep(backoff.next(error.retry_after))
                    break
                self._reported, self._error = event.number, None
                backoff.reset()

    def status(self) -> dict[str, Any]:
        """Return the number of the last event that was reported, and why it isn't the newest."""
        return {"reported": self._reported, "error": self._error}


def as_kubernetes(node_name: str, event: Event) -> dict[str, Any]:
    when = datetime.fromtimestamp(event.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    message = f"{event.subject}: {event.message}" if event.subject else event.message
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "hami-mock-", "namespace": NAMESPACE},
        # kubectl finds the Events of a Node by its name in the place of a UID, as the kubelet's.
        "involvedObject": {"kind": "Node", "name": node_name, "uid": node_name},
        "reason": event.kind,
        "message": cut(message, _LONGEST_MESSAGE),
        "type": "Warning" if event.is_warning else "Normal",
        "source": {"component": "hami-mock", "host": node_name},
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }
