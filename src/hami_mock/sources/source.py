"""The seam between what decides which cards there are, and the rest."""

from collections.abc import Sequence
from typing import Protocol

import anyio
from anyio.abc import TaskStatus

from hami_mock.settings.settings import Settings


class Source(Protocol):
    """Who makes the cards of the node's state: the settings, or a real plugin's annotations."""

    @property
    def missing(self) -> Sequence[str]:
        """Why there are no cards, or not all of them; empty if all is well."""

    async def use(self, settings: Settings) -> list[str]:
        """Take other settings; return what changed. Raises UsageError, and the old ones stay."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow whatever decides, until cancelled."""
