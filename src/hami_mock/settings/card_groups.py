"""Option values → the groups of cards that a node carries, checked against the catalog."""

from typing import Any

from hami_mock.node.cards import CardGroup
from hami_mock.settings.layers import Merged, not_allowed
from hami_mock.settings.options import BY_NAME, GROUP_KEYS, MOST_CARDS
from hami_mock.vendors import Vendor, catalog

_MOST_NUMA_NODES = 64


def card_groups(vendor: Vendor, values: Merged, problems: list[str]) -> tuple[CardGroup, ...]:
    """Return a vendor's groups: those of the file, or the one of the simple options.

    The stronger layer decides: --nvidia-cards on the command line replaces groups in the file.
    """
    listed = f"{vendor.key}-groups"
    simple = (f"{vendor.key}-{key}" for key in ("cards", "model", "memory"))
    strongest = max((name for name in simple if name in BY_NAME), key=values.rank)
    if values[listed] is None or values.rank(strongest) > values.rank(listed):
        return _simple_group(vendor, values, problems)
    if values.rank(strongest) == values.rank(listed):
        problems.append(f"{values.place(strongest)}: {listed} says which cards there are: keep one")
    groups = (
        _group(vendor, group, f"{values.place(listed)}[{number}]", problems)
        for number, group in enumerate(values[listed])
    )
    found = tuple(group for group in groups if group is not None)
    total = sum(group.cards for group in found)
    if total > MOST_CARDS:
        allowed = f"at most {MOST_CARDS} cards in all groups together"
        problems.append(not_allowed(values.place(listed), total, allowed))
    return found


def _simple_group(vendor: Vendor, values: Merged, problems: list[str]) -> tuple[CardGroup, ...]:
    cards = values[f"{vendor.key}-cards"]
    option = f"{vendor.key}-model"
    model = _find_model(vendor, values[option], values.place(option), problems)
    memory = values[f"{vendor.key}-memory"] if f"{vendor.key}-memory" in BY_NAME else None
    if model is None or not cards:
        return ()
    return (CardGroup(model, memory or model.memory, (None,) * cards),)


def _group(vendor: Vendor, group: Any, place: str, problems: list[str]) -> CardGroup | None:
    cards = 1 if group.cards is None else group.cards
    numa = group.numa if isinstance(group.numa, list) else [group.numa] * cards
    if len(numa) != cards or not all(_is_numa_node(node) for node in numa):
        problems.append(not_allowed(f"{place}.numa", group.numa, GROUP_KEYS["numa"].allowed))
    links = group.nvlink or []
    linked = [position for link in links for position in link]
    if len(set(linked)) < len(linked) or not set(linked) <= set(range(cards)):
        allowed = f"{GROUP_KEYS['nvlink'].allowed}; positions from 0 to {cards - 1}"
        problems.append(not_allowed(f"{place}.nvlink", links, allowed))
    model = _find_model(vendor, group.model or vendor.model, f"{place}.model", problems)
    if model is None:
        return None
    return CardGroup(model, group.memory or model.memory, tuple(numa), tuple(map(frozenset, links)))


def _is_numa_node(node: int | None) -> bool:
    return node is None or 0 <= node < _MOST_NUMA_NODES


def _find_model(vendor: Vendor, name: str, place: str, problems: list[str]) -> catalog.Model | None:
    model = catalog.find(vendor.key, name)
    if model is None:
        similar = ", ".join(catalog.similar(vendor.key, name))
        allowed = f"one of the {vendor.title} models of `hami-mock models`"
        problems.append(not_allowed(place, name, allowed + f", such as {similar}" * bool(similar)))
    return model
