"""`hami-mock plan` and `hami-mock models`: what would be, without doing it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import yaml

from hami_mock.kit.terminal import Style, paint, table
from hami_mock.kubelet.limits import Version
from hami_mock.kubelet.wire import MESSAGE_LIMIT
from hami_mock.node.advice import warnings
from hami_mock.node.sizing import Node
from hami_mock.vendors import VENDORS, catalog

Rows = Sequence[Mapping[str, Any]]


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


def model_rows() -> Rows:
    """Return one row for each model of the catalog."""
    return [
        {"vendor": vendor.key, **asdict(model)}
        for vendor in VENDORS
        for model in catalog.models()[vendor.key].values()
    ]


def render(rows: Rows, output: str, as_table: Iterator[str]) -> str:
    """Return rows as a table, JSON or YAML."""
    match output:
        case "json":
            return json.dumps(list(rows), indent=2)
        case "yaml":
            return yaml.safe_dump(list(rows), sort_keys=False, width=1000).rstrip()
        case _:
            return "\n".join(as_table)


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


def models_table(rows: Rows) -> Iterator[str]:
    """Yield the lines of the catalog for people."""
    columns = ("vendor", "name", "product", "memory", "cores", "family", "compute", "power")
    header = ("VENDOR", "MODEL", "PRODUCT", "MEMORY MiB", "CORES", "FAMILY", "COMPUTE", "POWER W")
    yield from table(header, ([row[key] for key in columns] for row in rows), "   rr rr")
