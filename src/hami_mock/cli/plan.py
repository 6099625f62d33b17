"""`hami-mock plan`: the cards and resources that nodes would get, without registering anything."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import anyio

from hami_mock.cli.flags import flag_values, options_parser
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.errors import UsageError
from hami_mock.kit import logs
from hami_mock.kit.terminal import Style, paint, table, width, wrap
from hami_mock.kit.text import cut
from hami_mock.kubelet.limits import Version
from hami_mock.kubelet.wire import MESSAGE_LIMIT
from hami_mock.node.advice import warnings
from hami_mock.node.labels import node_labels
from hami_mock.node.sizing import Node
from hami_mock.settings.settings import Settings, load, load_all
from hami_mock.sources import planning

Data = Mapping[str, Any]

_PLACES = {
    "status": "in the Node's status, not a plugin's list",
    "plugin": "devices of a plugin",
}
_CALM = (*_PLACES, "assumed")
"""Notices of what nobody has to mend."""


def parser() -> Parser:
    parser = options_parser(
        "plan",
        examples=(
            "plan",
            "plan --nvidia-cards 8 --nvidia-model A100-SXM4-80GB",
            "plan --config fleet.yaml --node-name gpu-1 -o yaml",
            "plan --config fleet.yaml --all-nodes",
            "plan --source hami -f node.json",
            "plan --dra hami --device-plugins off",
        ),
    )
    text = "show what the nodes of each section of the file would get, and all others"
    parser.add("--all-nodes", text, action="store_true")
    text = "read the node from this file, written by `kubectl get node -o json` or yaml; - for "
    text += "standard input (implies --source hami) [ask the API server]"
    return parser.add("-f", text, dest="file", metavar="FILE").add_output()


def run(parsed: Parsed) -> None:
    flags = flag_values(parsed)
    document = None
    if parsed.file:
        name, document = _node(parsed.file, flags.get("node-name"))
        flags = {"source": "hami", "node-name": name, **flags}
    fleet = load_all(flags) if parsed.all_nodes else (load(flags),)
    logs.set_up(fleet[0].log_level, fleet[0].log_format, fleet[0].warnings)
    _check(parsed.all_nodes, document is not None, fleet)
    plans = [anyio.run(planning.plan, settings, document) for settings in fleet]
    if parsed.all_nodes:
        planned = [plan_data(*each, is_one=False) for each in zip(fleet, plans, strict=True)]
        show(planned, parsed.output, fleet_lines(planned))
    else:
        one = plan_data(fleet[0], plans[0])
        show(one, parsed.output, node_lines(one))


def _node(path: str, name: str | None) -> tuple[str, Data]:
    """Return the node in a file: the one of that name, or the only one. Raises UsageError."""
    from hami_mock.doctor.gathering import name_of, read

    nodes = [node for node in read([path]).nodes if name in (None, name_of(node))]
    if len(nodes) != 1:
        wanted = f"node {name!r}" if name else "node"
        raise UsageError(f"-f: {path!r} must have one {wanted}, and has {len(nodes)}")
    return name_of(nodes[0]), nodes[0]


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
    node, version, missing, assumed = plan
    section = settings.section
    is_named = is_one or (section is not None and section.globs == (settings.node_name,))
    return {
        "node": node.name if is_named else None,
        "section": section and {
            "file": settings.config,
            "key": section.place,
            "match": list(section.globs),
        },
        "cards": [
            {
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
            for card in node.cards
        ],
        "resources": [
            {
                "resource": resource.name,
                "count": resource.count,
                "unit": resource.unit,
                "cards": len(resource.cards),
                "way": "status" if resource.in_status else "plugin",
                "why": resource.why,
                "bytes": resource.list_size(),
                "limit": MESSAGE_LIMIT,
                "warnings": warnings(resource, node, version),
            }
            for resource in node.resources
        ],
        "labels": node_labels(
            node, settings.labels, int(time.time()), settings.driver_version
        ),
        "dra": _dra(settings, node, version),
        "missing": list(missing),
        "assumed": list(assumed),
    }  # fmt: skip


def _dra(settings: Settings, node: Node, version: Version | None) -> Data | None:
    if not settings.dra:
        return None
    from hami_mock.cli.plan_dra import dra_data  # few ask for it

    return dra_data(settings, node, version)


def node_lines(plan: Data) -> Iterator[str]:
    if plan["section"]:
        yield _section(plan["section"])
    yield f"Node {paint(plan['node'], Style.BOLD)} would carry:"
    yield ""
    if plan["cards"]:
        # What a real plugin calls its cards may be anything.
        rows = (
            (c["name"], cut(c["uuid"]), cut(c["model"]), c["memory"], _dash(c["numa"]),
             ", ".join(c["links"]))
            for c in plan["cards"]
        )  # fmt: skip
        header = ("CARD", "UUID", "MODEL", "MEMORY MiB", "NUMA", "LINKED TO")
        yield from table(header, rows, "   rRL")
        yield from ("", "and offer:", "")
        yield from _offers(plan)
        for text in plan["assumed"]:
            yield from _notice("assumed", text)
    else:
        yield "nothing" if plan["missing"] else "nothing: no cards are configured for this node"
    for reason in plan["missing"]:
        yield from _notice("missing", reason)


def fleet_lines(plans: Sequence[Data]) -> Iterator[str]:
    for number, plan in enumerate(plans):
        section = plan["section"]
        yield from [""] * (number > 0)
        yield paint(_section(section) if section else "all other nodes", Style.BOLD)
        if not plan["cards"]:
            yield "no cards"
            continue
        header = ("CARDS", "VENDOR", "MODEL", "MEMORY MiB", "NUMA", "LINKS")
        yield from table(header, _groups(plan["cards"]), "r  rLL")
        yield ""
        yield from _offers(plan)
    for text in dict.fromkeys(chain.from_iterable(plan["assumed"] for plan in plans)):
        yield from _notice("assumed", text)


def _offers(plan: Data) -> Iterator[str]:
    """Yield what the node offers: with DRA alone there are no resources."""
    dra = plan["dra"]
    if plan["resources"] or not dra:
        yield from _resources(plan["resources"])
    if dra:
        from hami_mock.cli.plan_dra import dra_lines

        yield from [""] * bool(plan["resources"])
        yield from dra_lines(dra)
        for warning in dra["warnings"]:
            yield from _notice("warning", warning)
    yield from _labels(plan["labels"])


def _groups(cards: Sequence[Data]) -> Iterator[Sequence[object]]:
    """Yield a row for each run of cards that are alike."""

    def alike(card: Data) -> tuple[str, str, int]:
        return card["name"].partition("/")[0], card["model"], card["memory"]

    for (vendor, model, memory), group in groupby(cards, alike):
        own = list(group)
        numa = " ".join(str(_dash(card["numa"])) for card in own)
        numbers = (
            sorted(int(name.rpartition("/")[2]) for name in (card["name"], *card["links"]))
            for card in own
            if card["links"]
        )
        links = "; ".join(dict.fromkeys(" ".join(map(str, each)) for each in numbers))
        has_numa = any(card["numa"] is not None for card in own)
        yield len(own), vendor, model, memory, numa if has_numa else "-", links or "-"


def _resources(rows: Sequence[Data]) -> Iterator[str]:
    if not rows:
        yield "no resources"
        return
    header = ("RESOURCE", "COUNT", "UNIT", "CARDS", "WAY", "OF 4 MiB")
    keys = ("resource", "count", "unit", "cards", "way")
    cells = [(*(row[key] for key in keys), _share(row)) for row in rows]
    yield from table(header, cells, " r r r")
    alike: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["why"]:
            alike.setdefault((row["way"], row["why"]), []).append(row["resource"])
    for (way, why), names in alike.items():
        yield from _notice(way, f"{', '.join(names)}: {_PLACES[way]}: {why}")
    for row in rows:
        for warning in row["warnings"]:
            yield from _notice("warning", f"{row['resource']}: {warning}")


def _share(row: Data) -> str:
    """Return how much of the kubelet's longest message a list takes; a number needs no list."""
    return "-" if row["way"] == "status" else f"{row['bytes'] / row['limit']:.1%}"


def _labels(labels: Data) -> Iterator[str]:
    if labels:
        yield ""
        yield from table(("LABEL", "VALUE"), labels.items(), "  ")


def _notice(kind: str, text: str) -> Iterator[str]:
    line = f"{kind}: {text}"
    first, *others = wrap(line, width() or len(line))
    yield ""
    style = (Style.BOLD,) if kind in _CALM else (Style.YELLOW, Style.BOLD)
    yield first.replace(kind, paint(kind, *style), 1)
    yield from others


def _section(section: Data) -> str:
    return f"{section['file']}: {section['key']}: {', '.join(section['match'])}"


def _dash(value: object) -> object:
    return "-" if value is None else value
