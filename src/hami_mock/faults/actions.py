"""Actions: what a person or a scenario does to the node, in one vocabulary.

An action has a verb, words for its targets, and maybe parameters. `perform` turns it into faults of
the node's state, or ends some.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeVar

from hami_mock.errors import UsageError
from hami_mock.faults.targets import ALL, find_cards, find_resources, is_card, is_resource
from hami_mock.node.cards import Card
from hami_mock.node.fault import CALL_EFFECTS, Call, Effect, Fault
from hami_mock.node.resources import Resource
from hami_mock.node.xid import describe
from hami_mock.vendors import NVIDIA

if TYPE_CHECKING:
    # `ctl` needs the verbs, and the state would take longer to load than all the rest of it.
    from hami_mock.node.sizing import Node
    from hami_mock.node.state import NodeState

_T = TypeVar("_T")

MOST_SECONDS = 7 * 24 * 3600.0
"""Nobody means to wait longer than a week."""


@dataclass(frozen=True)
class Verb:
    """What a verb acts on, which parameters it takes, and what it does, for --help."""

    on_cards: bool
    help: str
    parameters: tuple[str, ...] = ()
    lasts: bool = True
    """Whether it begins something that can be ended again after a while."""


VERBS: Mapping[str, Verb] = {
    "fail": Verb(True, "make cards unhealthy, by a Xid or for a reason", ("xid", "reason")),
    "recover": Verb(True, "end all that made cards unhealthy or degraded", lasts=False),
    "lose": Verb(True, "let cards vanish from the kubelet's list", ("reason",)),
    "return": Verb(True, "let lost cards come back", lasts=False),
    "degrade": Verb(
        True, "mark cards as degraded; the kubelet still takes them for healthy", ("reason",)
    ),
    "down": Verb(False, "take resources off the kubelet, as if their plugin had died", ("reason",)),
    "up": Verb(False, "bring back resources that are down", lasts=False),
    "delay": Verb(False, "answer a call late", ("call", "seconds")),
    "hang": Verb(False, "answer a call with an error, after a long time", ("call", "seconds")),
    "break": Verb(False, "answer a call with an error at once", ("call", "reason")),
    "refuse": Verb(
        False, "let registrations fail, as if the kubelet had refused them", ("reason",)
    ),
    "drop": Verb(False, "break off the list streams once", ("reason",), lasts=False),
    "clear": Verb(False, "end every fault, of cards and resources alike", lasts=False),
}

_CARD_VERBS = {"fail": Effect.UNHEALTHY, "lose": Effect.LOST, "degrade": Effect.DEGRADED}
_RESOURCE_VERBS = {
    "down": Effect.DOWN,
    "refuse": Effect.REFUSED,
    "delay": Effect.SLOW,
    "hang": Effect.HUNG,
    "break": Effect.BROKEN,
}
_MENDING = {
    "recover": frozenset({Effect.UNHEALTHY, Effect.DEGRADED}),
    "return": frozenset({Effect.LOST}),
    "up": frozenset({Effect.DOWN, Effect.REFUSED}),
}


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
    """One thing to do. `choose` takes that many of the targets at random."""

    verb: str
    targets: tuple[str, ...] = (ALL,)
    xid: int | None = None
    reason: str = ""
    call: Call | None = None
    seconds: float = 0.0
    choose: int | Share | None = None

    @property
    def text(self) -> str:
        """The action in words."""
        words = [self.verb, self.call or "", f"{self.seconds:g}s" if self.seconds else ""]
        chosen = f"{self.choose} of " if self.choose is not None else ""
        words += [chosen + ", ".join(self.targets)]
        why = [describe(self.xid) if self.xid is not None else "", self.reason]
        texts = (" ".join(filter(None, words)), ", ".join(filter(None, why)))
        return ": ".join(filter(None, texts))


def perform(action: Action, state: "NodeState", random: Random | None = None) -> tuple[Fault, ...]:
    """Do it, and return the faults that it began: `state.lift` ends them again.

    Raises UsageError if it names what isn't there, or asks for what can't be.
    """
    cards, resources = _targets(action, state, random)
    if action.verb == "clear":
        state.lift_from({card.uuid for card in cards} | {resource.name for resource in resources})
        return ()
    if VERBS[action.verb].on_cards:
        return _on_cards(action, state, cards)
    return _on_resources(action, state, resources)


def names(action: Action, state: "NodeState", random: Random | None = None) -> tuple[str, ...]:
    """Return the names of the cards and resources that `perform` would act on.

    Raises UsageError if it names what isn't there.
    """
    cards, resources = _targets(action, state, random)
    return (*(card.name for card in cards), *(resource.name for resource in resources))


def _targets(
    action: Action, state: "NodeState", random: Random | None
) -> tuple[tuple[Card, ...], tuple[Resource, ...]]:
    node = state.node
    if action.verb == "clear":
        return _cards_and_resources(action.targets, node)
    if VERBS[action.verb].on_cards:
        return _chosen(find_cards(node.cards, action.targets), action.choose, random), ()
    return (), _chosen(find_resources(node.resources, action.targets), action.choose, random)


def _on_cards(action: Action, state: "NodeState", cards: tuple[Card, ...]) -> tuple[Fault, ...]:
    uuids = frozenset(card.uuid for card in cards)
    if action.verb in _MENDING:
        state.lift_from(uuids, _MENDING[action.verb])
        return ()
    reason = action.reason
    if action.xid is not None:
        others = [card.name for card in cards if card.vendor is not NVIDIA]
        if others:
            raise UsageError(
                f"{', '.join(others)}: only NVIDIA's cards have Xids; leave the Xid out, or give "
                "a reason instead"
            )
        state.count_xid(cards, action.xid)
        if action.xid in state.ignored_xids:
            return ()
        reason = ", ".join(part for part in (describe(action.xid), reason) if part)
    # One fault for each card: a card may recover by itself.
    faults = tuple(
        Fault(_CARD_VERBS[action.verb], frozenset({card.uuid}), reason) for card in cards
    )
    state.strike(*faults)
    return faults


def _on_resources(
    action: Action, state: "NodeState", resources: tuple[Resource, ...]
) -> tuple[Fault, ...]:
    if action.verb in _MENDING:
        state.lift_from({resource.name for resource in resources}, _MENDING[action.verb])
        return ()
    if action.verb == "drop":
        state.drop_streams(resources, action.reason)
        return ()
    effect = _RESOURCE_VERBS[action.verb]
    if effect in CALL_EFFECTS and action.call is None:
        raise UsageError(f"{action.verb}: say which call: one of {', '.join(Call)}")
    if effect in (Effect.SLOW, Effect.HUNG) and not 0 < action.seconds <= MOST_SECONDS:
        raise UsageError(f"{action.verb}: say how long, such as 2s or 1m, at most a week")
    # One for each, as with cards: or `up` of one of them would leave the others a fault that
    # whoever began it doesn't know.
    faults = tuple(
        Fault(effect, frozenset({resource.name}), action.reason, action.call, action.seconds)
        for resource in resources
    )
    state.strike(*faults)
    return faults


def _cards_and_resources(
    words: tuple[str, ...], node: "Node"
) -> tuple[tuple[Card, ...], tuple[Resource, ...]]:
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


def _chosen(
    items: tuple[_T, ...], choose: int | Share | None, random: Random | None
) -> tuple[_T, ...]:
    if choose is None:
        return items
    count = choose.of(len(items)) if isinstance(choose, Share) else choose
    chosen = (random or Random()).sample(range(len(items)), min(count, len(items)))
    return tuple(items[index] for index in sorted(chosen))
