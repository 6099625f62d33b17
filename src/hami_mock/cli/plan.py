"""`hami-mock plan`: the cards and resources that nodes would get, without registering anything."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import anyio

from hami_mock.cli.flags import flag_values, options_parser
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parser, add_output
from hami_mock.doctor import objects
from hami_mock.doctor.objects import name_of
from hami_mock.errors import UsageError
from hami_mock.kit import logs
from hami_mock.kit.terminal import Style, paint, table, width, wrap
from hami_mock.kubelet.wire import MESSAGE_LIMIT
from hami_mock.node.advice import warnings
from hami_mock.node.cards import Card
from hami_mock.node.sizing import Node
from hami_mock.settings.settings import Settings, load, load_all
from hami_mock.sources import planning

Data = Mapping[str, Any]


def parser() -> Parser:
    """Return the parser of the command."""
    parser = options_parser(
        "plan",
        examples=(
            "plan",
            "plan --nvidia-cards 8 --nvidia-model A100-SXM4-80GB --nvidia-memory-factor auto",
            "plan --config fleet.yaml --node-name gpu-1 -o yaml",
            "plan --config fleet.yaml --all-nodes",
            "plan --source hami -f node.json",
        ),
    )
    parser.add_argument(
        "--all-nodes",
        action="store_true",
        help="show what the nodes of each section of the file would get, and all others",
    )
    parser.add_argument(
        "-f",
        dest="file",
        metavar="FILE",
        help="read the node from this file, written by `kubectl get node -o json` or yaml; - for "
        "standard input (implies --source hami) [ask the API server]",
    )
    add_output(parser)
    return parser


def main(arguments: list[str]) -> int:
    """Print what would be registered."""
    parsed = parser().parse(arguments)
    flags = flag_values(parsed)
    document = _node(parsed.file, flags.get("node-name")) if parsed.file else None
    if document is not None:
        flags = {"source": "hami", "node-name": name_of(document), **flags}
    fleet = load_all(flags) if parsed.all_nodes else (load(flags),)
    logs.set_up(fleet[0].log_level, fleet[0].log_format, fleet[0].warnings)
    _check(parsed.all_nodes, document is not None, fleet)
    planned = [
        plan_data(
            settings, anyio.run(planning.plan, settings, document), is_one=not parsed.all_nodes
        )
        for settings in fleet
    ]
    if parsed.all_nodes:
        show(planned, parsed.output, fleet_lines(planned))
    else:
        show(planned[0], parsed.output, node_lines(planned[0]))
    return 0


def _node(path: str, name: str | None) -> Data:
    """Return the node in a file: the one of that name, or the only one. Raises UsageError."""
    nodes = [node for node in objects.read([path]).nodes if name in (None, name_of(node))]
    if len(nodes) != 1:
        wanted = f"node {name!r}" if name else "node"
        raise UsageError(f"-f: {path!r} must have one {wanted}, and has {len(nodes)}")
    return nodes[0]


def _check(is_fleet: bool, has_file: bool, fleet: Sequence[Settings]) -> None:
    """Raise UsageError for what doesn't go together."""
    if is_fleet and not any(settings.section for settings in fleet):
        raise UsageError(
            "--all-nodes: there are no sections: give a file that has `nodes` with --config"
        )
    if is_fleet and any(settings.is_companion for settings in fleet):
        raise UsageError(
            "--all-nodes: with --source hami each node has its own cards: plan one node at a time"
        )
    if has_file and not all(settings.is_companion for settings in fleet):
        raise UsageError("-f: it needs --source hami, which reads the cards from a node")


def plan_data(settings: Settings, plan: planning.Plan, *, is_one: bool = True) -> dict[str, Any]:
    """Return all that is to be shown of a node, or of the nodes that a section is for."""
    node, version, missing = plan
    section = settings.section
    is_named = is_one or (section is not None and section.globs == (settings.node_name,))
    return {
        "node": node.name if is_named else None,
        "section": section and {
            "file": settings.config,
            "key": section.place,
            "match": list(section.globs),
        },
        "cards": [_card(card, node, is_named=is_named) for card in node.cards],
        "resources": [
            {
                "resource": resource.name,
                "count": resource.count,
                "unit": resource.unit,
                "cards": len(resource.cards),
                "bytes": resource.list_size(),
                "limit": MESSAGE_LIMIT,
                "warnings": warnings(resource, node, version),
            }
            for resource in node.resources
        ],
        "missing": list(missing),
    }  # fmt: skip


