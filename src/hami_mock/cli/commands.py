"""What each command does with its arguments. Heavy parts are imported where they are needed."""

import gc
from collections.abc import Awaitable, Callable

import anyio

from hami_mock import __version__
from hami_mock.cli.main import COMMANDS
from hami_mock.cli.parser import Parser, flag_values
from hami_mock.errors import HamiMockError
from hami_mock.kit import logs
from hami_mock.settings.settings import load


def run(arguments: list[str]) -> int:
    """Run the agent until it is stopped."""
    from hami_mock import agent

    parsed = _parser("run", with_options=True).parse(arguments)
    flags = flag_values(parsed)
    settings = load(flags)
    logs.set_up(settings.log_level, settings.log_format)
    _run_async(agent.run, settings, flags)
    return 0


def plan(arguments: list[str]) -> int:
    """Print what would be registered."""
    from hami_mock.cli import plan
    from hami_mock.sources import configuration

    parsed = _with_output(_parser("plan", with_options=True)).parse(arguments)
    settings = load(flag_values(parsed))
    logs.set_up(settings.log_level, settings.log_format)
    node, version = anyio.run(configuration.plan, settings)
    rows = plan.plan_rows(node, version)
    print(plan.render(rows, parsed.output, plan.plan_table(node, rows)))
    return 0


def scenario(arguments: list[str]) -> int:
    """Print what a scenario would do."""
    from hami_mock.cli import plan, rehearsal
    from hami_mock.faults import scenario_reader
    from hami_mock.sources import configuration

    parser = _with_output(_parser("scenario", with_options=True))
    parser.usage = "hami-mock scenario check FILE [FLAGS]"
    parser.add_argument("check", choices=["check"], help="what to do with it")
    rehearsal.add_arguments(parser)
    parsed = parser.parse(arguments)
    settings = load(flag_values(parsed))
    # What happens on the copy of the node is no news.
    logs.set_up("error", settings.log_format)
    node, _ = anyio.run(configuration.plan, settings)
    read = scenario_reader.read(parsed.file)
    rehearsed = rehearsal.rehearse(read, node, settings.seed, parsed.until, settings.ignored_xids)
    table = rehearsal.rehearsal_table(rehearsed, node)
    print(plan.render(rehearsed.rows, parsed.output, table))
    return 0


def demo(arguments: list[str]) -> int:
    """Show it work here."""
    from hami_mock.cli import demo as show

    parser = _parser("demo", with_options=True)
    parser.add_argument("--keep", action="store_true", help="stay up with a live table")
    parsed = parser.parse(arguments)
    settings = load(flag_values(parsed))
    logs.set_up("error", settings.log_format)
    _run_async(show.run, settings, parsed.keep)
    return 0


def models(arguments: list[str]) -> int:
    """Print the catalog."""
    from hami_mock.cli import plan

    parsed = _with_output(_parser("models")).parse(arguments)
    rows = plan.model_rows()
    print(plan.render(rows, parsed.output, plan.models_table(rows)))
    return 0


def version(arguments: list[str]) -> int:
    """Print the version."""
    _parser("version").parse(arguments)
    print(f"hami-mock {__version__}")
    return 0


def _parser(command: str, *, with_options: bool = False) -> Parser:
    return Parser(command, COMMANDS[command], with_options=with_options)


def _with_output(parser: Parser) -> Parser:
    formats = ("table", "json", "yaml")
    parser.add_argument(
        "-o", "--output", choices=formats, default="table", help="how to print it [table]"
    )
    return parser


def _run_async(function: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Run, and take an error of ours out of the groups that task groups wrap it in."""
    # All that is loaded by now stays: nobody need look through it for garbage ever again.
    gc.freeze()
    gc.enable()
    try:
        anyio.run(function, *arguments)
    except* HamiMockError as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
