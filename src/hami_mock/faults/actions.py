"""Actions: what a person or a scenario does to the node, in one vocabulary.

`perform` turns an action into faults of the node's state, or ends some. Whoever makes an action has
checked its parameters (`fault_kinds` says what they may be).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from hami_mock.errors import UsageError
from hami_mock.faults.targets import ALL, find_cards, find_resources, is_card, is_resource
from hami_mock.node.cards import Card
from hami_mock.node.fault import Fault, FaultKind, On
from hami_mock.node.fault_kinds import DROP, VERBS, mended_by
from hami_mock.node.resources import Resource
from hami_mock.node.xid import describe
from hami_mock.vendors import VENDORS

if TYPE_CHECKING:
    # `ctl` needs the verbs, and the state would take longer to load than all the rest of it.
    from hami_mock.node.sizing import Node
    from hami_mock.node.state import NodeState

_T = TypeVar("_T")

Targets = tuple[tuple[Card, ...], tuple[Resource, ...]]


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
        for parameter in VERBS[self.verb].parameters:
            if parameter.name in self.parameters:
                shown = parameter.kind.show(self.parameters[parameter.name])
                (words if parameter.is_required else why).append(shown)
        chosen = f"{self.choose} of " if self.choose is not None else ""
        words.append(chosen + ", ".join(self.targets))
        return ": ".join(filter(None, (" ".join(words), ", ".join(why))))


def perform(action: Action, state: "NodeState", random: Random | None = None) -> tuple[Fault, ...]:
    """Do it, and return the faults that it began: `state.lift` ends them again.

    Raises UsageError if it names what isn't there, or asks for what can't be.
    """
    cards, resources = _chosen(action, state, random)
    targets = [*(card.uuid for card in cards), *(resource.name for resource in resources)]
    verb = VERBS[action.verb]
    if isinstance(verb, FaultKind):
        return _begin(verb, action.parameters, state, targets)
    if verb is DROP:
        state.drop_streams(resources, action.parameters.get("reason", ""))
    else:
        state.lift_from(frozenset(targets), mended_by(verb))
    return ()


def names(action: Action, state: "NodeState", random: Random | None = None) -> tuple[str, ...]:
    """Return the names of the cards and resources that `perform` would act on.

    Raises UsageError if it names what isn't there.
    """
    cards, resources = _chosen(action, state, random)
    return (*(card.name for card in cards), *(resource.name for resource in resources))


def find_targets(action: Action, node: "Node") -> Targets:
    """Return all cards and resources that the action names; `choose` takes some of them.

    Raises UsageError for each word that names nothing.
    """
    match VERBS[action.verb].on:
        case On.CARDS:
            return find_cards(node.cards, action.targets), ()
        case On.RESOURCES:
            return (), find_resources(node.resources, action.targets)
        case On.BOTH:
            return _cards_and_resources(action.targets, node)


def refuse_xids(cards: Iterable[Card]) -> None:
    """Raise UsageError if some of the cards can't have a Xid."""
    without = [card.name for card in cards if not card.vendor.has_xids]
    if without:
        have = " and ".join(vendor.title for vendor in VENDORS if vendor.has_xids)
        raise UsageError(
            f"only cards of {have} have Xids, not {', '.join(without)}: give a reason instead"
        )


def _chosen(action: Action, state: "NodeState", random: Random | None) -> Targets:
    cards, resources = find_targets(action, state.node)
    if action.choose is None:
        return cards, resources
    random = random or Random()
    return _some(cards, action.choose, random), _some(resources, action.choose, random)


def _begin(
    kind: FaultKind, parameters: Mapping[str, Any], state: "NodeState", targets: Sequence[str]
) -> tuple[Fault, ...]:
    details = dict(parameters)
    reason = details.pop("reason", "")
    xid = details.pop("xid", None)
    if xid is not None:
        cards = [state.cards[uuid] for uuid in targets]
        refuse_xids(cards)
        state.count_xid(cards, xid)
        if xid in state.ignored_xids:
            return ()
        reason = ", ".join(filter(None, (describe(xid), reason)))
    # One fault for each target: a card may recover by itself, and `up` of one resource would leave
    # the others a fault that whoever began it doesn't know.
    faults = tuple(Fault(kind, frozenset({target}), reason, details) for target in targets)
    state.strike(*faults)
    return faults


def _cards_and_resources(words: tuple[str, ...], node: "Node") -> Targets:
    """Return all that the words name, whether cards or resources."""
    cards = tuple(c for c in node.cards if any(is_card(c, word) for word in words))
    resources = tuple(r for r in node.resources if any(is_resource(r, word) for word in words))
    problems = [
        f"there is no card and no resource {word!r} here"
        for word in words
        if not any(is_card(card, word) for card in cards)
        and not any(is_resource(resource, word) for resource in resources)
    ]
    if problems:
        raise UsageError(problems)
    return cards, resources


def _some(items: tuple[_T, ...], choose: int | Share, random: Random) -> tuple[_T, ...]:
    count = choose.of(len(items)) if isinstance(choose, Share) else choose
    chosen = random.sample(range(len(items)), min(count, len(items)))
    return tuple(items[index] for index in sorted(chosen))
