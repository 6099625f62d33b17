"""Cards → labels of the node. Pure."""

from collections.abc import Collection

from hami_mock.node.cards import Card
from hami_mock.node.sizing import Node
from hami_mock.vendors import VENDORS, Vendor
from hami_mock.vendors.label_text import is_label
from hami_mock.vendors.labelling import CardsHere, LabelSet


def node_labels(
    node: Node,
    sets: Collection[LabelSet],
    now: int,
    driver: str,
    lost: Collection[str] = (),
) -> dict[str, str]:
    """Return the labels of some sets for a node, without the cards that are lost.

    A real labeller asks the driver, which doesn't know those any more; unhealthy ones it does.
    """
    here = _cards_here(node, now, driver, lost)
    found: dict[str, str] = {}
    for wanted in filter(sets.__contains__, LabelSet):
        for vendor, cards in here.items():
            for key, value in vendor.labels.of(wanted, cards).items():
                if is_label(key, value):  # a real plugin may call its cards anything
                    found.setdefault(key, value)
    return dict(sorted(found.items()))


def stamps() -> frozenset[str]:
    """Return the labels that only say when they were written."""
    return frozenset().union(*(vendor.labels.stamps for vendor in VENDORS))


def _cards_here(
    node: Node, now: int, driver: str, lost: Collection[str]
) -> dict[Vendor, CardsHere]:
    cards: dict[Vendor, list[Card]] = {}
    for card in node.cards:
        if card.uuid not in lost:
            cards.setdefault(card.vendor, []).append(card)
    slots = {each.vendor: each for each in node.resources if each.has_slots}
    return {
        vendor: CardsHere(
            own,
            slots=max(slots[vendor].devices.counts.values(), default=1) if vendor in slots else 1,
            mode=own[0].mode,
            now=now,
            driver=driver,
        )
        for vendor, own in cards.items()
    }
