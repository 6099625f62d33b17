"""What every view has in common."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import anyio
from anyio.abc import TaskStatus


@runtime_checkable
class View(Protocol):
    """Shows the state to somebody: the kubelet, the API server, people."""

    name: str
    """What `ctl status -o json` calls it."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Show the state, and each change of it, until cancelled."""

    def status(self) -> Mapping[str, Any]:
        """Return how that goes, as data."""
