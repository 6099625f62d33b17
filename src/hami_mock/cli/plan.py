"""`hami-mock plan`: what would be registered, without doing it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import anyio

from hami_mock.cli.flags import flag_values, options_parser
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parser, add_output
from hami_mock.kit import logs
from hami_mock.kit.terminal import Style, paint, table
from hami_mock.kubelet.limits import Version
from hami_mock.kubelet.wire import MESSAGE_LIMIT
from hami_mock.node.advice import warnings
from hami_mock.node.sizing import Node
from hami_mock.settings.settings import load
from hami_mock.sources import configured

Rows = Sequence[Mapping[str, Any]]


def parser() -> Parser:
    """Return the parser of the command."""
    parser = options_parser(
        "plan",
        examples=(
            "plan",
            "plan --nvidia-cards 8 --nvidia-model A100-SXM4-80GB --nvidia-memory-factor auto",
            "plan --config fleet.yaml --node-name gpu-1 -o yaml",
        ),
    )
    add_output(parser)
    return parser


def main(arguments: list[str]) -> int:
    """Print what would be registered."""
    parsed = parser().parse(arguments)
    settings = load(flag_values(parsed))
    logs.set_up(settings.log_level, settings.log_format)
    node, version = anyio.run(configured.plan, settings)
    rows = plan_rows(node, version)
    show(rows, parsed.output, plan_table(node, rows))
    return 0


def plan_rows(node: Node, version: Version | None) -> Rows:
    """Return one row for each resource that would be registered."""
    return [
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
    ]


def plan_table(node: Node, rows: Rows) -> Iterator[str]:
    """Yield the lines of the plan for people."""
    yield f"Node {paint(node.name, Style.BOLD)} would register:"
    yield ""
    yield from table(
        ("RESOURCE", "COUNT", "UNIT", "CARDS", "LIST BYTES", "OF 4 MiB"),
        (
            (
                row["resource"],
                row["count"],
                row["unit"],
                row["cards"],
                row["bytes"],
                f"{row['bytes'] / row['limit']:.1%}",
            )
            for row in rows
        ),
        " r rrr",
    )
    if not rows:
        yield "nothing: no cards are configured for this node"
    warned = [(row["resource"], warning) for row in rows for warning in row["warnings"]]
    if warned:
        yield ""
    for resource, warning in warned:
        yield f"{paint('warning', Style.YELLOW, Style.BOLD)}: {resource}: {warning}"
