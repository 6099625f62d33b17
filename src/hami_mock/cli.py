"""The command line: parse, run, and turn errors into lines and exit codes."""

import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence

import anyio

from hami_mock import __version__, logs
from hami_mock.command_line import Parser, flag_values
from hami_mock.errors import HamiMockError, UsageError
from hami_mock.flags import normalise

COMMANDS = {
    "run": "register the resources with the kubelet and keep them there (the default)",
    "plan": "show what would be registered, without registering it",
    "demo": "try it here: the agent against an embedded kubelet, no cluster needed",
    "ctl": "see and change an agent that runs: status, fail, recover, set, events, …",
    "scenario": "check a scenario and show its timeline, without playing it",
    "models": "list the card models",
    "version": "print the version",
}

_OVERVIEW = f"""\
usage: hami-mock [COMMAND] [FLAGS]

Make a Kubernetes node look as if it carried accelerators it doesn't have.

commands:
{chr(10).join(f"  {name:<9}{text}" for name, text in COMMANDS.items())}

`hami-mock COMMAND --help` explains a command and its flags.

examples:
  hami-mock demo
  hami-mock plan --nvidia-cards 8 --nvidia-model A100-SXM4-80GB --nvidia-memory-factor auto
  hami-mock run --config /etc/hami-mock/config.yaml --node-name $NODE_NAME
  hami-mock ctl fail nvidia/0 --xid 79 --for 2m
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code: 0, 1 (can't run), 2 (wrong input)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(words)
    except UsageError as error:
        return _fail(error.problems, 2)
    except HamiMockError as error:
        return _fail([str(error)], 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`). Python would complain at exit.
        sys.stderr.close()
        return 0
    except Exception as error:
        if any(word.endswith("debug") for word in words):
            traceback.print_exc()
        text = f"internal error, please report it: {type(error).__name__}: {error}"
        return _fail([f"{text} (--log-level debug says where)"], 1)


def _fail(lines: Sequence[str], code: int) -> int:
    for line in lines:
        print(f"hami-mock: {line}", file=sys.stderr)
    return code


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", "-help", "help"):
        print(_OVERVIEW, end="")
        return 0
    if first in ("--version", "-version"):
        first, arguments = "version", ["version"]
    if not first or first.startswith("-"):
        first, arguments = "run", ["run", *arguments]
    if first not in COMMANDS:
        raise UsageError(f"{first!r} is no command: use one of {', '.join(COMMANDS)}")
    # What `ctl` takes are words for cards and resources: they are left as they are.
    return _RUNNERS[first](arguments[1:] if first == "ctl" else normalise(arguments[1:]))


def _run(arguments: list[str]) -> int:
    from hami_mock import app
    from hami_mock.settings import load

    parsed = _parser("run", with_options=True).parse(arguments)
    flags = flag_values(parsed)
    settings = load(flags)
    logs.set_up(settings.log_level, settings.log_format)
    _run_async(app.run, settings, flags)
    return 0


def _plan(arguments: list[str]) -> int:
    from hami_mock import configuration, plan
    from hami_mock.settings import load

    parsed = _with_output(_parser("plan", with_options=True)).parse(arguments)
    settings = load(flag_values(parsed))
    logs.set_up(settings.log_level, settings.log_format)
    node, version = anyio.run(configuration.plan, settings)
    rows = plan.plan_rows(node, version)
    print(plan.render(rows, parsed.output, plan.plan_table(node, rows)))
    return 0


def _ctl(arguments: list[str]) -> int:
    from hami_mock.control import client

    return client.main(arguments)


def _scenario(arguments: list[str]) -> int:
    from hami_mock import configuration, plan, scenario_command
    from hami_mock.faults import scenario_reader
    from hami_mock.settings import load

    parser = _with_output(_parser("scenario", with_options=True))
    parser.usage = "hami-mock scenario check FILE [FLAGS]"
    parser.add_argument("check", choices=["check"], help="what to do with it")
    scenario_command.add_arguments(parser)
    parsed = parser.parse(arguments)
    settings = load(flag_values(parsed))
    # What happens on the copy of the node is no news.
    logs.set_up("error", settings.log_format)
    node, _ = anyio.run(configuration.plan, settings)
    scenario = scenario_reader.read(parsed.file)
    rehearsal = scenario_command.rehearse(
        scenario, node, settings.seed, parsed.until, settings.ignored_xids
    )
    table = scenario_command.rehearsal_table(rehearsal, node)
    print(plan.render(rehearsal.rows, parsed.output, table))
    return 0


def _demo(arguments: list[str]) -> int:
    from hami_mock import demo
    from hami_mock.settings import load

    parser = _parser("demo", with_options=True)
    parser.add_argument("--keep", action="store_true", help="stay up with a live table")
    parsed = parser.parse(arguments)
    settings = load(flag_values(parsed))
    logs.set_up("error", settings.log_format)
    _run_async(demo.run, settings, parsed.keep)
    return 0


def _models(arguments: list[str]) -> int:
    from hami_mock import plan

    parsed = _with_output(_parser("models")).parse(arguments)
    rows = plan.model_rows()
    print(plan.render(rows, parsed.output, plan.models_table(rows)))
    return 0


def _version(arguments: list[str]) -> int:
    _parser("version").parse(arguments)
    print(f"hami-mock {__version__}")
    return 0


_RUNNERS: dict[str, Callable[[list[str]], int]] = {
    "run": _run,
    "plan": _plan,
    "demo": _demo,
    "ctl": _ctl,
    "scenario": _scenario,
    "models": _models,
    "version": _version,
}


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
    try:
        anyio.run(function, *arguments)
    except* HamiMockError as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
