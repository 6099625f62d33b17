"""Cards from the annotations and the allocatable of a node, followed while they change."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import UsageError
from hami_mock.kit.text import cut
from hami_mock.node.event_kinds import Kind
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import UNHEALTHY
from hami_mock.node.state import NodeState
from hami_mock.node.ways import NO_PERMISSION, Permission
from hami_mock.settings.hami_config.device_config import DeviceConfig, read
from hami_mock.settings.settings import Settings
from hami_mock.sources.annotated.derive import Before, Derived, derive, relevant
from hami_mock.sources.inventory import Inventory

_SUBJECT = "node annotations"
_log = logging.getLogger(__name__)

AskPermission = Callable[[Settings], Awaitable[Permission]]
"""Tells whether the Node's status may be written."""


async def no_permission(settings: Settings) -> Permission:
    return NO_PERMISSION


# Yields the Node of that name as it is now, and again after each change.
WatchNode = Callable[[str], AsyncGenerator[Mapping[str, Any], None]]


class AnnotatedSource:
    """Keeps the state to what the node says: the agent is the companion of a real plugin."""

    def __init__(
        self,
        settings: Settings,
        state: NodeState,
        inventory: Inventory,
        watch_node: WatchNode,
        permission: AskPermission = no_permission,
    ) -> None:
        self.missing: Sequence[str] = (f"node {settings.node_name} has not been read yet",)
        """What is missing or malformed; empty if all is well."""
        self._told: tuple[str, ...] = ()
        self._settings = settings
        self._config = device_config(settings)
        self._state = state
        self._inventory = inventory
        self._watch_node = watch_node
        self._ask_permission = permission
        self._permission = NO_PERMISSION
        self._one_at_a_time = anyio.Lock()
        self._document: Mapping[str, Any] | None = None
        self._relevant: object = None
        self._is_refused = False
        """Whether units have plugins only because the Node's status may not be written."""
        self._registers: set[str] = set()
        self._faults: dict[str, Fault] = {}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with aclosing(self._watch_node(self._settings.node_name)) as nodes:
            async for document in nodes:
                await self._follow(document)

    async def use(self, settings: Settings) -> list[str]:
        """Take other settings; return what changed. Raises UsageError if it can't be recorded."""
        async with self._one_at_a_time:
            config = device_config(settings)
            lines = [] if self._document is None else await self._apply(settings, config)
            self._settings, self._config = settings, config
            return lines

    async def _follow(self, document: Mapping[str, Any]) -> None:
        async with self._one_at_a_time:
            try:
                now = relevant(document, self._settings, self._config)
                # A role may come later than the agent that it is for, and no event tells it.
                is_news = now != self._relevant or self._is_refused
                self._document, self._relevant = document, now
                lines = await self._apply(self._settings, self._config) if is_news else ()
            except Exception as error:
                # What there was stays; the next heartbeat of the node brings the next try.
                self._relevant = None
                reason = cut(f"the node can't be understood: {type(error).__name__}: {error}")
                self._tell_missing(error.problems if isinstance(error, UsageError) else (reason,))
                return
            if lines:
                self._state.events.add(Kind.CONFIGURATION_CHANGED, _SUBJECT, "; ".join(lines))

    async def _apply(self, settings: Settings, config: DeviceConfig | None) -> list[str]:
        assert self._document is not None
        offered = {resource.name for resource in self._state.node.resources}
        before = Before(await self._inventory.past(), offered, self._registers)
        permission = (await self._ask_permission(settings)).after(self._permission)
        self._permission, self._is_refused = permission, bool(permission.refusal)
        derived = derive(self._document, settings, before, config, permission)
        lines = self._inventory.change(derived.node)
        self._registers |= derived.registers
        # In the same breath, so that a new card that is ill is never listed as well.
        self._follow_health(derived)
        self._tell_missing(derived.reasons)
        return lines

    def _follow_health(self, derived: Derived) -> None:
        """Let faults of our own begin and end; those that others made are theirs."""
        here = {card.uuid for card in derived.node.cards}
        kept = {uuid: fault for uuid, fault in self._faults.items() if uuid in derived.ill}
        ended = [fault for uuid, fault in self._faults.items() if uuid not in kept]
        begun = {
            uuid: Fault(UNHEALTHY, frozenset({uuid}), reason)
            for uuid, reason in derived.ill.items()
            if uuid in here and uuid not in kept
        }
        if ended:
            self._state.end_faults(*ended)
        if begun:
            self._state.begin_faults(*begun.values())
        self._faults = kept | begun

    def _tell_missing(self, reasons: tuple[str, ...]) -> None:
        for reason in reasons:
            if reason not in self._told:
                self._state.events.add(Kind.CONFIGURATION_REJECTED, _SUBJECT, reason)
        if self._told and not reasons:
            _log.info("%s: nothing is missing now", _SUBJECT)
        self._told = self.missing = reasons


def device_config(settings: Settings) -> DeviceConfig | None:
    path = settings.device_config_file
    return read(path) if path else None
