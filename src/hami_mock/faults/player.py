"""Plays a scenario on a node: does its moments when their time has come, and undoes them again."""

import math
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import anyio

from hami_mock.errors import UsageError
from hami_mock.faults.actions import Action, names, perform
from hami_mock.faults.scenario import Scenario
from hami_mock.faults.timeline import Moment, What, moments
from hami_mock.kit import durations
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import EventLog
from hami_mock.node.fault import Fault
from hami_mock.node.state import NodeState


class Played(Protocol):
    """What a scenario is played on: a node, or a fleet of them."""

    @property
    def events(self) -> EventLog: ...
    def names(self, action: Action, random: Random) -> tuple[str, ...]:
        """Return the names of what `perform` would act on. Raises UsageError."""

    def perform(self, action: Action, random: Random) -> tuple[Fault, ...]:
        """Do it, and return the faults that it began. Raises UsageError."""

    def lift(self, faults: Iterable[Fault]) -> tuple[str, ...]:
        """End faults, if they still last; return the names of what had them."""


@dataclass(frozen=True)
class OnNode:
    """A node, to play a scenario on."""

    state: NodeState

    @property
    def events(self) -> EventLog:
        return self.state.events

    def names(self, action: Action, random: Random) -> tuple[str, ...]:
        return names(action, self.state, random)

    def perform(self, action: Action, random: Random) -> tuple[Fault, ...]:
        return perform(action, self.state, random)

    def lift(self, faults: Iterable[Fault]) -> tuple[str, ...]:
        active = set(self.state.faults)
        lasting = [fault for fault in faults if fault in active]
        if lasting:
            self.state.end_faults(*lasting)
        targets = dict.fromkeys(name for fault in lasting for name in sorted(fault.targets))
        return tuple(map(self.state.name_of, targets))


class Player:
    """One play of a scenario. It ends no fault but those that it began itself."""

    def __init__(
        self,
        scenario: Scenario,
        state: NodeState | Played,
        seed: int | None = None,
        *,
        clock: Callable[[], float] = anyio.current_time,
        sleep_until: Callable[[float], Awaitable[None]] = anyio.sleep_until,
    ) -> None:
        self.scenario = scenario
        self.seed = scenario.seed if seed is None else seed
        self._on = OnNode(state) if isinstance(state, NodeState) else state
        self._clock = clock
        self._sleep_until = sleep_until
        self._start: float | None = None
        self._stopped: float | None = None
        self._next: Moment | None = None
        self._ending = ""
        """How it ended: stopped, failed, or played to the end; empty while it plays."""
        self._lasting: dict[object, tuple[Fault, ...]] = {}
        """What has its own moment to end, by step and turn; what stays, by what it says."""

    @property
    def status(self) -> dict[str, Any]:
        """How far it is, in seconds from its start; the total of what has no end is None."""
        elapsed = 0.0
        if self._start is not None:
            now = self._clock() if self._stopped is None else self._stopped
            elapsed = round(now - self._start, 3)
        return {
            "name": self.scenario.name,
            "seed": self.seed,
            "elapsed": elapsed,
            "total": self.scenario.total,
            "next_at": self._next.time if self._next else None,
            "next": describe(self._next) if self._next else "",
            "done": self._stopped is not None,
            "ending": self._ending,
        }

    async def run(self) -> None:
        """Play to the end, or until cancelled; either way all that it began is undone."""
        self._start = self._clock()
        total = self.scenario.total
        for_how_long = "until stopped" if total is None else f"for {durations.show(total)}"
        self._tell(Kind.SCENARIO_STARTED, f"playing {for_how_long}, with seed {self.seed}")
        try:
            # Times are counted from the start, so that no lateness adds up.
            for moment in moments(self.scenario, self.seed):
                self._next = moment
                await self._sleep_until(self._start + moment.time)
                self._try(moment)
            self._next = None
            if total is None:
                await self._sleep_until(math.inf)
            self._ending = "played to the end"
        except Exception:
            self._ending = "failed"
            raise
        finally:
            self._next = None
            self._ending = self._ending or "stopped"
            self._stopped = self._clock()
            self.undo_all()
            elapsed = durations.show(self._stopped - self._start)
            self._tell(Kind.SCENARIO_ENDED, f"{self._ending} after {elapsed}")

    def play(self, moment: Moment) -> tuple[str, ...]:
        """Do what happens at a moment; return the names of the cards and resources it touched.

        Raises UsageError if these aren't there, or can't have that done to them.
        """
        if moment.step is None or moment.action is None:
            return self.undo_all()
        key = (moment.step.order, moment.turn)
        if moment.what is What.UNDO:
            return self._on.lift(self._lasting.pop(key, ()))
        touched = self._on.names(moment.action, moment.random())
        faults = self._on.perform(moment.action, moment.random())
        if moment.lasts is None:
            self._keep(faults)
        else:
            self._lasting[key] = faults
        return touched

    def undo_all(self) -> tuple[str, ...]:
        """End all that was begun here and still lasts; return the names of what had it."""
        faults = [fault for group in self._lasting.values() for fault in group]
        self._lasting.clear()
        return self._on.lift(faults)

    def _try(self, moment: Moment) -> None:
        """Do it; what isn't there, because the configuration has changed, must not end the play."""
        try:
            self.play(moment)
        except UsageError as error:
            place = moment.step.place if moment.step else ""
            for problem in error.problems:
                self._tell(Kind.SCENARIO_STEP_FAILED, f"{place}: {problem}")

    def _keep(self, faults: Iterable[Fault]) -> None:
        """Remember what stays; where it says no more than an older one, that one ends.

        Or a scenario without end would pile up the same fault for ever.
        """
        new: dict[object, tuple[Fault, ...]] = {
            (fault.kind, fault.targets, fault.reason, *fault.details.items()): (fault,)
            for fault in faults
        }
        self._on.lift([older for key in new for older in self._lasting.pop(key, ())])
        self._lasting |= new

    def _tell(self, kind: Kind, message: str) -> None:
        self._on.events.add(kind, self.scenario.name, message)


def describe(moment: Moment) -> str:
    if moment.action is None:
        return "end of the round: everything is undone"
    if moment.what is What.UNDO:
        return f"undo {moment.action.text}"
    return moment.action.text + (f", for {durations.show(moment.lasts)}" if moment.lasts else "")
