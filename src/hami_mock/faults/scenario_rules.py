"""What a scenario must not be as a whole, though each of its steps is fine. Pure."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hami_mock.errors import UsageError
from hami_mock.faults.actions import find_targets
from hami_mock.faults.scenario import Loop, Part, Scenario, Step
from hami_mock.faults.targets import refuse_xids
from hami_mock.kit import durations
from hami_mock.kit.values import SHORTEST, Mistakes

if TYPE_CHECKING:
    from hami_mock.node.sizing import Node

_MOST_AT_ONCE = 10_000


def check(scenario: Scenario, mistakes: Mistakes) -> None:
    if scenario.rounds != 1:
        if scenario.length is None:
            mistakes.say(
                "repeat", "the steps never end, so it would never repeat: give it a length"
            )
        elif scenario.length < SHORTEST:
            mistakes.say("repeat", "the steps take no time: give it a length, such as length: 1m")
    if scenario.length is not None and scenario.is_cut:
        _check_cut(scenario.steps, scenario.length, mistakes)
    elif scenario.length is not None:
        _check_end(scenario.steps, scenario.length, mistakes)
    at_once = sum(part.crowd for part in scenario.steps)
    if at_once > _MOST_AT_ONCE:
        most = max(range(len(scenario.steps)), key=lambda number: scenario.steps[number].crowd)
        mistakes.say(
            f"steps[{most}]",
            f"up to {at_once} turns would overlap, but at most {_MOST_AT_ONCE} "
            "may: make `every` longer, or `for` shorter",
        )


def check_on_node(scenario: Scenario, node: "Node", mistakes: Mistakes) -> None:
    """Add the steps that can never happen on a node."""
    for step, _ in _last_starts(scenario.steps):
        key = step.action.verb
        try:
            targets = find_targets(step.action, node)
            if xids := step.drawn.get("xid"):
                key = f"xid: {', '.join(map(str, xids))} is not allowed"
                refuse_xids(targets)
        except UsageError as error:
            for problem in error.problems:
                mistakes.say(f"{step.place}.{key}", problem)


def _check_cut(parts: Sequence[Part], length: float, mistakes: Mistakes) -> None:
    for number, part in enumerate(parts):
        if part.rhythm.at >= length:
            problem = f"it would never happen: the length is {durations.show(length)}"
            mistakes.say(f"steps[{number}].at", problem)


def _check_end(parts: Sequence[Part], length: float, mistakes: Mistakes) -> None:
    for step, last in _last_starts(parts):
        if step.stays and last >= length:
            mistakes.say(
                step.place,
                "it would be undone at once, because the scenario ends there: give it `for`, or "
                "give the scenario a length (with length: forever, it stays until you stop it)",
            )


def _last_starts(parts: Sequence[Part], start: float = 0.0) -> Iterator[tuple[Step, float]]:
    """Yield each step with the latest start of its last turn; of its first, if it never ends."""
    for part in parts:
        last = round(start + (part.rhythm.last or 0.0), 3)
        if isinstance(part, Loop):
            yield from _last_starts(part.steps, last)
        else:
            yield part, last
