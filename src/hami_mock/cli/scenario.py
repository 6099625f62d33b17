"""`hami-mock scenario check`: what a scenario would do to this node, and when."""

import anyio

from hami_mock.cli.flags import flag_values, options_parser
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parser, add_output, reads
from hami_mock.cli.rehearsal import rehearsal_table, rehearse
from hami_mock.faults import scenario_reader
from hami_mock.kit import logs
from hami_mock.kit.values import time
from hami_mock.settings.settings import load
from hami_mock.sources import planning


def parser() -> Parser:
    """Return the parser of the command."""
    parser = options_parser(
        "scenario",
        usage="check FILE [FLAGS]",
        examples=(
            "scenario check drill.yaml",
            "scenario check drill.yaml --until 10m --seed 7 --nvidia-cards 8",
        ),
    )
    parser.add_argument("check", choices=["check"], help="check the scenario")
    parser.add_argument("file", metavar="FILE", help="the scenario's file")
    parser.add_argument(
        "--until",
        **reads(time(0)),
        help="show what happens up to this time, such as 10m [the end; 1h if it never ends]",
    )
    add_output(parser)
    return parser


def main(arguments: list[str]) -> int:
    """Print what a scenario would do."""
    parsed = parser().parse(arguments)
    settings = load(flag_values(parsed))
    # What happens on the copy of the node is no news.
    logs.set_up("error", settings.log_format)
    node, *_ = anyio.run(planning.plan, settings)
    read = scenario_reader.read(parsed.file, node)
    rehearsed = rehearse(read, node, settings.seed, parsed.until, settings.ignored_xids)
    show(rehearsed.rows, parsed.output, rehearsal_table(rehearsed, node))
    return 0
