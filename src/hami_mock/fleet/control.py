"""What can be asked of a running fleet, over its control socket."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from hami_mock.control.commands import (
    NAME,
    TEXT,
    Answering,
    Kinds,
    Operation,
    acting,
    event_operations,
)
from hami_mock.control.protocol import Request
from hami_mock.errors import StartError, UsageError
from hami_mock.faults.targets import listed
from hami_mock.fleet.faults import alike, told
from hami_mock.fleet.kinds import FLEET_VERBS
from hami_mock.fleet.member import Member
from hami_mock.kit import durations
from hami_mock.kit.text import cut
from hami_mock.kit.values import SEED, Kind
from hami_mock.node.fault import Fault, On
from hami_mock.settings.pools import MOST_NODES

if TYPE_CHECKING:
    from hami_mock.fleet.running import Running


def _sizes(value: object) -> dict[str, int]:
    if not isinstance(value, dict) or not 0 < len(value) <= 1000:
        raise ValueError("no mapping, or too large")
    if not all(type(n) is int and 0 <= n <= MOST_NODES for n in value.values()):
        raise ValueError("no number of nodes")
    return {str(pool): nodes for pool, nodes in value.items()}


_SIZES: Kinds = {
    "pools": Kind(_sizes, f"pools and how many nodes each should have, at most {MOST_NODES}")
}


FLEET = "fleet"
"""The argument that says of which fleet something is asked; without it, of whichever is here."""
_PATIENCE_SECONDS = 10.0
"""So long a command waits for the nodes to be read."""


class FleetCommands(Answering):
    """The commands of a fleet's process."""

    def __init__(self, running: "Running", _: TaskGroup) -> None:
        self._running = running
        self._fleet = running.fleet
        verbs = {name: acting(verb, partial(self._act, name)) for name, verb in FLEET_VERBS.items()}
        super().__init__(
            {
                "status": Operation(running.status),
                "snapshot": Operation(running.snapshot),
                "scale": Operation(self._scale, _SIZES),
                "play": Operation(running.play, {"text": TEXT, "name": NAME}, {"seed": SEED}),
                "stop": Operation(running.stop_scenario),
                "end": Operation(self._end),
                **event_operations(self._fleet.events),
                **verbs,
            }
        )

    async def run(self, request: Request) -> Any:
        """Do what is asked.

        Raises UsageError if it is asked of another fleet, StartError if it can't be done yet.
        """
        own, arguments = self._fleet.name, dict(request.arguments)
        if (meant := arguments.pop(FLEET, own)) != own:
            raise UsageError(
                f"--name: the fleet at this socket is {own!r}, not {cut(str(meant))!r}: give "
                f"--name {own}, or the other's --control-socket"
            )
        if request.command in (*FLEET_VERBS, "scale", "play"):
            await self._until_read()
        return await super().run(replace(request, arguments=arguments))

    async def _until_read(self) -> None:
        """Wait for the nodes: they bring faults, and would undo what was done before."""
        controller = self._running.controller
        with anyio.move_on_after(_PATIENCE_SECONDS):
            await self._fleet.changes.wait_until(lambda: controller.is_settled)
        if not controller.is_settled:
            raise StartError(
                "the fleet's process hasn't read its nodes from the API server yet (its log says "
                "why): try again when `hami-mock fleet status` shows them"
            )

    async def _act(self, verb: str, **arguments: Any) -> dict[str, Any]:
        given = {key: value for key, value in arguments.items() if key not in ("targets", "for")}
        seconds = arguments.get("for")
        found = self._fleet.find(arguments["targets"])
        done = self._fleet.act(verb, found, given, seconds)
        summary = [*_told(done.begun, "now"), *_told(done.ended, "no longer")]
        if not summary:
            summary = [f"nothing to {verb}: {_nodes(list(done.touched))}"]
        if seconds is not None and done.begun:
            summary.append(f"it ends by itself after {durations.show(seconds)}")
        return {
            "summary": summary,
            "nodes": [member.name for member in done.touched],
            "begun": _data(done.begun),
            "ended": _data(done.ended),
            "ends_after": seconds if done.begun else None,
        }

    async def _scale(self, pools: Mapping[str, int]) -> dict[str, Any]:
        there = {pool.name: pool.nodes for pool in self._fleet.pools}
        for name in pools.keys() - there.keys():
            self._fleet.scale(name, 0)  # which says that there is no such pool
        summary, changed = [], {}
        for name, nodes in pools.items():
            new, gone = self._fleet.scale(name, nodes)
            changed[name] = {"before": there[name], "now": nodes, "new": new, "gone": gone}
            summary.append(f"{name}: {there[name]} nodes, now {nodes}")
        summary.append("when the fleet is started again, its file decides")
        return {"summary": summary, "pools": changed}

    async def _end(self) -> dict[str, Any]:
        self._running.end()
        return {"summary": ["the fleet's process ends; its nodes stay"]}


def _told(faults: Mapping[Member, Sequence[Fault]], when: str) -> Iterator[str]:
    """Yield a line for all faults that are the same: 128 cards now unhealthy: …: 16 nodes (…)."""
    for fault, count, members in alike(faults):
        is_node = fault.kind.on is On.NODES
        where = listed([each.name for each in members]) if is_node else _nodes(members)
        yield f"{told(fault, count, when)}: {where}"


def _nodes(members: Sequence[Member]) -> str:
    names = [member.name for member in members]
    return names[0] if len(names) == 1 else f"{len(names)} nodes ({listed(names)})"


def _data(faults: Mapping[Member, Sequence[Fault]]) -> list[dict[str, Any]]:
    return [
        {"node": member.name, "effect": fault.kind.name, "reason": fault.reason, **fault.details}
        for member, own in faults.items()
        for fault in own
    ]
