"""`hami-mock smi`: the cards outside of containers, in the look of each maker's own tool."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from hami_mock.cli.flags import OF_CARDS, flag_values, options_parser
from hami_mock.cli.output import FORMATS, say, show
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.cli.smi_cards import NoAgent, ShownCard, ShownNode, of_agent, of_settings
from hami_mock.cli.smi_drawing import drawn, listed, plain
from hami_mock.cli.smi_query import CSV, FIELDS, queried, read_fields, read_format
from hami_mock.cli.smi_tools import AS, Show, as_tool, tools, tools_of
from hami_mock.control.protocol import FLAG
from hami_mock.errors import StartError, UsageError
from hami_mock.faults.targets import ALL
from hami_mock.kit import logs
from hami_mock.kit.similar import did_you_mean
from hami_mock.kit.values import SPAN
from hami_mock.settings.settings import Settings, load
from hami_mock.vendors import VENDORS, Vendor

_SOCKET = FLAG.removeprefix("--")
_OWN = (_SOCKET, "log-level", "log-format")
"""Flags that say nothing of cards."""

_NAMED = 8
"""So many cards are named each."""

_NOTES = (
    "It shows the running agent's cards as they are now. Without an agent, or with a flag that "
    "says which cards there are, it shows the configured cards, idle.\n\n"
    f"Fields: {', '.join(FIELDS)}.\n\n"
    f"{AS} TOOL reads all words after it as that tool would, so that a script of two lines can "
    "stand in for the tool. See docs/observability.md."
)


class _Parser(Parser):
    """Leaves what stands after --as TOOL to the tool."""

    def parse(self, arguments: Sequence[str]) -> Parsed:
        words = list(arguments)
        if any(word.startswith(f"{AS}=") for word in words):
            raise UsageError(f"{AS}: write the tool after a space: {AS} TOOL")
        place = words.index(AS) + 2 if AS in words else len(words)
        parsed = super().parse(words[:place])
        parsed.words = words[place:]
        return parsed


def parser() -> Parser:
    parser = options_parser(
        "smi",
        usage="[VENDOR …] [FLAGS]",
        examples=(
            "smi",
            "smi ascend -l 2",
            "smi --list",
            "smi --query card,utilization.gpu,memory.used --format csv,noheader",
            "smi nvidia/0 nvidia/1 -o json",
            "smi --nvidia-cards 8 --nvidia-model H100-SXM5-80GB",
            """printf '#!/bin/sh\\nexec hami-mock smi --as npu-smi "$@"\\n' > /usr/bin/npu-smi""",
        ),
        notes=_NOTES,
        kind=_Parser,
        only=OF_CARDS | {_SOCKET, "driver-version"},
    )
    parser.long_only |= {"HAMi"}
    parser.add("which", "show only cards of these vendors, or these cards [all]",
               nargs="*", metavar="VENDOR")  # fmt: skip
    parser.add(
        "-L --list",
        "list the cards, and what was cut out of them, with their UUIDs",
        action="store_true",
    )
    parser.add("--query", "print these fields of each card", metavar="FIELD,…")
    text = "how --query prints: csv, csv,noheader, csv,nounits or both [csv]"
    parser.add("--format", text, metavar="csv,…")
    text = "repeat this often, until Ctrl-C"
    parser.add("-l --loop", text, **(reads(SPAN) | {"metavar": "SECONDS"}))
    names = [*tools()]
    text = f"print what this tool would print for all the words that follow: {', '.join(names)}"
    parser.add(AS, text, choices=names, metavar="TOOL", dest="tool")
    formats = (*FORMATS, CSV)
    return parser.add(
        "-o --output", f"output format [{FORMATS[0]}]",
        choices=formats, default=FORMATS[0], metavar="|".join(formats),
    )  # fmt: skip


def run(parsed: Parsed) -> None:
    """Raises UsageError, or StartError if there is no agent or no such card."""
    source = _Source(flag_values(parsed))
    shown = _shown_by(parsed)
    while True:
        node = source.look()
        shown(node)
        if parsed.loop is None:
            return
        time.sleep(parsed.loop)


class _Source:
    """Where the cards come from: it stays the same for as long as the command runs."""

    def __init__(self, flags: Mapping[str, str]) -> None:
        of_cards = [name for name in flags if name not in _OWN]
        if of_cards and _SOCKET in flags:
            raise UsageError(
                f"{FLAG}: an agent shows its own cards: leave it out, or --{of_cards[0]}"
            )
        self._settings: Settings = load(flags)
        logs.set_up(
            self._settings.log_level, self._settings.log_format, self._settings.warnings
        )  # fmt: skip
        self._must_be_agent = _SOCKET in flags
        self._asks = not of_cards

    def look(self) -> ShownNode:
        if self._asks:
            try:
                found = of_agent(self._settings.control_socket)
                self._must_be_agent = True
                return found
            except NoAgent:
                if self._must_be_agent:
                    raise
                print(
                    f"hami-mock: no agent listens on {self._settings.control_socket!r}: showing "
                    f"the configured cards, idle ({FLAG} names another socket)",
                    file=sys.stderr,
                )
                self._asks = False
        return of_settings(self._settings)


def _shown_by(parsed: Parsed) -> Show:
    """Return what shows a node. Raises UsageError for words and flags that don't go together."""
    if parsed.tool:
        return as_tool(parsed.tool, parsed.words)
    if parsed.format and not parsed.query:
        raise UsageError("--format: it needs --query, which names the fields")
    if parsed.query and (parsed.list or parsed.output != FORMATS[0]):
        raise UsageError("--query: it prints CSV: leave out --list and -o")
    fields = read_fields(parsed.query, "--query") if parsed.query else list(FIELDS)
    how = read_format(parsed.format or CSV, "--format")
    for word in parsed.which:
        _check(word)

    def show_node(node: ShownNode) -> None:
        cards = _chosen(node.cards, parsed.which)
        if parsed.query or parsed.output == CSV:
            say("\n".join(queried(cards, fields, how)))
        else:
            every = chain.from_iterable(map(listed, cards))
            lines = every if parsed.list else _tables(cards)
            show([_data(card) for card in cards], parsed.output, lines)

    return show_node


