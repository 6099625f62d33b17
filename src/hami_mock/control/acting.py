"""Verbs: what a request makes of the node's state, and how that is told."""

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from typing import Any

from anyio import CancelScope, sleep
from anyio.abc import TaskGroup

from hami_mock.errors import UsageError
from hami_mock.faults.actions import Action, names, perform
from hami_mock.faults.targets import listed
from hami_mock.kit import durations
from hami_mock.kit.text import cut
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import DROP
from hami_mock.node.state import NodeState
from hami_mock.node.xid import describe

_MOST_WAITING = 1000

_log = logging.getLogger(__name__)


class Acting:
    """Does what verbs say. The ends of faults that last for a while wait in `tasks`."""

    def __init__(self, state: NodeState, tasks: TaskGroup) -> None:
        self._state = state
        self._tasks = tasks
        self._waiting: dict[CancelScope, Sequence[Fault]] = {}

    async def act(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Do what a verb says, and let it end after a while if that is asked for.

        Returns what was touched, what began and what ended, with a summary for people. Raises
        UsageError if the request names what isn't there, or asks for what can't be.
        """
        state = self._state
        given = {key: value for key, value in arguments.items() if key not in ("targets", "for")}
        action = Action(verb, arguments["targets"], given)
        if "for" in arguments and len(self._waiting) >= _MOST_WAITING:
            raise UsageError(
                f"for: the faults of {_MOST_WAITING} requests are waiting to end already: end "
                "some of them first"
            )
        before = state.faults
        begun = perform(action, state)
        active = set(state.faults)
        ended = [fault for fault in before if fault not in active]
        self._forget_all_but(active)
        touched = names(action, state)
        summary = [*_told(begun, "now", state), *_told(ended, "no longer", state)]
        if not summary:
            summary.append(_without_faults(action, touched))
        seconds: float | None = arguments.get("for") if begun else None
        if seconds is not None:
            scope = CancelScope()
            self._waiting[scope] = begun
            self._tasks.start_soon(self._lift_later, scope, seconds)
            summary.append(f"it ends by itself after {durations.show(seconds)}")
        _log.info("control: %s", cut(action.text))
        return {
            "summary": summary,
            "touched": touched,
            "begun": [_data(fault, state) for fault in begun],
            "ended": [_data(fault, state) for fault in ended],
            "ends_after": seconds,
        }

    async def _lift_later(self, scope: CancelScope, seconds: float) -> None:
        with scope:
            await sleep(seconds)
            self._state.end_faults(*self._waiting.pop(scope, ()))

    def _forget_all_but(self, active: Set[Fault]) -> None:
        """End the waits for what has ended, or somebody's loop would pile them up for a week."""
        for scope in [s for s, faults in self._waiting.items() if active.isdisjoint(faults)]:
            del self._waiting[scope]
            scope.cancel()


def _told(faults: Iterable[Fault], when: str, state: NodeState) -> Iterator[str]:
    """Yield a line for all faults that do the same: 2 cards now lost: nvidia/0, nvidia/1.

    A card that had two of them is still one card.
    """
    alike: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        what = replace(fault, reason="").text
        key = fault.kind.on.removesuffix("s"), f"with {what}" if fault.call else what
        alike.setdefault(key, []).append(fault)
    for (noun, what), group in alike.items():
        named = (name for fault in group for name in sorted(map(state.name_of, fault.targets)))
        subjects = [*dict.fromkeys(named)]
        reasons = "; ".join(dict.fromkeys(fault.reason for fault in group if fault.reason))
        many = f"{len(subjects)} {noun}{'s' if len(subjects) > 1 else ''}"
        yield f"{many} {when} {what}: {listed(subjects)}" + (reasons and f" ({reasons})")


def _without_faults(action: Action, touched: Sequence[str]) -> str:
    if "xid" in action.parameters:
        what = f"{describe(action.parameters['xid'])} counted; cards stay healthy"
    elif action.verb == DROP.verb:
        what = "list streams dropped"
    else:
        what = f"nothing to {action.verb}"
    return f"{what}: {listed(touched)}"


def _data(fault: Fault, state: NodeState) -> dict[str, Any]:
    return {
        "effect": fault.kind.name,
        "targets": sorted(map(state.name_of, fault.targets)),
        "reason": fault.reason,
        "call": None,
        "seconds": None,
        **fault.details,
    }
