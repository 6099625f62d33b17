"""`ctl load`: the words for cards and containers, and what becomes of their load."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hami_mock.errors import UsageError
from hami_mock.faults.targets import find, identity, listed
from hami_mock.kit.text import cut
from hami_mock.kubelet.holder import Container
from hami_mock.node.fault import On
from hami_mock.node.load_reader import read
from hami_mock.node.state import NodeState
from hami_mock.sources.load_plan import names

if TYPE_CHECKING:
    from hami_mock.sources.load import LoadSource

_log = logging.getLogger(__name__)


def set_load(
    state: NodeState, source: "LoadSource", targets: Sequence[str], load: str | None
) -> list[str]:
    """Set a load, or with None take back what was set for targets, or for all if there are none.

    Returns a line for each target. Raises UsageError if one isn't there, and nothing is changed.
    """
    if load is None:
        cleared = source.clear_rules(targets)
        _log.info("control: load --clear %s", cut(" ".join(targets)))
        return [f"{cut(word)}: as its pod says" for word in cleared] or ["no load was set"]
    read(load, "load")
    containers = [holding.container for held in state.holdings().values() for holding in held]
    known = sorted({container for container in containers if container})
    found = [_found(state, known, word) for word in targets]
    lines = []
    for word, (uuids, what) in zip(targets, found, strict=True):
        source.set_rule(word, load, uuids)
        lines.append(f"{cut(word)}: {cut(load)} ({what})")
    _log.info("control: load %s %s", cut(" ".join(targets)), cut(load))
    return lines


def _found(state: NodeState, known: Sequence[Container], word: str) -> tuple[frozenset[str], str]:
    """Return the cards that a word means, if it means cards, and what it means in words."""
    try:
        cards = find(state.node, On.CARDS, [word])
    except UsageError:
        matching = [container for container in known if names(word, container)]
        if not matching:
            cards_here = listed([card.name for card in state.node.cards])
            pods = listed([*dict.fromkeys("/".join(container[:2]) for container in known)])
            raise UsageError(
                f"load: there is no card or pod {word!r}: the cards are {cards_here}; pods that "
                f"hold devices: {pods}"
            ) from None
        return frozenset(), _counted(len(matching), "container")
    return frozenset(map(identity, cards)), f"all containers on {_counted(len(cards), 'card')}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count > 1 else ''}"
