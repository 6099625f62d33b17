"""The configuration while the agent runs: read again, checked whole, applied as one step."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock import unit_record
from hami_mock.changes import changes, waiting
from hami_mock.cluster import api
from hami_mock.deviceplugin.holders import PodResources
from hami_mock.errors import UsageError
from hami_mock.events import Kind
from hami_mock.folder_watch import FolderWatch
from hami_mock.kubelet_rules import Version
from hami_mock.layout import Node, Past, lay_out
from hami_mock.settings import Settings, load
from hami_mock.state import NodeState

_SETTLE_SECONDS = 0.2
"""A file is read when it has stayed the same for so long: somebody may still be writing it."""

_log = logging.getLogger(__name__)


async def plan(settings: Settings, past: Past | None = None) -> tuple[Node, Version | None]:
    """Return what the node will offer, and the kubelet's version if it could be learnt.

    The API server is asked only if the answer decides something: `auto` without a version given.
    """
    version = settings.kubelet_version
    is_needed = any(vendor.memory_factor is None for vendor in settings.vendors)
    if version is None and is_needed and api.is_configured():
        version = await api.kubelet_version(settings.node_name)
    return lay_out(settings, version, past or Past()), version


class Configuration:
    """Where the settings come from, and what became of them."""

    def __init__(
        self,
        settings: Settings,
        flags: Mapping[str, str],
        state: NodeState,
        pod_resources: PodResources,
    ) -> None:
        self.settings = settings
        self.overrides: dict[str, str] = {}
        """What was set while the agent ran; stronger than all else, until it ends."""
        self.error: tuple[str, ...] = ()
        """What is wrong with the newest configuration; empty if it is in force."""
        self.changed: float | None = None
        self._flags = flags
        self._state = state
        self._pod_resources = pod_resources
        self._one_at_a_time = anyio.Lock()
        self._file = Path(settings.config) if settings.config else None
        self._seen = self._content()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the file, if there is one, until cancelled.

        A ConfigMap's file is a link into a folder that is swapped: the content is what counts.
        """
        task_status.started()
        if self._file is None:
            return
        folder = FolderWatch(self._file.parent, with_writes=True)
        async with anyio.create_task_group() as tasks:
            await tasks.start(folder.run)
            while True:
                await folder.wait_until(lambda: self._content() != self._seen)
                await self._settle()
                await self.follow()

    async def follow(self) -> None:
        """Read everything again. An error is kept, logged and counted; the old settings stay."""
        try:
            await self.reload()
        except UsageError:
            # `reload` has told everybody.
            _log.debug("the old configuration stays")

    async def reload(self) -> list[str]:
        """Read everything again and return what changed. Raises UsageError; the old one stays."""
        self._seen = self._content()
        try:
            lines = await self._apply(self.overrides)
        except UsageError as error:
            self.error = error.problems
            told = "; ".join(error.problems)
            self._state.events.add(Kind.CONFIGURATION_REJECTED, self._subject, told)
            raise
        self.error = ()
        return lines

    async def set_options(self, values: Mapping[str, str], *, reset: bool = False) -> list[str]:
        """Set options over all else, or take all that was set back first; return what changed."""
        overrides = {**({} if reset else self.overrides), **values}
        lines = await self._apply(overrides)
        self.overrides = overrides
        return lines

    def as_data(self) -> dict[str, Any]:
        """Return what `ctl status` and /readyz show."""
        return {
            "file": self.settings.config or None,
            "error": list(self.error) or None,
            "changed": self.changed,
            "overrides": self.overrides,
        }

    async def _apply(self, overrides: Mapping[str, str]) -> list[str]:
        async with self._one_at_a_time:
            before = self._state.node
            settings = load(self._flags, overrides)
            if settings.node_name != self.settings.node_name:
                raise UsageError(
                    f"node-name: {settings.node_name!r} is not allowed: an agent that runs stays "
                    f"{self.settings.node_name!r}, since its cards are named after the node"
                )
            past = Past({r.name: r.devices for r in before.resources}, await self._held())
            node, _ = await plan(settings, past)
            lines = [*changes(before, node), *waiting(self.settings, settings)]
            self._take(settings, node, lines)
            return lines

    def _take(self, settings: Settings, node: Node, lines: list[str]) -> None:
        self.settings = settings
        self._state.ignored_xids = settings.ignored_xids
        logging.getLogger().setLevel(settings.log_level.upper())
        self._state.change(node)
        unit_record.write(Path(settings.socket_dir), node)
        if lines:
            self.changed = time.time()
            told = "; ".join(lines)
            self._state.events.add(Kind.CONFIGURATION_CHANGED, self._subject, told)

    async def _held(self) -> set[str] | None:
        return await self._pod_resources.held()

    async def _settle(self) -> None:
        before = None
        while (now := self._content()) != before:
            before = now
            await anyio.sleep(_SETTLE_SECONDS)

    def _content(self) -> bytes | None:
        if self._file is None:
            return None
        try:
            return self._file.read_bytes()
        except OSError:
            # `load` will say what is wrong with it.
            return None

    @property
    def _subject(self) -> str:
        return self.settings.config or "configuration"
