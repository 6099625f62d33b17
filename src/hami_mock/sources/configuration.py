"""The configuration while the agent runs: read again, checked whole, applied as one step."""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import UsageError
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import first_of
from hami_mock.kit.folder_watch import FolderWatch
from hami_mock.kit.own_files import read_regular
from hami_mock.kit.text import cut
from hami_mock.node.event_kinds import Kind
from hami_mock.node.state import NodeState
from hami_mock.settings.differences import differences, refusals
from hami_mock.settings.options import Takes
from hami_mock.settings.settings import Settings, load

_MOST_BYTES = 4 * 2**20
_SETTLE_SECONDS = 0.2
"""A file is read when it has stayed the same for so long: somebody may still be writing it."""


class Source(Protocol):
    """Who makes the cards of the node's state: the settings, or a real plugin's annotations."""

    @property
    def missing(self) -> Sequence[str]:
        """Why there are no cards, or not all of them; empty if all is well."""

    async def use(self, settings: Settings) -> list[str]:
        """Take other settings; return what changed. Raises UsageError, and the old ones stay."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow whatever decides, until cancelled."""


class Configuration:
    """Where the settings come from, and what became of them."""

    def __init__(
        self, settings: Settings, flags: Mapping[str, str], state: NodeState, source: Source
    ) -> None:
        self.settings = settings
        self.overrides: dict[str, str] = {}
        """What was set while the agent ran; stronger than all else, until it ends."""
        self.error: tuple[str, ...] = ()
        """What is wrong with the newest configuration; empty if it is in force."""
        self.changed: float | None = None
        self._flags = flags
        self._state = state
        self._source = source
        self._one_at_a_time = anyio.Lock()
        self.applied = Broadcast()
        """Told after settings were taken over."""
        self._seen = self._content()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the files that the settings name, until cancelled.

        A ConfigMap's file is a link into a folder that is swapped: the content is what counts.
        """
        task_status.started()
        while True:
            await self._follow_files(self._files)

    async def _follow_files(self, files: Sequence[Path]) -> None:
        """Follow these files until the settings name others."""
        folders = [FolderWatch(path, with_writes=True) for path in {f.parent for f in files}]

        def has_changed() -> bool:
            return self._content() != self._seen

        waits = [partial(folder.wait_until, has_changed) for folder in folders]
        async with anyio.create_task_group() as tasks:
            for folder in folders:
                await tasks.start(folder.run)
            while self._files == files:
                await first_of(self.applied.next().wait, *waits)
                if has_changed():
                    await self._settle()
                    if has_changed():  # or somebody has just reloaded it
                        await self.follow()
            tasks.cancel_scope.cancel()

    async def follow(self) -> None:
        """Read everything again. An error is kept, logged and counted; the old settings stay."""
        with suppress(UsageError):  # `reload` has told everybody
            await self.reload()

    async def reload(self) -> list[str]:
        """Read everything again and return what changed. Raises UsageError; the old one stays."""
        if not (self.settings.config or self.settings.device_config_file):
            return ["there is no file to reload: the agent was started without --config"]
        async with self._one_at_a_time:
            self._seen = self._content()
            try:
                return await self._apply(self.overrides, {})
            except UsageError as error:
                self.error = error.problems
                self._tell(Kind.CONFIGURATION_REJECTED, error.problems)
                raise

    async def set_options(self, values: Mapping[str, str], *, reset: bool = False) -> list[str]:
        """Set options over all else, or take all that was set back first; return what changed."""
        async with self._one_at_a_time:
            overrides = {**({} if reset else self.overrides), **values}
            lines = await self._apply(overrides, values)
            self.overrides = overrides
            return lines

    @property
    def missing(self) -> Sequence[str]:
        return self._source.missing

    def as_data(self) -> dict[str, Any]:
        """Return what `ctl status` and /readyz show."""
        return {
            "file": self.settings.config or None,
            "error": list(self.error) or None,
            "changed": self.changed,
            "overrides": self.overrides,
            "missing": list(self.missing),
        }

    async def _apply(self, overrides: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
        """Load and apply. What was just asked for (`new`) must not have to wait for a start."""
        try:
            settings = load(self._flags, overrides)
            changed = list(differences(self.settings, settings))
            if problems := refusals(changed, new):
                raise UsageError(problems)
            of_cards = await self._source.use(settings)
        except UsageError:
            raise
        except Exception as error:
            # Nobody foresaw it; the node shouldn't suffer.
            reason = cut(f"{type(error).__name__}: {error}")
            raise UsageError(f"the configuration can't be used: {reason}") from error
        at_once = [c.line for c in changed if c.takes_effect is Takes.AT_ONCE]
        waiting = [c.line for c in changed if c.takes_effect is Takes.AT_START]
        lines = [*at_once, *of_cards, *waiting]
        self.settings, self.error = settings, ()
        self.applied.send()
        self._state.ignored_xids = settings.ignored_xids
        logging.getLogger().setLevel(settings.log_level.upper())
        if lines:
            self.changed = time.time()
            self._tell(Kind.CONFIGURATION_CHANGED, lines)
        return lines

    async def _settle(self) -> None:
        before = None
        while (now := self._content()) != before:
            before = now
            await anyio.sleep(_SETTLE_SECONDS)

    @property
    def _files(self) -> list[Path]:
        named = (self.settings.config, self.settings.device_config_file)
        return [Path(file) for file in named if file]

    def _content(self) -> list[bytes | None]:
        return [_bytes(file) for file in self._files]

    def _tell(self, kind: Kind, lines: Sequence[str]) -> None:
        self._state.events.add(kind, self.settings.config or "configuration", "; ".join(lines))


def _bytes(file: Path) -> bytes | None:
    try:
        # A ConfigMap's file is a link.
        return read_regular(Path(os.path.realpath(file)), _MOST_BYTES)
    except (OSError, ValueError):
        # `load` will say what is wrong with it.
        return None
