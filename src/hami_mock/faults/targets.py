"""Words that people write for cards and resources → the cards and resources they mean. Pure."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from hami_mock.errors import UsageError
from hami_mock.node.cards import Card
from hami_mock.node.resources import Resource
from hami_mock.vendors import Vendor

ALL = "all"
_SHOWN = 12
"""How many names an error lists."""


def find_cards(cards: Sequence[Card], words: Iterable[str]) -> tuple[Card, ...]:
    """Return the cards that words name: nvidia/0, a UUID, a glob of either, a vendor, or all.

    Raises UsageError for each word that names no card.
    """
    found: dict[str, Card] = {}
    problems = []
    for word in words:
        named = [card for card in cards if is_card(card, word)]
        found |= {card.uuid: card for card in named}
        if not named:
            names = [card.name for card in cards]
            problems.append(f"there is no card {word!r} here: {_there_are(names)}")
    if problems:
        raise UsageError(problems)
    return tuple(card for card in cards if card.uuid in found)


def find_resources(resources: Sequence[Resource], words: Iterable[str]) -> tuple[Resource, ...]:
    """Return the resources that words name: a full name, a glob, a vendor, or all.

    Raises UsageError for each word that names no resource.
    """
    found: set[str] = set()
    problems = []
    for word in words:
        named = {resource.name for resource in resources if is_resource(resource, word)}
        found |= named
        if not named:
            names = [resource.name for resource in resources]
            problems.append(f"there is no resource {word!r} here: {_there_are(names)}")
    if problems:
        raise UsageError(problems)
    return tuple(resource for resource in resources if resource.name in found)


def is_card(card: Card, word: str) -> bool:
    """Tell whether a word means a card, maybe among others."""
    return _is_vendor(card.vendor, word) or any(
        fnmatchcase(name, word) for name in (card.name, card.uuid)
    )


def is_resource(resource: Resource, word: str) -> bool:
    """Tell whether a word means a resource, maybe among others."""
    return _is_vendor(resource.vendor, word) or fnmatchcase(resource.name, word)


def _is_vendor(vendor: Vendor, word: str) -> bool:
    # Its cards are known by the prefix of its flags; its name is as good.
    return word in (ALL, vendor.prefix, vendor.name)


def _there_are(names: Sequence[str]) -> str:
    if not names:
        return "there are none"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are {', '.join(names[:_SHOWN])}{more}"
