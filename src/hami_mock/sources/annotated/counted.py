"""Cards from the allocatable of vendors' own plugins, where there are no annotations. Pure.

The formulas are those of HAMi's mock.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hami_mock import vendors
from hami_mock.node.cards import Card, card_uuid
from hami_mock.settings.kinds import MOST_CARDS
from hami_mock.settings.vendor_settings import VendorSettings
from hami_mock.sources.annotated.found import Found
from hami_mock.sources.annotated.node_object import NodeObject
from hami_mock.vendors import catalog
from hami_mock.vendors.vendor import Role, Vendor

_SLOTS = 10
"""Slots that a card is taken to have."""


@dataclass(frozen=True)
class Rule:
    """So many devices of a resource that nobody else registers: allocatable // divisor x amount.

    `source` is the resource of the vendor's own plugin, or the role of it that the user may name.
    """

    vendor: Vendor
    source: str | Role
    role: Role
    divisor: int
    amount: int

    def source_of(self, settings: VendorSettings) -> str:
        """Return the resource whose allocatable counts."""
        return settings.names[self.source].name if isinstance(self.source, Role) else self.source

    def amounts(self, allocatable: int) -> tuple[int, int]:
        """Return how many cards there are, and how much each has: the same, so it must divide."""
        total = max(allocatable, 0) // self.divisor * self.amount
        each = (math.gcd(total, _SLOTS) or 1) if self.role is Role.SLOTS else self.amount
        return total // each, each


_RULES = (
    Rule(vendors.CAMBRICON, "cambricon.com/real-mlu-counts", Role.SLOTS, 1, _SLOTS),
    Rule(vendors.ILUVATAR, Role.CORES, Role.SLOTS, 10, 1),
    Rule(vendors.ASCEND, "huawei.com/Ascend910", Role.MEMORY, 10, 65536),
)


def sources(settings: VendorSettings) -> Iterator[tuple[Rule, str]]:
    """Yield the resources whose allocatable says how many cards of a vendor there are."""
    for rule in _RULES:
        if rule.vendor.key == settings.vendor.key:
            yield rule, rule.source_of(settings)


def read(node: NodeObject, settings: VendorSettings, own: Collection[str], found: Found) -> None:
    """Add a vendor's cards and its share, or what is wrong, to what was found.

    `own` are the resources that we register ourselves: they say nothing about cards.
    """
    for rule, source in sources(settings):
        allocatable = node.allocatable.get(source)
        if allocatable is None or source in own:
            continue
        name = settings.names[rule.role].name
        count, each = rule.amounts(allocatable)
        if not count:
            found.reasons.append(f"{name}: left out: allocatable {source} is {allocatable}")
        elif count > MOST_CARDS * _SLOTS:
            reason = f"{allocatable} is more than {MOST_CARDS} cards have"
            found.reasons.append(f"{name}: left out: allocatable {source} of {reason}")
        else:
            _add(_cards(node.name, rule, count, each), settings, rule, each, found)


def _cards(node_name: str, rule: Rule, count: int, each: int) -> tuple[Card, ...]:
    model = catalog.find(rule.vendor.key, rule.vendor.model)
    assert model is not None
    memory = each if rule.role is Role.MEMORY else model.memory
    return tuple(
        Card(
            rule.vendor, index, card_uuid(node_name, rule.vendor, index), model, memory, None, None
        )
        for index in range(count)
    )


def _add(
    cards: tuple[Card, ...], settings: VendorSettings, rule: Rule, each: int, found: Found
) -> None:
    offer = next(offer for offer in rule.vendor.offers if offer.role is rule.role)
    factor = settings.memory_factor and settings.memory_factor * offer.memory_unit
    found.cards += cards
    found.add_share(settings.names[rule.role], offer, cards, (each,) * len(cards), factor)
