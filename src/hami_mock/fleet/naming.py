"""Words for cards and resources → those of each node, where words mean many nodes. Pure.

Nodes of different pools have different cards: a word may name nothing on some of them. One that
names nothing on any is a mistake.
"""

from collections.abc import Sequence

from hami_mock.errors import UsageError
from hami_mock.faults.targets import ALL, Target, find, identity, listed
from hami_mock.node.fault import Verb
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node


class Naming:
    """Finds what a verb acts on, node by node; `check` says which words named nothing at all."""

    def __init__(self, verb: Verb) -> None:
        self._verb = verb
        self._known: set[str] = set()
        self._missing: dict[str, str] = {}

    def on(self, node: Node, words: Sequence[str] | None) -> tuple[Target, ...]:
        """Return what words name on a node, in its order; without words, all that it has."""
        named: set[str] = set()
        for word in (ALL,) if words is None else words:
            try:
                named |= {identity(target) for target in self._find(node, _name(node, word))}
                self._known.add(word)
            except UsageError as error:
                # A node as a whole may have nothing that the verb acts on.
                if words is not None:
                    self._missing.setdefault(word, f"{node.name}: {error}")
        targets: tuple[Target, ...] = (*node.cards, *node.resources)
        return tuple(target for target in targets if identity(target) in named)

    def check(self) -> None:
        """Raise UsageError with a line for each word that named nothing on any node."""
        if wrong := [told for word, told in self._missing.items() if word not in self._known]:
            raise UsageError(wrong)

    def _find(self, node: Node, word: str) -> Sequence[Target]:
        found = find(node, self._verb.on, [word])
        if not self._verb.needs_plugin:
            return found
        able = [target for target in found if not _in_status(target)]
        if not able:
            others = listed([each.name for each in node.resources if not each.in_status])
            raise UsageError(
                f"{listed([target.name for target in found])} stands in the Node's status, and no "
                f"call hands it out: the resources with calls are {others}"
            )
        return able


def _in_status(target: Target) -> bool:
    return isinstance(target, Resource) and target.in_status


def _name(node: Node, word: str) -> str:
    """Return a card's name for its number on the node; other words stay."""
    is_number = word.isascii() and word.isdigit() and len(word) < 6
    is_card = is_number and int(word) < len(node.cards)
    return node.cards[int(word)].name if is_card else word
