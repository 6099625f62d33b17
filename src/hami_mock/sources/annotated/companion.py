"""The companion: follows a node's annotations and allocatable, and offers what they come to."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.node.devices import Devices
from hami_mock.node.event_kinds import Kind
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import UNHEALTHY
from hami_mock.node.sizing import Node, Past, release
from hami_mock.node.state import NodeState
from hami_mock.settings import device_config_layer
from hami_mock.settings.hami_config.device_config import DeviceConfig
from hami_mock.settings.settings import Settings
from hami_mock.sources import unit_record
from hami_mock.sources.annotated.derive import Before, Derived, derive, relevant
from hami_mock.sources.changes import changes
from hami_mock.sources.holders import HolderReader

_SUBJECT = "node annotations"
_log = logging.getLogger(__name__)

Nodes = AsyncGenerator[Mapping[str, Any], None]
"""A Node of Kubernetes as it is now, and again after each change."""


class Companion:
    """Keeps the state to what the node says, after each change of it."""

    def __init__(
        self,
        settings: Settings,
        state: NodeState,
        holders: HolderReader,
        nodes: Nodes,
    ) -> None:
        self.reasons: list[str] = [f"node {settings.node_name} has not been read yet"]
        """What is missing or malformed, for /readyz; empty if all is well."""
        self._told: tuple[str, ...] = ()
        self._settings = settings
        self._config = _device_config(settings)
        self._state = state
        self._holders = holders
        self._nodes = nodes
        self._one_at_a_time = anyio.Lock()
        self._document: Mapping[str, Any] | None = None
        self._relevant: object = None
        self._registers: set[str] = set()
        self._faults: dict[str, Fault] = {}
        # What an agent before this one has kept, and resources that may come back: pods hold both.
        self._devices: dict[str, Devices] = {}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the node until cancelled."""
        kept = unit_record.read(Path(self._settings.socket_dir), self._settings)
        self._devices |= kept.devices
        task_status.started()
        async with aclosing(self._nodes) as nodes:
            async for document in nodes:
                await self._follow(document)

    async def reconfigure(self, settings: Settings) -> list[str]:
        """Take other settings; return what changed."""
        async with self._one_at_a_time:
            self._settings, self._config = settings, _device_config(settings)
            return await self._apply() if self._document is not None else []

    async def _follow(self, document: Mapping[str, Any]) -> None:
        async with self._one_at_a_time:
            now = relevant(document, self._settings, self._config)
            is_news = now != self._relevant
            self._document, self._relevant = document, now
            if is_news:
                await self._apply()

    async def _apply(self) -> list[str]:
        assert self._document is not None
        await self._holders.refresh()
        held = self._state.holders.ids
        now = self._state.node
        devices = self._devices | {r.name: r.devices for r in now.resources}
        before = Before(Past(devices, held), {r.name for r in now.resources}, self._registers)
        derived = derive(self._document, self._settings, before, self._config)
        if not now.resources:
            # Nothing is listed, so nothing need become unhealthy before it goes.
            derived = replace(derived, node=release(derived.node, held or ()))
        lines = self._take(now, derived)
        self._tell_reasons(derived)
        return lines

    def _take(self, before: Node, derived: Derived) -> list[str]:
        self._registers |= derived.registers
        self._devices |= {r.name: r.devices for r in before.resources}
        lines = changes(before, derived.node)
        if _key(before) != _key(derived.node):
            self._state.change(derived.node)
            unit_record.write(Path(self._settings.socket_dir), derived.node)
        # In the same breath, so that a new card that is ill is never listed as well.
        self._follow_health(derived)
        if lines:
            told = "; ".join(lines)
            self._state.events.add(Kind.CONFIGURATION_CHANGED, _SUBJECT, told)
        return lines

    def _follow_health(self, derived: Derived) -> None:
        """Let faults of our own begin and end; those that others made are theirs."""
        here = {card.uuid for card in derived.node.cards}
        ended = [fault for uuid, fault in self._faults.items() if uuid not in derived.ill]
        begun = {
            uuid: Fault(UNHEALTHY, frozenset({uuid}), reason)
            for uuid, reason in derived.ill.items()
            if uuid in here and uuid not in self._faults
        }
        if ended:
            self._state.end_faults(*ended)
        if begun:
            self._state.begin_faults(*begun.values())
        kept = {uuid: fault for uuid, fault in self._faults.items() if uuid in derived.ill}
        self._faults = kept | begun

    def _tell_reasons(self, derived: Derived) -> None:
        for reason in derived.reasons:
            if reason not in self._told:
                self._state.events.add(Kind.CONFIGURATION_REJECTED, _SUBJECT, reason)
        if self._told and not derived.reasons:
            _log.info("%s: nothing is missing any more", _SUBJECT)
        self._told = derived.reasons
        self.reasons = list(derived.reasons)


def _device_config(settings: Settings) -> DeviceConfig | None:
    path = settings.device_config_file
    return device_config_layer.read(path).config if path else None


def _key(node: Node) -> object:
    """Return what is equal for nodes that are offered in the same way."""
    return node.cards, [(r.name, r.offer, r.factor, r.devices.key) for r in node.resources]
