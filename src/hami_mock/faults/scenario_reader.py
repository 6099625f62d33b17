"""A scenario's file → a `Scenario`, or all that is wrong with it, each mistake with its place.

examples/README.md explains the language.
"""

import math
import reprlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.faults import scenario_schema as kinds
from hami_mock.faults.actions import Action
from hami_mock.faults.scenario import Loop, Part, Rhythm, Scenario, Step, end
from hami_mock.faults.targets import find, refuse_xids
from hami_mock.kit import durations, strict_yaml
from hami_mock.kit.files import read_text
from hami_mock.kit.text import cut
from hami_mock.kit.values import LINE, MOST_SECONDS, SEED, SHORTEST, SPAN, Fields, Mistakes
from hami_mock.node.fault import FaultKind, On, Verb
from hami_mock.node.fault_kinds import EVERY_VERB, OF_NODES, VERBS, parameter_names
from hami_mock.node.sizing import Node

_DEEPEST = 5
_MOST_STEPS = 1000
_MOST_TARGETS = 10_000
_MOST_AT_ONCE = 10_000
_MOST_PER_SECOND = 1000
_OF_A_NODE = "not a verb of fleets: their nodes have no plugin and no kubelet"
_OF_FLEETS = "only for fleets: a node can't do it to itself"


def read(path: str, node: Node | None = None) -> Scenario:
    """Read a file. Raises UsageError with one line for each mistake.

    What can never happen on the node, if one is given, is a mistake too.
    """
    return parse(read_text("can't read the scenario", path), path, node)


def parse(
    text: str, file: str, node: Node | None = None, verbs: Mapping[str, Verb] = VERBS
) -> Scenario:
    """Read a scenario's text, with the verbs of a node or of a fleet; else it is as `read`."""
    file = cut(file)
    try:
        document = strict_yaml.load(text)
    except ValueError as error:
        raise UsageError(f"{file}: not valid YAML: {error}") from error
    if not isinstance(document, dict):
        shown = reprlib.repr(document)
        raise UsageError(f"{file}: a scenario must be a mapping with the key steps, not {shown}")
    mistakes = Mistakes(file)
    scenario = _Reader(mistakes, verbs).scenario(Fields(document, "", mistakes))
    # What is wrong already would only look like more mistakes there.
    if not mistakes.lines:
        _check(scenario, mistakes)
        if node is not None:
            _check_on_node(scenario, node, mistakes)
    if mistakes.lines:
        raise UsageError(mistakes.lines)
    return scenario


