"""The words after `hami-mock ctl` → a command and its arguments, or help."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hami_mock.cli.commands import COMMANDS, HELP
from hami_mock.cli.ctl.commands import CtlCommand, all_commands
from hami_mock.cli.parser import BareParser, Parsed, Parser, overview
from hami_mock.control.protocol import DEFAULT_SOCKET, FLAG, VARIABLE
from hami_mock.errors import UsageError
from hami_mock.kit.similar import did_you_mean

_P = TypeVar("_P", bound=BareParser)

_TAUGHT = ("status", "fail", "recover", "delay", "set", "events")
"""Whose examples the overview shows: all would be too much to read."""


@dataclass(frozen=True)
class Wanted:
    """What the user wants."""

    command: CtlCommand
    parsed: Parsed


def parse(words: list[str]) -> Wanted | str:
    """Return what is wanted, or the overview if that is.

    Raises UsageError for what makes no sense, and SystemExit after the help of a command.
    """
    commands = all_commands()
    # Wherever they stand, before the command or behind it.
    values, words = with_common(
        BareParser("hami-mock ctl", add_help=False, allow_abbrev=False)
    ).parse_known_args(words)
    if not words or words[0] in HELP:
        return help_of(commands)
    inner = {name: commands[name] for name in commands if name.startswith(f"{words[0]} ")}
    if inner and (not words[1:] or words[1] in HELP):
        return help_of(inner)
    name = _command_name(words[: 2 if inner else 1], inner or commands)
    parser = command_parser(name, commands[name])
    # What was found becomes the default of the command's own parser, whose help shows it too.
    parser.set_defaults(**vars(values))
    parsed = parser.parse(words[len(name.split()) :])
    if not parsed.control_socket:
        raise UsageError(f"{FLAG}: it is empty: name the agent's socket")
    return Wanted(commands[name], parsed)


def command_parser(name: str, command: CtlCommand) -> Parser:
    parser = Parser(
        f"ctl {name}",
        command.help,
        usage=None,
        examples=[f"ctl {example}" for example in command.examples],
    )
    for names, text, how in command.arguments:
        parser.add(names, text, **how)
    return with_common(parser)


def help_of(commands: Mapping[str, CtlCommand]) -> str:
    """Return the help of `ctl` itself, or of a group of its commands."""
    taught = [commands[name] for name in _TAUGHT if name in commands]
    return overview(
        "ctl",
        COMMANDS["ctl"],
        {name: command.help for name, command in commands.items()},
        f"The agent is found by its control socket: {FLAG}, else ${VARIABLE}, else "
        f"{DEFAULT_SOCKET}. In a cluster: kubectl exec POD -- hami-mock ctl COMMAND …\n\n"
        "`hami-mock ctl COMMAND --help` explains a command in detail.",
        [f"ctl {line}" for command in taught or commands.values() for line in command.examples],
    )


def with_common(parser: _P) -> _P:
    default = os.environ.get(VARIABLE, DEFAULT_SOCKET)
    text = f"the agent's control socket [{DEFAULT_SOCKET}]"
    return parser.add(FLAG, text, metavar="PATH", default=default).add_output()


def _command_name(words: list[str], commands: Iterable[str]) -> str:
    name = " ".join(words)
    if name in commands:
        return name
    firsts = dict.fromkeys(
        command if len(words) > 1 else command.split()[0] for command in commands
    )
    hint = did_you_mean(name, firsts) or f": use one of {', '.join(firsts)}"
    raise UsageError(f"ctl: {name!r} is not a command{hint}")
