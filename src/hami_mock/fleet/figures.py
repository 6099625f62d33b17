"""The fleet's own metrics: hami_mock_fleet_*. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hami_mock.fleet.allocation import asked_for
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.nodes import node_of
from hami_mock.kit.exposition_text import head_text, sample_text
from hami_mock.views.deviceplugin.counters import BUCKETS, Histogram

_PREFIX = "hami_mock_fleet_"
_HELP = {
    "nodes": ("gauge", "Nodes that the fleet should have."),
    "nodes_there": ("gauge", "Nodes that the API server has."),
    "nodes_ready": ("gauge", "Nodes that are ready."),
    "nodes_with_faults": ("gauge", "Nodes on which something is wrong on purpose."),
    "cards": ("gauge", "Cards of all nodes."),
    "pods": ("gauge", "Pods that are bound to nodes and haven't ended."),
    "resources": ("gauge", "How much of a resource nodes have."),
    "allocated": ("gauge", "How much of a resource pods have."),
    "writes": ("counter", "Writes that the API server has answered."),
    "writes_refused": ("counter", "How often the API server was overloaded."),
    "bound": ("counter", "Pods that got what HAMi's scheduler assigned."),
    "bind_failures": ("counter", "Pods that couldn't get it."),
}
_BIND = "bind_seconds"


def own_figures(fleet: Fleet, more: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines; `more` has writes, bound and so on, and bind_seconds, a Histogram."""
    rows: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for pool in fleet.pools:
        members, by_pool = fleet.of_pool(pool.name), (("pool", pool.name),)
        node = node_of(pool, 0)
        values = {
            "nodes": len(members),
            "nodes_there": sum(member.is_there for member in members),
            "nodes_ready": sum(member.is_ready for member in members),
            "nodes_with_faults": sum(bool(member.faults) for member in members),
            "cards": len(members) * len(node.cards),
            "pods": sum(len(member.pods or ()) for member in members),
        }
        for name, value in values.items():
            rows.setdefault(name, {})[by_pool] = value
        allocated = asked_for(pod for member in members for pod in (member.pods or {}).values())
        for resource in node.resources:
            labels = (*by_pool, ("resource", resource.name))
            rows.setdefault("resources", {})[labels] = resource.count * len(members)
            rows.setdefault("allocated", {})[labels] = allocated[resource.name]
    for name in _HELP.keys() & more.keys():
        rows[name] = {(): more[name]}
    for name, (kind, text) in _HELP.items():
        yield from _lines(name, kind, text, rows.get(name, {}).items())
    if isinstance(found := more.get(_BIND), Histogram):
        yield from _histogram(found)


def _lines(
    name: str, kind: str, text: str, rows: Iterable[tuple[tuple[tuple[str, str], ...], float]]
) -> Iterator[str]:
    full = f"{_PREFIX}{name}{'_total' if kind == 'counter' else ''}"
    lines = [sample_text(full, labels, value) for labels, value in rows]
    if lines:
        yield head_text(full, text, kind)
        yield from lines


def _histogram(found: Histogram) -> Iterator[str]:
    name = f"{_PREFIX}{_BIND}"
    yield head_text(name, "From a pod's binding until its lock was given back.", "histogram")
    counts = zip(map(str, BUCKETS), found.counts, strict=True)
    for bound, count in (*counts, ("+Inf", found.number)):
        yield sample_text(f"{name}_bucket", (("le", bound),), count)
    yield sample_text(f"{name}_count", (), found.number)
    yield sample_text(f"{name}_sum", (), found.total)
