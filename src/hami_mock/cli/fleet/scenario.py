"""`hami-mock fleet scenario`: a timeline of faults over the fleet, played or only looked at."""

from pathlib import Path

from hami_mock.cli.ctl.screens import scenario as scenario_lines
from hami_mock.cli.fleet.place import asked, with_fleet
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.cli.scenario import DEFAULT_UNTIL, rehearsal_lines, rehearse_play
from hami_mock.control.protocol import MOST_REQUEST_BYTES
from hami_mock.errors import UsageError
from hami_mock.kit import durations, logs
from hami_mock.kit.files import read_text
from hami_mock.kit.values import SEED, time

_NOTES = """\
examples/README.md explains the file. Its targets are those of the fleet's commands: a node, a \
pool, rack=NAME, zone=NAME, a glob or all, each followed by a colon and a card to name only that \
card. choose counts what they name: nodes, or cards. Besides the verbs of a node there are \
stop-node and start-node.

check needs --fleet FILE, and no process: it shows what would happen when."""


def parser() -> Parser:
    parser = Parser(
        "fleet scenario",
        "play or check a timeline of faults over the fleet",
        usage="play|check|stop [FILE] [FLAGS]",
        notes=_NOTES,
        examples=(
            "fleet scenario play drill.yaml --seed 7",
            "fleet scenario check drill.yaml --fleet fleet.yaml",
            "fleet scenario stop",
        ),
    )
    parser.add("what", "what to do with it", choices=["play", "check", "stop"],
               metavar="play|check|stop")  # fmt: skip
    parser.add("file", "the scenario's file", metavar="FILE", nargs="?")
    parser.add("--fleet", "check: the configuration file with the pools", metavar="FILE")
    text = "seed of the scenario's random choices [the one in the file]"
    parser.add("--seed", text, **reads(SEED))
    text = f"check: show what happens up to this time [the end; {durations.show(DEFAULT_UNTIL)} "
    parser.add("--until", f"{text}if it never ends]", **reads(time(0)))
    return with_fleet(parser).add_output()


def run(parsed: Parsed) -> None:
    if parsed.what == "stop":
        stopped = asked(parsed, "stop")
        show(stopped, parsed.output, scenario_lines(stopped))
        return
    if not parsed.file:
        raise UsageError(f"fleet scenario {parsed.what}: name the scenario's file")
    if parsed.what == "check":
        _check(parsed)
        return
    text = read_text("can't read the scenario", parsed.file, MOST_REQUEST_BYTES)
    seed = {} if parsed.seed is None else {"seed": parsed.seed}
    played = asked(parsed, "play", text=text, name=Path(parsed.file).name, **seed)
    show(played, parsed.output, scenario_lines(played))


def _check(parsed: Parsed) -> None:
    from hami_mock.faults.player import Player
    from hami_mock.fleet.fleet import Fleet
    from hami_mock.fleet.playing import OnFleet, read_scenario
    from hami_mock.settings.settings import load_pools

    if not parsed.fleet:
        raise UsageError("--fleet: it is missing: name the configuration file with the pools")
    # What happens on the copy of the fleet is no news.
    logs.set_up("error", "text")
    fleet = Fleet(parsed.name, load_pools(parsed.fleet))
    text = read_text("can't read the scenario", parsed.file, MOST_REQUEST_BYTES)
    read = read_scenario(text, parsed.file, fleet)
    rehearsed = rehearse_play(Player(read, OnFleet(fleet), parsed.seed), parsed.until)
    show(rehearsed.rows, parsed.output, rehearsal_lines(rehearsed, f"fleet {fleet.name}"))
