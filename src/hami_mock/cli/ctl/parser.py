"""The words after `hami-mock ctl` → a command and its arguments, or help."""

import argparse
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from hami_mock.cli.ctl.command import CtlCommand, Parsed
from hami_mock.cli.ctl.commands import all_commands, examples_of
from hami_mock.cli.ctl.screens import OUTPUTS
from hami_mock.control.protocol import DEFAULT_SOCKET, FLAG, VARIABLE
from hami_mock.errors import UsageError
from hami_mock.kit.similar import did_you_mean

_HELP = ("-h", "--help", "-help", "help")
_TAUGHT = ("status", "fail", "recover", "delay", "set", "events")
"""Whose examples the overview shows: all would be too much to read."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises UsageError where argparse would print and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog.removeprefix('hami-mock ')}: {message}")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Leaves the examples as they are and gives long flags room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=100)


@dataclass(frozen=True)
class Wanted:
    """What the user wants."""

    command: CtlCommand
    parsed: Parsed


def parse(words: list[str]) -> Wanted | str:
    """Return what is wanted, or the overview if that is.

    Raises UsageError for what makes no sense, and SystemExit after the help of a command.
    """
    common = _common()
    commands = all_commands()
    # Wherever they stand, before the command or behind it.
    values, words = common.parse_known_args(words)
    if not words or words[0] in _HELP:
        return overview(commands)
    inner = {name: commands[name] for name in commands if name.startswith(f"{words[0]} ")}
    if inner and (not words[1:] or words[1] in _HELP):
        return overview(inner)
    name = _command_name(words[: 2 if inner else 1], inner or commands)
    # What was found becomes the default of the command's own parser, whose help shows it too.
    common.set_defaults(**vars(values))
    parsed = _parse(name, commands[name], words[len(name.split()) :], common)
    if not parsed.control_socket:
        raise UsageError(f"{FLAG}: it is empty, which means off: name the socket of the agent")
    return Wanted(commands[name], parsed)


def _parse(name: str, command: CtlCommand, words: list[str], common: _Parser) -> Parsed:
    parser = _Parser(
        prog=f"hami-mock ctl {name}",
        description=f"{command.help[0].upper()}{command.help[1:]}.",
        epilog=examples_of([command]),
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
        parents=[common],
    )
    for argument in command.arguments:
        parser.add_argument(*argument.name.split(), **argument.how)
    # Intermixed: `fail nvidia/0 --xid 79 nvidia/1` is as good as any other order.
    parsed, unknown = parser.parse_known_intermixed_args(words)
    if unknown:
        flags = parser._option_string_actions
        raise UsageError(
            f"ctl {name}: {word!r} makes no sense here{did_you_mean(word, flags)}"
            # A word may be the value of the flag that isn't one.
            for word in [word for word in unknown if word.startswith("-")] or unknown
        )
    return parsed


def overview(commands: Mapping[str, CtlCommand]) -> str:
    """Return the help of `ctl` itself, or of a group of its commands."""
    taught = [commands[name] for name in _TAUGHT if name in commands]
    lines = "\n".join(f"  {name:<17}{command.help}" for name, command in commands.items())
    return f"""\
usage: hami-mock ctl [{FLAG} PATH] COMMAND …

See and change the agent that runs here, over its control socket
({FLAG}, else ${VARIABLE}, else {DEFAULT_SOCKET}).
In a cluster: kubectl exec POD -- hami-mock ctl COMMAND …

commands:
{lines}

`hami-mock ctl COMMAND --help` explains a command.

{examples_of(taught or commands.values())}"""


def _common() -> _Parser:
    """Return a parser of what every command takes."""
    common = _Parser(prog="hami-mock ctl", add_help=False, allow_abbrev=False)
    common.add_argument(
        FLAG,
        metavar="PATH",
        default=os.environ.get(VARIABLE, DEFAULT_SOCKET),
        help=f"the agent's control socket [{DEFAULT_SOCKET}]",
    )
    common.add_argument(
        "-o",
        "--output",
        choices=OUTPUTS,
        default=OUTPUTS[0],
        help=f"how to print it [{OUTPUTS[0]}]",
    )
    return common


def _command_name(words: list[str], commands: Iterable[str]) -> str:
    name = " ".join(words)
    if name in commands:
        return name
    firsts = dict.fromkeys(
        command if len(words) > 1 else command.split()[0] for command in commands
    )
    hint = did_you_mean(name, firsts) or f": use one of {', '.join(firsts)}"
    raise UsageError(f"ctl: {name!r} is no command{hint}")