class _Reader:
    def __init__(self, mistakes: Mistakes, verbs: Mapping[str, Verb]) -> None:
        self._mistakes = mistakes
        self._verbs = verbs
        self._foreign = {
            name: _OF_FLEETS if name in OF_NODES else _OF_A_NODE
            for name in EVERY_VERB.keys() - verbs.keys()
        }
        """Verbs that aren't understood here, and why."""
        self._steps = 0
        self._targets = 0

    def scenario(self, fields: Fields) -> Scenario:
        fields.allow(
            (*kinds.TOP_KEYS, "steps"),
            dict.fromkeys((*kinds.STEP_KEYS, *self._verbs, "loop"), "belongs in a step"),
        )
        parts = self._parts(fields, "", 1)
        length = fields.get("length", kinds.LENGTH, None)
        return Scenario(
            name=fields.get("name", LINE, Path(self._mistakes.file).stem),
            steps=parts,
            seed=fields.get("seed", SEED, 0),
            rounds=fields.get("repeat", kinds.TURNS_OR_FOREVER, 1),
            length=length if "length" in fields else end(parts),
            is_cut=length is not None,
        )

    def _parts(self, outer: Fields, key: str, depth: int) -> tuple[Part, ...]:
        nodes = outer.values.get("steps")
        if depth > _DEEPEST:
            outer.say("steps", f"loops may be nested at most {_DEEPEST - 1} deep")
            return ()
        if not isinstance(nodes, list) or not nodes:
            allowed = "a list of steps, such as [{at: 30s, fail: nvidia/0, for: 1m}]"
            self._mistakes.refuse(outer.at("steps"), nodes, allowed)
            return ()
        found: list[Part | None] = []
        seen: Counter[str] = Counter()
        for number, node in enumerate(nodes):
            self._steps += 1
            if self._steps > _MOST_STEPS:
                break
            found.append(self._part(node, f"{outer.at('steps')}[{number}]", key, depth, seen))
        if self._steps > _MOST_STEPS and not outer.place:
            outer.say("steps", f"there are more than {_MOST_STEPS}: use a loop")
        return tuple(part for part in found if part is not None)

    def _part(
        self, node: Any, place: str, outer_key: str, depth: int, seen: Counter[str]
    ) -> Part | None:
        if not isinstance(node, dict):
            self._mistakes.refuse(place, node, "a mapping such as {at: 30s, fail: nvidia/0}")
            return None
        fields = Fields(node, place, self._mistakes)
        verbs = [key for key in node if key in self._verbs or key == "loop"]
        if len(verbs) != 1:
            self._refuse_verbs(fields, verbs)
            return None
        (verb,) = verbs
        targets = () if verb == "loop" else fields.get(verb, kinds.TARGETS, ())
        self._targets += len(targets)
        if self._targets > _MOST_TARGETS >= self._targets - len(targets):
            problem = f"all steps together name more than {_MOST_TARGETS} targets"
            self._mistakes.say(place, problem)
        # Not the number in the list: a new step before this one must leave its draws alone.
        name = " ".join((verb, *targets))
        key = f"{outer_key}{name}#{seen[name]}"
        seen[name] += 1
        if verb == "loop":
            return self._loop(fields, key, depth)
        return self._step(fields, key, verb, targets, is_in_loop=depth > 1)

    def _refuse_verbs(self, fields: Fields, verbs: list[str]) -> None:
        before = len(self._mistakes.lines)
        fields.allow(
            {*kinds.STEP_KEYS, *kinds.LOOP_KEYS, "steps", *parameter_names(), *self._verbs},
            self._foreign,
        )
        if verbs:
            several = f"{' and '.join(verbs)} don't go together: give each its own step"
            self._mistakes.say(fields.place, several)
        elif len(self._mistakes.lines) == before:
            nothing = f"the step does nothing: give it one of {', '.join(self._verbs)} or loop"
            self._mistakes.say(fields.place, nothing)

    def _loop(self, fields: Fields, key: str, depth: int) -> Loop:
        inside = {*kinds.STEP_KEYS, *parameter_names()}
        elsewhere = dict.fromkeys(inside, "belongs in the steps of the loop")
        elsewhere["times"] = "give the number to the loop itself, such as loop: 5"
        fields.allow((*kinds.LOOP_KEYS, "steps"), elsewhere)
        before = len(self._mistakes.lines)
        turns = fields.get("loop", kinds.TURNS_OR_FOREVER, 1)
        if turns is None and depth > 1:
            fields.say("loop", "a loop inside another must end: give it a number of turns")
        parts = self._parts(fields, f"{key}/", depth + 1)
        period = fields.get("every", SPAN, end(parts) or 0.0)
        if turns != 1 and period < SHORTEST and len(self._mistakes.lines) == before:
            fields.say("loop", "its turns take no time: give it `every`, such as every: 1m")
        at = fields.get("at", kinds.OFFSET, 0.0)
        jitter = fields.get("jitter", kinds.OFFSET, 0.0)
        return Loop(key, Rhythm(at, period, turns, jitter), parts)

    def _step(
        self, fields: Fields, key: str, verb: str, targets: tuple[str, ...], *, is_in_loop: bool
    ) -> Step:
        row = self._verbs[verb]
        fields.allow(
            (*kinds.STEP_KEYS, *(parameter.name for parameter in row.parameters), verb),
            {
                "steps": "belongs to a loop",
                **self._foreign,
                **dict.fromkeys(parameter_names(), f"{verb} doesn't take it"),
            },
        )
        if "for" in fields and not isinstance(row, FaultKind):
            fields.say("for", f"{verb} doesn't last: there is nothing to undo")
        if "choose" in fields and row.on is On.BOTH:
            fields.say("choose", f"{verb} always acts on all of its targets")
        given: dict[str, Any] = {
            parameter.name: fields.need(parameter.name, kinds.of(parameter), None)
            for parameter in row.parameters
            if parameter.is_required or parameter.name in fields
        }
        draws = (p.name for p in row.parameters if p.is_drawn and p.name in given)
        drawn = {name: given.pop(name) for name in draws}
        action = Action(verb, targets, given, fields.get("choose", kinds.CHOOSE, None))
        return Step(
            place=fields.place,
            order=self._steps,
            key=key,
            rhythm=_rhythm(fields, is_in_loop=is_in_loop),
            action=action,
            drawn=drawn,
            lasts=fields.get("for", SPAN, None),
        )


