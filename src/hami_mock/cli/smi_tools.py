"""`hami-mock smi --as TOOL`: what a maker's tool would print for the words after its name."""

from collections.abc import Callable, Sequence

from hami_mock.cli.output import say
from hami_mock.cli.smi_cards import ShownNode
from hami_mock.cli.smi_drawing import drawn
from hami_mock.cli.smi_query import CSV, queried, read_fields, read_format
from hami_mock.errors import StartError, UsageError
from hami_mock.vendors import VENDORS, Vendor
from hami_mock.vendors.smi import Tool

AS = "--as"
Show = Callable[[ShownNode], None]


def tools_of(vendor: Vendor) -> tuple[Tool, ...]:
    return vendor.smi() if vendor.smi else ()


def tools() -> dict[str, tuple[Vendor, Tool]]:
    """Return the tools whose look is known, by name."""
    return {tool.name: (vendor, tool) for vendor in VENDORS for tool in tools_of(vendor)}


def as_tool(name: str, words: Sequence[str]) -> Show:
    """Return what prints the tool's answer to words. Raises UsageError if it has none."""
    vendor, tool = tools()[name]
    rest, wanted = _without_cards(words, name)
    fields, how = _query(tool, rest)
    view = tool.views.get(" ".join(rest))
    if not fields and view is None:
        known = ", ".join(repr(each) for each in tool.views if each) or "no words"
        raise UsageError(f"{AS} {name}: {' '.join(rest)!r} is not known: use {known}")

    def show_node(node: ShownNode) -> None:
        own = [card for card in node.cards if card.vendor.maker == vendor.maker]
        cards = [card for card in own if wanted is None or card.values["index"] in wanted]
        if not own:
            raise StartError(f"{AS} {name}: this node has no {vendor.title} cards")
        if not cards:
            there = f"this node has {len(own)}, numbered from 0"
            raise StartError(f"{AS} {name}: -i: no such card: {there}")
        if view is None:
            say("\n".join(queried(cards, fields, how)))
        else:
            say("\n".join(drawn(tool, view, cards)))

    return show_node


def _query(tool: Tool, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the fields that a tool's own flag names, if it has one, and how to print them."""
    values = dict(word.partition("=")[::2] for word in words)
    if not tool.query or tool.query not in values or {*values} - {tool.query, "--format"}:
        return [], []
    fields = read_fields(values[tool.query], f"{AS} {tool.name}: {tool.query}")
    return fields, read_format(values.get("--format", CSV), f"{AS} {tool.name}: --format")


def _without_cards(words: Sequence[str], name: str) -> tuple[list[str], set[int] | None]:
    """Take -i NUMBER,… out of a tool's words; return the others, and the cards' numbers."""
    rest = list(words)
    if "-i" not in rest:
        return rest, None
    place = rest.index("-i")
    numbers = "".join(rest[place + 1 : place + 2]).split(",")
    if not all(number.isdecimal() for number in numbers):
        raise UsageError(f"{AS} {name}: -i: it must be followed by the numbers of cards: -i 0,1")
    del rest[place : place + 2]
    return rest, set(map(int, numbers))
