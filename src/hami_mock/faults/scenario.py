"""A scenario: which faults come when. Pure data; `scenario_reader` makes it from a file."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hami_mock.faults.actions import Action
from hami_mock.node.fault import FaultKind
from hami_mock.node.fault_kinds import EVERY_VERB


@dataclass(frozen=True)
class Rhythm:
    """When something comes: `count` times (None: without end), `period` apart, from `at` on.

    Times are seconds from the start of the round, or of the loop's turn. Each time may come up to
    `jitter` later than that, at random.
    """

    at: float = 0.0
    period: float = 0.0
    count: int | None = 1
    jitter: float = 0.0

    @property
    def last(self) -> float | None:
        """The latest start of the last time; None if there is no last one."""
        if self.count is None:
            return None
        return self.at + (self.count - 1) * self.period + self.jitter

    @property
    def per_second(self) -> float:
        """How many times come in a second; 0 if there is only one."""
        return 1 / self.period if self.period and self.count != 1 else 0.0

    def overlapping(self, length: float) -> int:
        """Return how many may be under way at once, if each takes that long."""
        if not self.period:
            return 1
        most = math.ceil((length + self.jitter) / self.period) + 1
        return most if self.count is None else min(most, self.count)


@dataclass(frozen=True)
class Step:
    """An action at its times.

    `place` is where it stands in the file, and `order` counts the steps of the file. `key` is what
    its random draws depend on: another step beside it doesn't change it.
    """

    place: str
    order: int
    key: str
    rhythm: Rhythm
    action: Action
    drawn: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values of parameters, by name: one of them is drawn each time."""
    lasts: float | None = None
    """After so long it is undone; None: at the end of the round."""

    @property
    def length(self) -> float:
        return self.lasts or 0.0

    @property
    def steps_a_turn(self) -> int:
        return 1

    @property
    def per_second(self) -> float:
        return self.rhythm.per_second

    @property
    def crowd(self) -> int:
        """How many times of it may last at once, not counting what stays to the end."""
        return self.rhythm.overlapping(self.length)

    @property
    def stays(self) -> bool:
        return self.lasts is None and isinstance(EVERY_VERB[self.action.verb], FaultKind)


@dataclass(frozen=True)
class Loop:
    """Steps that come again and again."""

    key: str
    rhythm: Rhythm
    steps: "tuple[Step | Loop, ...]"

    @property
    def length(self) -> float:
        # The reader sees to it that nothing in a loop is without end.
        return end(self.steps) or 0.0

    @property
    def steps_a_turn(self) -> int:
        return sum(part.steps_a_turn for part in self.steps)

    @property
    def per_second(self) -> float:
        """How many times of its steps may come in a second, at most."""
        inside = sum(part.per_second for part in self.steps)
        turns = self.rhythm.overlapping(self.length)
        return self.rhythm.per_second * self.steps_a_turn + turns * inside

    @property
    def crowd(self) -> int:
        """How many times of its steps may last at once."""
        return self.rhythm.overlapping(self.length) * sum(part.crowd for part in self.steps)


Part = Step | Loop


@dataclass(frozen=True)
class Scenario:
    """A timeline of parts, played once, `rounds` times, or without end (None)."""

    name: str
    steps: tuple[Part, ...]
    seed: int = 0
    rounds: int | None = 1
    length: float | None = None
    """How long a round is; None: it has no end."""
    is_cut: bool = False
    """Whether the length was given, so that what would begin later is left out."""

    @property
    def total(self) -> float | None:
        """How long it plays; None: until it is stopped."""
        if self.rounds is None or self.length is None:
            return None
        return self.rounds * self.length

    @property
    def per_second(self) -> float:
        """How many times of its steps may come in a second, at most."""
        a_round = sum(part.steps_a_turn for part in self.steps)
        rounds = a_round / self.length if self.rounds != 1 and self.length else 0.0
        return rounds + sum(part.per_second for part in self.steps)


def end(parts: Sequence[Part]) -> float | None:
    """Return when the last of them is over, at the latest; None if that never is."""
    ends = []
    for part in parts:
        last = part.rhythm.last
        if last is None:
            return None
        ends.append(last + part.length)
    return round(max(ends, default=0.0), 3)