def _check(word: str) -> None:
    """Raise UsageError if a word is neither a vendor's nor a card's."""
    prefixes = [vendor.prefix for vendor in VENDORS]
    prefix, sign, index = word.partition("/")
    if word == ALL:
        return
    if prefix not in prefixes or (sign and not index.isdecimal()):
        hint = did_you_mean(prefix, prefixes) if prefix not in prefixes else ""
        hint = hint or f": use one of {', '.join(prefixes)}, or a card such as {prefixes[0]}/0"
        raise UsageError(f"VENDOR: {word!r} is not a vendor or card{hint}")


def _chosen(cards: Sequence[ShownCard], words: Sequence[str]) -> list[ShownCard]:
    """Return the cards that words choose. Raises StartError for a word that chooses none."""
    if ALL in words:
        return list(cards)
    for word in words:
        if not any(word in (card.vendor.prefix, card.name) for card in cards):
            raise StartError(f"VENDOR: this node has no {word}: it has {_there(cards, word)}")
    return [
        card for card in cards if not words or {card.vendor.prefix, card.name} & {*words}
    ]  # fmt: skip


def _there(cards: Sequence[ShownCard], word: str) -> str:
    """Return what there is in place of a card or a vendor that there isn't."""
    alike = [card.name for card in cards if card.vendor.prefix == word.partition("/")[0]]
    if len(alike) > _NAMED:
        return f"{alike[0]} to {alike[-1]}"
    return ", ".join(alike or dict.fromkeys(card.vendor.prefix for card in cards)) or "nothing"


def _tables(cards: Sequence[ShownCard]) -> Iterator[str]:
    """Yield a table for each vendor with a tool, and one for all others."""
    own: dict[Vendor, list[ShownCard]] = {}
    for card in cards:
        own.setdefault(card.vendor, []).append(card)
    blocks = [
        drawn(tools_of(vendor)[0], tools_of(vendor)[0].table, its)
        for vendor, its in own.items()
        if tools_of(vendor)
    ]
    if others := [card for card in cards if not tools_of(card.vendor)]:
        blocks.append(iter(plain(others)))
    for number, block in enumerate(blocks):
        yield from [""] * (number > 0)
        yield from block
    if not blocks:
        yield "no cards: --config, or a flag such as --nvidia-cards, says which there are"


def _data(card: ShownCard) -> dict[str, Any]:
    return {
        **{name: value for name, value in card.values.items() if name not in ("time", "short_bus")},
        "processes": list(card.processes),
        "instances": list(card.instances),
    }