def _rhythm(fields: Fields, *, is_in_loop: bool) -> Rhythm:
    """Return when a step comes: with `times` and `until`, it ends with whichever is first."""
    at = fields.get("at", kinds.OFFSET, 0.0)
    jitter = fields.get("jitter", kinds.OFFSET, 0.0)
    if "every" not in fields:
        for key in ("times", "until"):
            if key in fields:
                fields.say(key, "needs `every`: the time from one turn to the next")
        return Rhythm(at, jitter=jitter)
    period = fields.get("every", SPAN, SHORTEST)
    counts: list[int] = []
    if "times" in fields:
        counts.append(fields.get("times", kinds.TURNS, 1))
    if "until" in fields:
        until = fields.get("until", SPAN, MOST_SECONDS)
        if until <= at:
            fields.say("until", f"must be later than at, which is {durations.show(at)}")
        counts.append(math.ceil(round((until - at) / period, 6)))
    if not counts and is_in_loop:
        fields.say("every", "in a loop, it must end: give the step `times` or `until`")
    return Rhythm(at, period, min(counts, default=None), jitter)


def _check(scenario: Scenario, mistakes: Mistakes) -> None:
    """Add what the scenario must not be as a whole, though each of its steps is fine."""
    length = scenario.length
    if length is None and scenario.rounds != 1:
        problem = "the steps never end, so they would never repeat: give the scenario a length"
        mistakes.say("repeat", problem)
    if length is not None:
        _check_length(scenario, length, mistakes)
    if scenario.per_second > _MOST_PER_SECOND:
        mistakes.say(
            "steps",
            f"up to {math.ceil(scenario.per_second)} turns would happen in a second, but at most "
            f"{_MOST_PER_SECOND} may: make `every`, or the length, longer",
        )
    at_once = sum(part.crowd for part in scenario.steps)
    if at_once > _MOST_AT_ONCE:
        most = max(range(len(scenario.steps)), key=lambda number: scenario.steps[number].crowd)
        mistakes.say(
            f"steps[{most}]",
            f"up to {at_once} turns would overlap, but at most {_MOST_AT_ONCE} "
            "may: make `every` longer, or `for` shorter",
        )


def _check_length(scenario: Scenario, length: float, mistakes: Mistakes) -> None:
    if scenario.rounds != 1 and length < SHORTEST:
        problem = "the steps take no time: give the scenario a length, such as length: 1m"
        mistakes.say("repeat", problem)
    if scenario.is_cut:
        for number, part in enumerate(scenario.steps):
            if part.rhythm.at >= length:
                problem = f"it would never happen: the length is {durations.show(length)}"
                mistakes.say(f"steps[{number}].at", problem)
    else:
        for step, last in _last_starts(scenario.steps):
            if step.stays and last >= length:
                mistakes.say(
                    step.place,
                    "it would be undone at once, because the scenario ends there: give it `for`, "
                    "or give the scenario a length (with length: forever, it stays until you stop "
                    "it)",
                )


def _check_on_node(scenario: Scenario, node: Node, mistakes: Mistakes) -> None:
    """Add the steps that can never happen on a node."""
    for step, _ in _last_starts(scenario.steps):
        action, key = step.action, step.action.verb
        try:
            verb = VERBS[action.verb]
            targets = find(node, verb.on, action.targets, needs_plugin=verb.needs_plugin)
            if xids := step.drawn.get("xid"):
                key = f"xid: {', '.join(map(str, xids))} is not allowed"
                refuse_xids(targets)
        except UsageError as error:
            for problem in error.problems:
                mistakes.say(f"{step.place}.{key}", problem)


def _last_starts(parts: Sequence[Part], start: float = 0.0) -> Iterator[tuple[Step, float]]:
    """Yield each step with the latest start of its last turn; of its first, if it never ends."""
    for part in parts:
        last = round(start + (part.rhythm.last or 0.0), 3)
        if isinstance(part, Loop):
            yield from _last_starts(part.steps, last)
        else:
            yield part, last
