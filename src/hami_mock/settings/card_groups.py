"""Option values → the groups of cards that a node carries, checked against the catalog.

The file's groups say more than flags can: a flag, a variable or `ctl set` for the number of cards
takes the first ones of them, and one for the model or the memory is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hami_mock.kit.values import Fields, Mistakes, not_allowed
from hami_mock.node.cards import CardGroup
from hami_mock.settings.kinds import GROUP_KEYS, MOST_CARDS
from hami_mock.settings.layers import Merged
from hami_mock.settings.options import BY_NAME
from hami_mock.vendors import Vendor, catalog


def card_groups(vendor: Vendor, values: Merged) -> tuple[CardGroup, ...]:
    """Return a vendor's groups: those of the file, or the one of the simple options.

    A section of the file for some nodes may replace the groups of the rest of the file. What is
    wrong is added to the values' problems.
    """
    cards, groups = f"{vendor.prefix}-cards", f"{vendor.prefix}-groups"
    if values["vendors"] is not None and vendor.prefix not in values["vendors"]:
        values.problems += [
            f"{values.place(name)}: {values.place('vendors')} excludes {vendor.prefix}: add it "
            "there, or remove this"
            for name in (cards, groups)
            if values.rank(name) >= values.rank("vendors") and values[name]
        ]
        return ()
    simple = (cards, f"{vendor.prefix}-model", f"{vendor.prefix}-memory")
    in_file = max(simple, key=lambda name: values.rank(name, in_file=True))
    if values[groups] is None or values.rank(in_file, in_file=True) > values.rank(groups):
        return _simple_group(vendor, values)
    if values.rank(in_file, in_file=True) == values.rank(groups):
        values.problems.append(
            f"{values.place(in_file)}: {groups} lists the cards already: keep one"
        )
    return _listed_groups(vendor, values)


def _listed_groups(vendor: Vendor, values: Merged) -> tuple[CardGroup, ...]:
    listed = f"{vendor.prefix}-groups"
    place = values.place(listed)
    found = [
        _group(vendor, group, f"{place}[{number}]", values.problems)
        # Each has a card: if there are more, it is one too many in any case.
        for number, group in enumerate(values[listed][: MOST_CARDS + 1])
    ]
    groups = tuple(group for group in found if group is not None)
    total = sum(group.cards for group in groups)
    if total > MOST_CARDS:
        values.refuse(listed, total, f"at most {MOST_CARDS} cards in all groups together")
    values.problems += [
        f"{values.place(name)}: {place} lists the cards: change them there"
        for name in (f"{vendor.prefix}-{what}" for what in ("model", "memory", "mig"))
        if values.rank(name) > values.rank(listed)
    ]
    if values.rank(name := f"{vendor.prefix}-cards") <= values.rank(listed):
        return groups
    if values[name] > total:
        allowed = f"at most {total}, the number of cards in {place}: list more there"
        values.refuse(name, values[name], allowed)
    return tuple(_first(groups, values[name]))


def _first(groups: Sequence[CardGroup], count: int) -> Iterator[CardGroup]:
    """Yield the groups that the first cards of some make, with their NUMA nodes and links."""
    for group in groups:
        cards = range(min(count, group.cards))
        count -= len(cards)
        links = tuple(link & set(cards) for link in group.links)
        if cards:
            yield replace(group, numa=group.numa[: len(cards)], links=links)


def _simple_group(vendor: Vendor, values: Merged) -> tuple[CardGroup, ...]:
    cards = values[f"{vendor.prefix}-cards"]
    option = f"{vendor.prefix}-model"
    model = _find_model(vendor, values[option], values.place(option), values.problems)
    memory = values[f"{vendor.prefix}-memory"] if f"{vendor.prefix}-memory" in BY_NAME else None
    if model is None or not cards:
        return ()
    option = f"{vendor.prefix}-mig"
    profiles = values[option] if option in BY_NAME else None
    cut = _cut(vendor, model, profiles, values.place(option), values.problems)
    return (CardGroup(model, memory or model.memory, (None,) * cards, cut=cut),)


def _group(vendor: Vendor, group: object, place: str, problems: list[str]) -> CardGroup | None:
    if not isinstance(group, dict):
        problems.append(not_allowed(place, group, "a mapping such as {cards: 4, model: T4}"))
        return None
    fields = Fields(group, place, Mistakes(lines=problems), is_null_absent=True)
    fields.allow(GROUP_KEYS)

    def get(key: str, default: object = None) -> Any:
        return fields.get(key, GROUP_KEYS[key], default)

    cards = get("cards", 1)
    numa = get("numa")
    numa = numa if isinstance(numa, list) else [numa] * cards
    if len(numa) != cards:
        fields.refuse("numa", GROUP_KEYS["numa"].allowed)
    links = get("nvlink", [])
    if not frozenset().union(*links) <= set(range(cards)):
        allowed = f"{GROUP_KEYS['nvlink'].allowed}; positions from 0 to {cards - 1}"
        fields.refuse("nvlink", allowed)
    name = get("model", vendor.model)
    model = _find_model(vendor, name, fields.at("model"), problems)
    if model is None:
        return None
    cut = _cut(vendor, model, get("mig"), fields.at("mig"), problems)
    return CardGroup(model, get("memory") or model.memory, tuple(numa), tuple(links), cut)


def _cut(
    vendor: Vendor,
    model: catalog.Model,
    profiles: tuple[str, ...] | None,
    place: str,
    problems: list[str],
) -> tuple[str, ...] | None:
    """Return what cards are to be cut into, if they can be; else there is a problem."""
    if profiles is None:
        return None
    from hami_mock.node.instances import Cutter, NoInstance, NoRoom

    try:
        cutter = Cutter(vendor, model)
    except NoInstance:
        allowed = f"left out: cards of model {model.name} can't be cut"
        problems.append(not_allowed(place, ",".join(profiles), allowed))
        return None
    try:
        cutter.cut_into(profiles)
    except NoInstance:
        names = ", ".join(profile.name for profile in cutter.profiles)
        problems.append(
            not_allowed(place, ",".join(profiles), f"profiles of {model.name}: {names}")
        )
    except NoRoom as error:
        allowed = f"profiles that fit on one {model.name} together: {error}"
        problems.append(not_allowed(place, ",".join(profiles), allowed))
    return profiles


def _find_model(vendor: Vendor, name: str, place: str, problems: list[str]) -> catalog.Model | None:
    model = catalog.find(vendor.maker, name)
    if model is None:
        similar = ", ".join(catalog.similar(vendor.maker, name))
        allowed = f"one of the {vendor.title} models of `hami-mock models`"
        problems.append(not_allowed(place, name, allowed + f", such as {similar}" * bool(similar)))
    return model
