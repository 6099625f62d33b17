"""`hami-mock scenario check`: what a scenario would do to this node, and when."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import anyio

from hami_mock.cli.flags import flag_values, options_parser
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.faults import scenario_reader
from hami_mock.faults.player import Player, describe
from hami_mock.faults.scenario import Scenario
from hami_mock.faults.timeline import What, moments
from hami_mock.kit import durations, logs
from hami_mock.kit.terminal import Style, paint, table
from hami_mock.kit.values import time
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.node.xid import APPLICATION_ERRORS
from hami_mock.settings.settings import load
from hami_mock.sources import planning

DEFAULT_UNTIL = 3600.0
"""How much is shown of a scenario that never ends."""

_MOST_ROWS = 10_000
_WIDTH = 60
"""How much of the names of all targets stands in a line of the table."""


def parser() -> Parser:
    parser = options_parser(
        "scenario",
        usage="check FILE [FLAGS]",
        examples=(
            "scenario check drill.yaml",
            "scenario check drill.yaml --until 10m --seed 7 --nvidia-cards 8",
        ),
    )
    parser.add("check", "check the scenario", choices=["check"], metavar="check")
    parser.add("file", "the scenario's file", metavar="FILE")
    text = "show what happens up to this time, such as 10m [the end; 1h if it never ends]"
    return parser.add("--until", text, **reads(time(0))).add_output()


def run(parsed: Parsed) -> None:
    settings = load(flag_values(parsed))
    # What happens on the copy of the node is no news.
    logs.set_up("error", settings.log_format)
    node, *_ = anyio.run(planning.plan, settings)
    read = scenario_reader.read(parsed.file, node)
    rehearsed = rehearse(read, node, settings.seed, parsed.until, settings.ignored_xids)
    show(rehearsed.rows, parsed.output, rehearsal_table(rehearsed, node))


@dataclass(frozen=True)
class Rehearsal:
    """What a scenario does to a node, up to a time; `goes_on` if that isn't all of it."""

    scenario: Scenario
    seed: int
    rows: Sequence[dict[str, Any]]
    goes_on: bool


def rehearse(
    scenario: Scenario,
    node: Node,
    seed: int | None = None,
    until: float | None = None,
    ignored_xids: AbstractSet[int] = APPLICATION_ERRORS,
) -> Rehearsal:
    """Play a scenario on a copy of the node, without waiting. What changes nothing has no row.

    It must have been read for that node (`scenario_reader`).
    """
    return rehearse_play(Player(scenario, NodeState(node, ignored_xids=ignored_xids), seed), until)


def rehearse_play(player: Player, until: float | None = None) -> Rehearsal:
    """Do the same with a player of a scenario, which has a copy to play on."""
    scenario = player.scenario
    if until is None and scenario.total is None:
        until = DEFAULT_UNTIL
    rows: list[dict[str, Any]] = []
    for moment in moments(scenario, player.seed):
        if len(rows) == _MOST_ROWS or (until is not None and moment.time > until):
            return Rehearsal(scenario, player.seed, rows, goes_on=True)
        touched = player.play(moment)
        if moment.what is What.DO or touched:
            rows.append(
                {
                    "time": moment.time,
                    "round": int(moment.turn.partition(".")[0]) + 1,
                    "step": moment.step.place if moment.step else "",
                    "what": describe(moment),
                    "targets": list(touched),
                }
            )
    return Rehearsal(scenario, player.seed, rows, goes_on=False)


def rehearsal_table(rehearsal: Rehearsal, node: Node) -> Iterator[str]:
    return rehearsal_lines(rehearsal, f"node {node.name}")


def rehearsal_lines(rehearsal: Rehearsal, where: str) -> Iterator[str]:
    name, total = rehearsal.scenario.name, rehearsal.scenario.total
    yield f"{paint(name, Style.BOLD)} on {where}, with seed {rehearsal.seed}:"
    yield ""
    rows = (
        (durations.show(row["time"]), row["step"], row["what"], _names(row["targets"]))
        for row in rehearsal.rows
    )
    yield from table(("TIME", "STEP", "WHAT", "ON"), rows, "r")
    yield ""
    ends = "It runs until it is stopped" if total is None else f"It ends at {durations.show(total)}"
    yield f"{ends}; --until shows more or less of it." if rehearsal.goes_on else f"{ends}."


def _names(names: Sequence[str]) -> str:
    return shorten(", ".join(names), _WIDTH, placeholder=" ...") or "-"
