"""Words that people write for cards and resources → the cards and resources they mean. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from hami_mock.errors import UsageError
from hami_mock.node.cards import Card
from hami_mock.node.fault import On
from hami_mock.node.resources import Resource
from hami_mock.vendors import VENDORS

if TYPE_CHECKING:
    # `ctl` needs the words, and sizing takes longer to load than all the rest of it.
    from hami_mock.node.sizing import Node

Target = Card | Resource

ALL = "all"
_GLOB = frozenset("*?[")
_SHOWN = 12
"""How many names a line has room for."""
_NOUNS = {On.CARDS: "card", On.RESOURCES: "resource", On.BOTH: "card or resource"}


def find(
    node: "Node", on: On, words: Iterable[str], *, needs_plugin: bool = False
) -> tuple[Target, ...]:
    """Return the cards or resources that words name, in the order of the node.

    A word is a name (nvidia/0, nvidia.com/gpu), a card's UUID, a glob of these, a vendor, or all.
    With `needs_plugin`, resources in the Node's status are passed over. Raises UsageError with a
    line for each word that names nothing, or nothing else.
    """
    items: list[Target] = [
        *(() if on is On.RESOURCES else node.cards),
        *(() if on is On.CARDS else node.resources),
    ]
    named = {word: [item for item in items if _is_named(item, word)] for word in words}
    unknown = [word for word, found in named.items() if not found]
    if unknown:
        has = listed([item.name for item in items])
        raise UsageError(
            f"there is no {_NOUNS[on]} {word!r} on this node: it has {has}" for word in unknown
        )
    if needs_plugin:
        named = _with_plugins(named)
    found = {identity(item) for group in named.values() for item in group}
    return tuple(item for item in items if identity(item) in found)


def _with_plugins(named: Mapping[str, Sequence[Target]]) -> dict[str, list[Target]]:
    found = {word: [item for item in group if _has_plugin(item)] for word, group in named.items()}
    if without := [word for word, group in found.items() if not group]:
        raise UsageError(
            f"{word!r}: {listed([item.name for item in named[word]])} has no device plugin whose "
            "calls could fail, but stands in the Node's status: name a resource that has one "
            "(`hami-mock ctl status` shows which do), or run the agent with --units plugin"
            for word in without
        )
    return found


def _has_plugin(target: Target) -> bool:
    return not (isinstance(target, Resource) and target.in_status)


def identity(target: Target) -> str:
    """Return what a fault knows a target by: a card's UUID, a resource's name."""
    return target.uuid if isinstance(target, Card) else target.name


def refuse_xids(targets: Iterable[Target]) -> None:
    """Raise UsageError if some of the cards can't have a Xid."""
    without = [target.name for target in targets if not target.vendor.has_xids]
    if without:
        have = " and ".join(vendor.title for vendor in VENDORS if vendor.has_xids)
        raise UsageError(
            f"only {have} cards have Xids, not {listed(without)}: give a reason instead"
        )


def _is_named(target: Target, word: str) -> bool:
    # A vendor's cards are known by the prefix of its flags; its name is as good.
    if word in (ALL, target.vendor.prefix, target.vendor.name):
        return True
    names = (target.name, identity(target))
    return word in names or (
        # Most words aren't patterns, and to compare them is a lot faster.
        not _GLOB.isdisjoint(word) and any(fnmatchcase(name, word) for name in names)
    )


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) or "none") + more
