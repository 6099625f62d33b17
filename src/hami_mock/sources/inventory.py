"""The node's devices over time: one that a pod may hold never becomes another."""

import logging

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import StartError, UsageError
from hami_mock.kit.folder_watch import FolderWatch
from hami_mock.node.devices import CountedUnits, Devices
from hami_mock.node.event_kinds import Kind
from hami_mock.node.sizing import Node, Past, release
from hami_mock.node.state import NodeState
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.settings.settings import Settings
from hami_mock.sources import unit_record
from hami_mock.sources.changes import changes
from hami_mock.sources.holders import HolderReader

_SETTLE_SECONDS = 2.0
"""What the kubelet gets to read that devices are unhealthy, before it is asked who holds them: a
pod that it was just giving one to must be seen."""
_AGAIN_SECONDS = 10.0
"""There is no event for the end of a pod; while devices are retired, the kubelet is asked so
often. A record that couldn't be written is tried again as often."""
_FAREWELL_SECONDS = 1.0
"""What the kubelet gets, when the agent ends, to say whether anybody holds anything."""

_log = logging.getLogger(__name__)


class Inventory:
    """Changes the state's node, and keeps what its devices were.

    They are on record before they are offered, in the kubelet's folder. Where that is emptied, the
    record is written again.
    """

    def __init__(
        self, settings: Settings, state: NodeState, holders: HolderReader, folder: FolderWatch
    ) -> None:
        self._state = state
        self._holders = holders
        self._folder = folder
        # Also of resources that aren't offered now, and may come back: pods hold them.
        self._devices = unit_record.read(folder.path, settings)
        self._trouble: str | None = ""
        """Why the record isn't as it should be; None if it is."""

    async def past(self) -> Past:
        """Return what was offered until now, and what of it pods hold."""
        await self._holders.refresh()
        listed = _devices(self._state.node)
        unlisted = self._devices.keys() - listed.keys()
        holders = self._state.holders
        return Past(self._devices | listed, holders.ids, holders.resources, unlisted)

    def change(self, node: Node) -> list[str]:
        """Offer the devices of a node that was made with the past in mind; return what changed.

        Raises UsageError if they can't be recorded; then nothing has changed.
        """
        before = self._state.node
        if _key(before) == _key(node):
            return changes(before, node)
        try:
            self._record(node)
        except OSError as error:
            raise UsageError(
                f"{self._folder.path / unit_record.FILE}: can't record which unit belongs to "
                f"which card: {error.strerror}; nothing was changed"
            ) from error
        self._state.change(node)
        return changes(before, node)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the record, and release retired devices that no pod holds, until cancelled.

        Raises StartError if there is a record of other devices and it can't be replaced: pods may
        hold some of them. Where there is none yet, the agent goes on and tries again.
        """
        has_predecessor = any(isinstance(own, UnitDevices) for own in self._devices.values())
        self._try_to_record()
        if has_predecessor and self._trouble:
            path = self._folder.path / unit_record.FILE
            raise StartError(
                f"{path}: can't record which unit belongs to which card: {self._trouble}; "
                "make room there, or start with the flags of the agent before"
            )
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._record_again)
                tasks.start_soon(self._settle)
                task_status.started()
        finally:
            await self._remove_needless_record()

    def _record(self, node: Node) -> None:
        # Nobody holds a device of what has moved to the Node's status, or it would not be there.
        devices = self._devices | _devices(self._state.node) | _devices(node)
        try:
            unit_record.write(self._folder.path, devices)
            self._trouble = None
        except FileNotFoundError:
            self._trouble = ""  # the kubelet will make the folder
        self._devices = devices

    def _try_to_record(self) -> None:
        try:
            self._record(self._state.node)
        except OSError as error:
            if error.strerror != self._trouble:
                # Once per reason, not once per try.
                path = self._folder.path / unit_record.FILE
                _log.warning("a restart may renumber units: %s: %s", path, error.strerror)
            self._trouble = error.strerror

    async def _remove_needless_record(self) -> None:
        """Leave nothing behind where no pod holds a device: units may be numbered anew then."""
        with anyio.move_on_after(_FAREWELL_SECONDS, shield=True) as scope:
            await self._holders.refresh()
        holders = self._state.holders.all
        if scope.cancelled_caught or holders is None:
            return
        if not any(self._devices.keys() & holder.devices.keys() for holder in holders):
            self._take_off_record(UnitDevices)

    def forget_units_in_status(self) -> None:
        """Note that nothing of the agent's is left in the Node's status."""
        self._take_off_record(CountedUnits)

    def _take_off_record(self, kind: type[Devices]) -> None:
        self._devices = {k: own for k, own in self._devices.items() if not isinstance(own, kind)}
        if not any(isinstance(own, UnitDevices | CountedUnits) for own in self._devices.values()):
            unit_record.remove(self._folder.path)
            return
        try:
            unit_record.write(self._folder.path, self._devices)
        except OSError as error:
            # More on record than must be hurts nobody.
            path = self._folder.path / unit_record.FILE
            _log.warning("can't update %s: %s", path, error.strerror)

    async def _record_again(self) -> None:
        """Write the record whenever it is gone: somebody may empty the folder."""
        path = self._folder.path / unit_record.FILE

        def is_lost() -> bool:
            is_whole = self._trouble is None and path.exists()
            return not is_whole and self._folder.path.is_dir()

        while True:
            await self._folder.wait_until(is_lost)
            self._try_to_record()
            if self._trouble is not None:
                await anyio.sleep(_AGAIN_SECONDS)

    async def _settle(self) -> None:
        """Release what is there only for pods. Where nobody knows what they hold, it stays."""
        state = self._state
        while True:
            await state.wait_until(lambda: state.node.is_settling)
            asked_for = state.node
            await anyio.sleep(_SETTLE_SECONDS)
            await self._holders.refresh()
            if state.node is not asked_for:
                # What was retired in the meantime has its own time to settle.
                continue
            held, used = state.holders.ids, state.holders.resources
            if held is not None and used is not None:
                self._release(release(asked_for, held, used))
            if state.node.is_settling:
                await anyio.sleep(_AGAIN_SECONDS)

    def _release(self, node: Node) -> None:
        before = self._state.node
        moved = [r.name for r in before.resources if r.later and r.later in node.resources]
        released = before.retired - node.retired
        if not (released or moved):
            return
        if released:
            told = f"{released} retired devices, {node.retired} are still held"
            self._state.events.add(Kind.DEVICES_RELEASED, "", told)
        for name in moved:
            told = "no pod holds a device of it now: it moves to the Node's status"
            self._state.events.add(Kind.DEVICES_RELEASED, name, told)
        self._state.change(node)
        # After it: a number too many on record is free at the next start.
        self._try_to_record()


def _devices(node: Node) -> dict[str, Devices]:
    return {resource.name: resource.devices for resource in node.resources}


def _key(node: Node) -> object:
    """Return what is equal for nodes that are offered in the same way."""
    return node.cards, [
        (
            r.name,
            r.source,
            r.offer,
            r.factor,
            r.hami,
            r.why,
            r.devices.key,
            r.later and r.later.devices.key,
        )
        for r in node.resources
    ]
