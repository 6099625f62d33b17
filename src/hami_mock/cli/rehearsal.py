"""A scenario, played on a copy of the node without waiting."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from hami_mock.faults.player import Player, describe
from hami_mock.faults.scenario import Scenario
from hami_mock.faults.timeline import What, moments
from hami_mock.kit import durations
from hami_mock.kit.terminal import Style, paint, table
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.node.xid import APPLICATION_ERRORS

DEFAULT_UNTIL = 3600.0
"""How much is shown of a scenario that never ends."""

_MOST_ROWS = 10_000
_WIDTH = 60
"""How much of the names of all targets stands in a line of the table."""


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
    player = Player(scenario, NodeState(node, ignored_xids=ignored_xids), seed)
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
    """Yield the lines of the timeline for people."""
    scenario = rehearsal.scenario
    yield f"{paint(scenario.name, Style.BOLD)} on node {node.name}, with seed {rehearsal.seed}:"
    yield ""
    yield from table(
        ("TIME", "STEP", "WHAT", "ON"),
        (
            (durations.show(row["time"]), row["step"], row["what"], _names(row["targets"]))
            for row in rehearsal.rows
        ),
        "r",
    )
    yield ""
    yield _ending(rehearsal)


def _names(names: Sequence[str]) -> str:
    return shorten(", ".join(names), _WIDTH, placeholder=" ...") or "-"


def _ending(rehearsal: Rehearsal) -> str:
    total = rehearsal.scenario.total
    ends = "It runs until it is stopped" if total is None else f"It ends at {durations.show(total)}"
    return f"{ends}; --until shows more or less of it." if rehearsal.goes_on else f"{ends}."
