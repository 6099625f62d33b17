"""Actions: what a person or a scenario does to the node, in one vocabulary.

`perform` turns an action into faults of the node's state, or ends some. Whoever makes an action has
checked its parameters (`fault_kinds` says what they may be).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from hami_mock.errors import UsageError
from hami_mock.faults.targets import ALL, Target, find, identity, refuse_xids
from hami_mock.node.cards import Card
from hami_mock.node.fault import Fault, FaultKind, Verb
from hami_mock.node.fault_kinds import DROP, EVERY_VERB, mended_by
from hami_mock.node.resources import Resource
from hami_mock.node.xid import describe

MOST_FAULTS = 10_000

if TYPE_CHECKING:
    # `ctl` needs the verbs, and the state would take longer to load than all the rest of it.
    from hami_mock.node.state import NodeState


@dataclass(frozen=True)
class Share:
    """A part of the targets, in percent."""

    percent: int

    def __str__(self) -> str:
        return f"{self.percent}%"

    def of(self, count: int) -> int:
        """Return how many that is, rounded half up, but at least one."""
        return max(1, (count * self.percent + 50) // 100)


@dataclass(frozen=True)
class Action:
    """A verb, words for its targets, and values of the verb's parameters by name.

    `choose` takes that many of the targets at random.
    """

    verb: str
    targets: tuple[str, ...] = (ALL,)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    choose: int | Share | None = None

    @property
    def text(self) -> str:
        """The action in words: `delay allocate 2s nvidia`, `fail nvidia/0: Xid 79, a test`."""
        words = [self.verb]
        why: list[str] = []
        for parameter in EVERY_VERB[self.verb].parameters:
            if parameter.name in self.parameters:
                shown = parameter.kind.show(self.parameters[parameter.name])
                (words if parameter.is_required else why).append(shown)
        chosen = f"{self.choose} of " if self.choose is not None else ""
        words.append(chosen + ", ".join(self.targets))
        return ": ".join(filter(None, (" ".join(words), ", ".join(why))))


def perform(action: Action, state: "NodeState", random: Random | None = None) -> tuple[Fault, ...]:
    """Do it, and return the faults that it began: `state.end_faults` ends them again.

    Raises UsageError if it names what isn't there, or asks for what can't be.
    """
    targets = _chosen(action, state, random)
    return apply(EVERY_VERB[action.verb], action.parameters, state, targets)


def apply(
    verb: Verb, parameters: Mapping[str, Any], state: "NodeState", targets: Sequence[Target]
) -> tuple[Fault, ...]:
    """Do what a verb says to targets that have been found; else it is as `perform`."""
    if isinstance(verb, FaultKind):
        return _begin(verb, parameters, state, targets)
    if verb is DROP:
        resources = [target for target in targets if isinstance(target, Resource)]
        state.drop_streams(resources, parameters.get("reason", ""))
    else:
        state.end_faults_of(frozenset(map(identity, targets)), mended_by(verb))
    return ()


def names(action: Action, state: "NodeState", random: Random | None = None) -> tuple[str, ...]:
    """Return the names of the cards and resources that `perform` would act on.

    Raises UsageError if it names what isn't there.
    """
    return tuple(target.name for target in _chosen(action, state, random))


def _chosen(action: Action, state: "NodeState", random: Random | None) -> tuple[Target, ...]:
    verb = EVERY_VERB[action.verb]
    targets = find(state.node, verb.on, action.targets, needs_plugin=verb.needs_plugin)
    if action.choose is None:
        return targets
    choose, there = action.choose, len(targets)
    count = choose.of(there) if isinstance(choose, Share) else min(choose, there)
    chosen = (random or Random()).sample(range(there), count)
    return tuple(targets[index] for index in sorted(chosen))


def _begin(
    kind: FaultKind, parameters: Mapping[str, Any], state: "NodeState", targets: Sequence[Target]
) -> tuple[Fault, ...]:
    if len(state.faults) + len(targets) > MOST_FAULTS:
        raise UsageError(
            f"at most {MOST_FAULTS} faults may be active at once, and there are "
            f"{len(state.faults)} already: end some of them first"
        )
    details = dict(parameters)
    reason = details.pop("reason", "")
    xid = details.get("xid")
    if xid is not None:
        refuse_xids(targets)
        state.count_xid([target for target in targets if isinstance(target, Card)], xid)
        if xid in state.ignored_xids:
            return ()
        reason = ", ".join(filter(None, (describe(xid), reason)))
    # One fault for each target: a card may recover by itself, and `up` of one resource would leave
    # the others a fault that whoever began it doesn't know.
    faults = tuple(
        Fault(kind, frozenset({identity(target)}), reason, details) for target in targets
    )
    state.begin_faults(*faults)
    return faults
