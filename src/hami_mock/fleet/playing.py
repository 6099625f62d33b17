"""A fleet as something that scenarios are played on."""

from collections.abc import Iterable, Iterator
from random import Random

from hami_mock.errors import UsageError
from hami_mock.faults import scenario_reader
from hami_mock.faults.actions import Action, Share
from hami_mock.faults.scenario import Loop, Part, Scenario, Step
from hami_mock.faults.targets import refuse_xids
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.kinds import FLEET_VERBS, refuse_call
from hami_mock.fleet.member import Member
from hami_mock.fleet.naming import Naming
from hami_mock.fleet.nodes import node_of
from hami_mock.fleet.targets import Found
from hami_mock.kit.values import Mistakes
from hami_mock.node.events import EventLog
from hami_mock.node.fault import Fault, On

_SHOWN = 100
"""How many names of nodes are told of a step that acts on thousands."""


class OnFleet:
    """A fleet, to play a scenario on.

    `choose` counts what the words name: nodes, or cards where they name cards.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    @property
    def events(self) -> EventLog:
        return self._fleet.events

    def names(self, action: Action, random: Random) -> tuple[str, ...]:
        found = self._chosen(action, random)
        return tuple(
            member.name if words is None else f"{member.name}:{','.join(words)}"
            for member, words in found[:_SHOWN]
        )

    def perform(self, action: Action, random: Random) -> tuple[Fault, ...]:
        done = self._fleet.act(action.verb, self._chosen(action, random), action.parameters)
        return tuple(fault for own in done.begun.values() for fault in own)

    def lift(self, faults: Iterable[Fault]) -> tuple[str, ...]:
        wanted = set(faults)
        ending: dict[Member, list[Fault]] = {}
        for member in self._fleet.members.values() if wanted else ():
            if own := [fault for fault in member.faults if fault in wanted]:
                ending[member] = own
        self._fleet.end_faults(ending)
        return tuple(member.name for member in ending)[:_SHOWN]

    def _chosen(self, action: Action, random: Random) -> list[Found]:
        found = self._fleet.find(action.targets)
        choose = action.choose
        if choose is None:
            return found
        naming = Naming(FLEET_VERBS[action.verb])
        each = [one for some in found for one in self._apart(naming, some)]
        naming.check()
        count = choose.of(len(each)) if isinstance(choose, Share) else min(choose, len(each))
        return [each[index] for index in sorted(random.sample(range(len(each)), count))]

    def _apart(self, naming: Naming, found: Found) -> Iterable[Found]:
        """Yield a node as it is, or the cards or resources that are named, one by one."""
        member, words = found
        if words is None:
            yield found
            return
        for target in naming.on(node_of(member.pool, member.index), words):
            yield member, (target.name,)


def read_scenario(text: str, file: str, fleet: Fleet) -> Scenario:
    """Read a scenario for a fleet. Raises UsageError with one line for each mistake.

    What can never happen on it is a mistake too.
    """
    scenario = scenario_reader.parse(text, file, verbs=FLEET_VERBS)
    mistakes = Mistakes(file)
    for step in steps_of(scenario.steps):
        try:
            _check(step, fleet)
        except UsageError as error:
            for problem in error.problems:
                mistakes.say(f"{step.place}.{step.action.verb}", problem)
    if mistakes.lines:
        raise UsageError(mistakes.lines)
    return scenario


def steps_of(parts: Iterable[Part]) -> Iterator[Step]:
    """Yield the steps, with those in loops."""
    for part in parts:
        if isinstance(part, Loop):
            yield from steps_of(part.steps)
        else:
            yield part


def _check(step: Step, fleet: Fleet) -> None:
    """See whether a step's targets are there: all nodes of a pool have the same cards."""
    verb = FLEET_VERBS[step.action.verb]
    refuse_call(step.action.parameters)
    naming, seen = Naming(verb), set()
    for member, words in fleet.find(step.action.targets):
        if words is not None and verb.on is On.NODES:
            raise UsageError(f"{verb.verb}: name nodes, not cards of {member.name}")
        if (member.pool.name, words) not in seen and verb.on is not On.NODES:
            seen.add((member.pool.name, words))
            found = naming.on(node_of(member.pool, member.index), words)
            if step.drawn.get("xid"):
                refuse_xids(found)
    naming.check()