def _card(card: Card, node: Node, *, is_named: bool) -> dict[str, Any]:
    return {
        "name": card.name,
        # It is made from the node's name.
        "uuid": card.uuid if is_named else None,
        "model": card.model.name,
        "memory": card.memory,
        "numa": card.numa,
        "links": [
            other.name
            for other in node.cards
            if card.link and other is not card
            if (other.vendor, other.link) == (card.vendor, card.link)
        ],
    }


def node_lines(plan: Data) -> Iterator[str]:
    """Yield the lines of one node's plan for people."""
    if plan["section"]:
        yield _section(plan["section"])
    yield f"Node {paint(plan['node'], Style.BOLD)} would carry:"
    yield ""
    if not plan["cards"]:
        yield "nothing: no cards are configured for this node" if not plan["missing"] else "nothing"
        yield from _missing(plan)
        return
    rows = (
        (c["name"], c["uuid"], c["model"], c["memory"], _dash(c["numa"]), ", ".join(c["links"]))
        for c in plan["cards"]
    )
    yield from table(("CARD", "UUID", "MODEL", "MEMORY MiB", "NUMA", "LINKED TO"), rows, "   rRL")
    yield ""
    yield "and register:"
    yield ""
    yield from _resources(plan["resources"])
    yield from _missing(plan)


def _missing(plan: Data) -> Iterator[str]:
    for reason in plan["missing"]:
        yield from _notice("missing", reason)


def fleet_lines(plans: Sequence[Data]) -> Iterator[str]:
    """Yield the lines of all sections for people."""
    for number, plan in enumerate(plans):
        section = plan["section"]
        title = "all other nodes"
        if section:
            title = _section(section)
        yield from [""] * (number > 0)
        yield paint(title, Style.BOLD)
        if not plan["cards"]:
            yield "no cards"
            continue
        header = ("CARDS", "VENDOR", "MODEL", "MEMORY MiB", "NUMA", "LINKS")
        yield from table(header, _groups(plan["cards"]), "r  rLL")
        yield ""
        yield from _resources(plan["resources"])


def _groups(cards: Sequence[Data]) -> Iterator[Sequence[object]]:
    """Yield a row for each run of cards that are alike."""

    def alike(card: Data) -> tuple[str, str, int]:
        return card["name"].partition("/")[0], card["model"], card["memory"]

    for (vendor, model, memory), group in groupby(cards, alike):
        own = list(group)
        numa = " ".join(str(_dash(card["numa"])) for card in own)
        together = (sorted([card["name"], *card["links"]], key=_index) for card in own)
        linked = dict.fromkeys(" ".join(names) for names in together if len(names) > 1)
        links = "; ".join(linked).replace(f"{vendor}/", "")
        has_numa = any(card["numa"] is not None for card in own)
        yield len(own), vendor, model, memory, numa if has_numa else "-", links or "-"


def _index(name: str) -> int:
    return int(name.rpartition("/")[2])


def _resources(rows: Sequence[Data]) -> Iterator[str]:
    yield from table(
        ("RESOURCE", "COUNT", "UNIT", "CARDS", "LIST BYTES", "OF 4 MiB"),
        (
            (*(row[key] for key in ("resource", "count", "unit", "cards", "bytes")),
             f"{row['bytes'] / row['limit']:.1%}")
            for row in rows
        ),
        " r rrr",
    )  # fmt: skip
    for resource, warning in ((r["resource"], text) for r in rows for text in r["warnings"]):
        yield from _notice("warning", f"{resource}: {warning}")


def _notice(kind: str, text: str) -> Iterator[str]:
    line = f"{kind}: {text}"
    first, *others = wrap(line, width() or len(line))
    yield ""
    yield first.replace(kind, paint(kind, Style.YELLOW, Style.BOLD), 1)
    yield from others


def _section(section: Data) -> str:
    return f"{section['file']}: {section['key']}: {', '.join(section['match'])}"


def _dash(value: object) -> object:
    return "-" if value is None else value
