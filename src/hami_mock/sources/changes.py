"""What a change of the configuration changes, in words. Pure."""

from collections.abc import Iterator

from hami_mock.node.cards import Card
from hami_mock.node.sizing import Node

_PLUGIN = "now with a device plugin"


def changes(before: Node, after: Node) -> list[str]:
    return [*_cards(before, after), *_resources(before, after)]


def _cards(before: Node, after: Node) -> Iterator[str]:
    old, new = ({card.name: card for card in node.cards} for node in (before, after))
    for name, card in old.items():
        if name not in new:
            yield f"{name}: gone ({card.model.name})"
        elif new[name] != card:
            yield f"{name}: {_card(card)} → {_card(new[name])}"
    for name, card in new.items():
        if name not in old:
            yield f"{name}: new ({_card(card)})"


def _card(card: Card) -> str:
    parts = [card.model.name, f"{card.memory} MiB"]
    parts += [f"NUMA {card.numa}"] if card.numa is not None else []
    parts += [f"link {card.link}"] if card.link is not None else []
    parts += [f"mode {card.mode}"] if card.mode and card.mode != card.vendor.modes[0] else []
    parts += [f"cut into {', '.join(card.cut) or 'nothing'}"] if card.cut is not None else []
    return " ".join(parts)


def _resources(before: Node, after: Node) -> Iterator[str]:
    old, new = ({r.name: r for r in node.resources} for node in (before, after))
    for name, resource in old.items():
        if name not in new:
            yield f"{name}: gone ({resource.count})"
            continue
        changed = new[name]
        if (changed.count, changed.unit) != (resource.count, resource.unit):
            line = f"{name}: {resource.count} x {resource.unit} → {changed.count} x {changed.unit}"
            retired = sum(changed.devices.retired.values())
            yield line + (f", {retired} retired until no pod holds them" if retired else "")
        if changed.in_status != resource.in_status:
            yield f"{name}: " + ("now in the Node's status" if changed.in_status else _PLUGIN)
        elif changed.later and not resource.later:
            yield f"{name}: to the Node's status as soon as no pod holds a device of it"
    for name, resource in new.items():
        if name not in old:
            yield f"{name}: new ({resource.count} x {resource.unit})"
