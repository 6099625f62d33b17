"""Cards from the allocatable of vendors' own plugins, where there are no annotations. Pure.

The formulas are those of HAMi's mock.
"""

import math
from collections.abc import Collection

from hami_mock.node.cards import CardGroup, make_cards
from hami_mock.settings.kinds import MOST_CARDS
from hami_mock.settings.vendor_settings import VendorSettings
from hami_mock.sources.annotated.found import Found
from hami_mock.sources.annotated.node_object import NodeObject
from hami_mock.vendors import Role, catalog

_SLOTS = 10  # that a card is taken to have


def source(settings: VendorSettings) -> str:
    """Return the resource whose allocatable says how many cards there are; "" if none does."""
    rule = settings.vendor.counted
    if rule is None:
        return ""
    return settings.names[rule.source].name if isinstance(rule.source, Role) else rule.source


def read(node: NodeObject, settings: VendorSettings, own: Collection[str], found: Found) -> None:
    """Add a vendor's cards and its share, or what is wrong, to what was found.

    `own` are the resources that we register ourselves: they say nothing about cards.
    """
    rule, counted = settings.vendor.counted, source(settings)
    allocatable = node.allocatable.get(counted)
    if rule is None or allocatable is None or counted in own:
        return
    named, offer = settings.names[rule.role], settings.vendor.offer(rule.role)
    if not named.name:
        return
    assert offer is not None
    total = max(allocatable, 0) // rule.divisor * rule.amount
    # Each card has the same, so it must divide.
    each = (math.gcd(total, _SLOTS) or 1) if rule.role is Role.SLOTS else rule.amount
    count = total // each
    left_out = f"{named.name}: left out: allocatable {counted}"
    if not count:
        found.reasons.append(f"{left_out} is {allocatable}")
    elif count > MOST_CARDS * _SLOTS:
        found.reasons.append(f"{left_out} of {allocatable} is more than {MOST_CARDS} cards have")
    else:
        model = catalog.find(settings.vendor.maker, settings.vendor.model)
        assert model is not None
        memory = each if rule.role is Role.MEMORY else model.memory
        group = CardGroup(model, memory, numa=(None,) * count)
        cards = make_cards(node.name, settings.vendor, [group])
        found.cards += cards
        factor = settings.memory_factor and settings.memory_factor * offer.memory_unit
        found.add_share(named, offer, cards, (each,) * count, factor)
