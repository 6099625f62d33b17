"""`hami-mock fleet status`: the pools, their faults, and the writes that they take."""

from collections.abc import Iterator, Mapping
from typing import Any

import anyio

from hami_mock.cli.ctl.screens import scenario
from hami_mock.cli.fleet.place import asked, has_process, with_fleet
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.fleet.found import found_nodes
from hami_mock.kit.terminal import Style, paint, prose_width, table, wrap


def parser() -> Parser:
    parser = Parser(
        "fleet status",
        "show the pools: nodes, ready, cards, allocated, faults, and the writes a second",
        notes="Where no process of the fleet runs, it counts the nodes that the API server has.",
        examples=("fleet status", "fleet status --name test -o json"),
    )
    return with_fleet(parser).add_output()


def run(parsed: Parsed) -> None:
    if not has_process(parsed):
        found = anyio.run(_without_process, parsed.name)
        show(found, parsed.output, _left_lines(found))
        return
    answer = asked(parsed, "status")
    show(answer, parsed.output, lines(answer))


async def _without_process(name: str) -> dict[str, Any]:
    async with Kubernetes() as kubernetes:
        return await found_nodes(kubernetes, name)


def lines(status: Mapping[str, Any]) -> Iterator[str]:
    pools = status["pools"]
    rows = [
        (
            pool["name"],
            f"{pool['there']} of {pool['nodes']}"
            if pool["there"] < pool["nodes"]
            else pool["nodes"],
            pool["ready"],
            pool["cards"],
            _ill(pool),
            pool["faults"],
            pool["pods"],
        )
        for pool in pools
    ]
    header = ("POOL", "NODES", "READY", "CARDS", "ILL CARDS", "FAULTS", "PODS")
    yield paint(f"fleet {status['fleet']}", Style.BOLD)
    yield from table(header, rows, "lrrrrrr")
    yield ""
    resources = [
        (pool["name"], name, each["allocated"], each["allocatable"], _percent(each))
        for pool in pools
        for name, each in pool["resources"].items()
    ]
    yield from table(("POOL", "RESOURCE", "ALLOCATED", "OF", ""), resources, "llrrr")
    yield ""
    yield from wrap(_writes(status["writes"]), prose_width())
    for name, reason in {**status["failures"], **_errors(status["parts"])}.items():
        yield paint(f"{name}: {reason}", Style.RED)
    if status["scenario"]:
        yield from scenario(status["scenario"])


def _ill(pool: Mapping[str, Any]) -> str:
    kinds = ("unhealthy", "lost", "degraded")
    told = [f"{pool[kind]} {kind}" for kind in kinds if pool[kind]]
    told += [f"{pool['stopped']} nodes stopped"] if pool["stopped"] else []
    return ", ".join(told) or "0"


def _percent(amounts: Mapping[str, int]) -> str:
    of = amounts["allocatable"]
    return f"{amounts['allocated'] / of:.0%}" if of else "-"


def _writes(writes: Mapping[str, Any]) -> str:
    limit = "no limit" if writes["limit"] is None else f"at most {writes['limit']:g}"
    bears = f"the API server took {writes['peak']:g} in the busiest second"
    if writes["refused"]:
        bears += (
            f", and was overloaded {writes['refused']} times: now {writes['allowed']:g} are allowed"
        )
    return (
        f"{writes['per_second']:g} writes a second ({limit}), {writes['total']} in all; {bears}, "
        f"each in {writes['answer_ms']:g} ms"
    )


def _errors(parts: Mapping[str, Any]) -> dict[str, str]:
    told = {name: part["error"] for name, part in parts.items() if part and part.get("error")}
    for name, problem in (parts.get("nodes") or {}).get("problems", {}).items():
        told[f"node {name}"] = problem
    return told


def _left_lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield paint(f"fleet {found['fleet']}: its process isn't running here", Style.YELLOW)
    if not found["pools"]:
        yield "The API server has no nodes of this fleet: `hami-mock fleet up FILE` creates some."
        return
    rows = [(name, *each.values()) for name, each in found["pools"].items()]
    yield from table(("POOL", "NODES", "READY", "FAULTY"), rows, "lrrr")
    yield "`hami-mock fleet up FILE` takes them over; `hami-mock fleet down` deletes them."
