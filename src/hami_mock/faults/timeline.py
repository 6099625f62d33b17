"""A scenario and a seed → its moments in order, one by one. Pure.

The timeline is a queue of what comes next. A turn that comes up puts what it does into the queue,
and the next turn of its part: so a scenario without end takes no more memory than a short one.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import count
from random import Random

from hami_mock.faults.actions import Action
from hami_mock.faults.scenario import Loop, Part, Scenario, Step


class What(IntEnum):
    """What happens at a moment; of those at the same time, the smaller comes first."""

    UNDO = 1
    DO = 2
    END_ROUND = 3


_TURN = 0
"""Before all moments of the same time, because it may make one of them."""


@dataclass(frozen=True)
class Moment:
    """Something that happens, `time` seconds after the start.

    `turn` has the round, the turns of the loops around the step, and the step's own, each counted
    from 0. At the end of a round, all that it began is undone; `step` and `action` are None then.
    """

    time: float
    what: What
    turn: str
    step: Step | None = None
    action: Action | None = None
    draw: str = ""
    """The seed of the choice among the targets."""

    @property
    def lasts(self) -> float | None:
        """How long until it is undone; None: not before the end of the round."""
        return self.step.lasts if self.step else None

    def random(self) -> Random:
        """Return the source of the choice among the targets: the same one each time."""
        return Random(self.draw)


def moments(scenario: Scenario, seed: int | None = None) -> Iterator[Moment]:
    """Yield all that happens, in order; `seed` replaces the scenario's own."""
    chosen = scenario.seed if seed is None else seed
    for number in count() if scenario.rounds is None else range(scenario.rounds):
        yield from _Round(scenario, chosen, number).play()


@dataclass(frozen=True)
class _Turn:
    """A turn that is to come of a part; `start` and `outer` are of the round or turn it is in."""

    part: Part
    start: float
    outer: str
    number: int = 0

    @property
    def time(self) -> float:
        rhythm = self.part.rhythm
        return round(self.start + rhythm.at + self.number * rhythm.period, 3)


class _Round:
    def __init__(self, scenario: Scenario, seed: int, number: int) -> None:
        self._seed = seed
        self._queue: list[tuple[float, int, int, int, _Turn | Moment]] = []
        self._pushed = count()
        self._cut: float | None = None
        start = number * (scenario.length or 0.0)
        if scenario.length is not None:
            over = round(start + scenario.length, 3)
            self._push(Moment(over, What.END_ROUND, str(number)))
            self._cut = over if scenario.is_cut else None
        self._begin(scenario.steps, start, str(number))

    def play(self) -> Iterator[Moment]:
        while self._queue:
            *_, item = heapq.heappop(self._queue)
            if isinstance(item, _Turn):
                self._come(item)
                continue
            yield item
            if item.what is What.DO and item.lasts is not None:
                over = round(item.time + item.lasts, 3)
                self._push(replace(item, time=over, what=What.UNDO))

    def _begin(self, parts: Iterable[Part], start: float, outer: str) -> None:
        for part in parts:
            self._push(_Turn(part, start, outer))

    def _come(self, turn: _Turn) -> None:
        part, rhythm = turn.part, turn.part.rhythm
        if rhythm.count is None or turn.number + 1 < rhythm.count:
            self._push(replace(turn, number=turn.number + 1))
        name = f"{turn.outer}.{turn.number}"
        # Each draw has a source of its own: to change one of them leaves the others as they are.
        draw = f"{self._seed}/{part.key}/{name}"
        time = round(turn.time + Random(f"{draw}/jitter").uniform(0, rhythm.jitter), 3)
        if isinstance(part, Loop):
            self._begin(part.steps, time, name)
            return
        drawn = {
            parameter: Random(f"{draw}/{parameter}").choice(values)
            for parameter, values in part.drawn.items()
        }
        action = replace(part.action, parameters={**part.action.parameters, **drawn})
        self._push(Moment(time, What.DO, name, part, action, f"{draw}/choose"))

    def _push(self, item: _Turn | Moment) -> None:
        # Whatever is still under way then, the end of the round undoes.
        if self._cut is not None and item.time >= self._cut:
            return
        what, order = _TURN, 0
        if isinstance(item, Moment):
            what, order = item.what, item.step.order if item.step else 0
        heapq.heappush(self._queue, (item.time, what, order, next(self._pushed), item))
